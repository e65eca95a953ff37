#pragma once

// A double-array trie over bytes with two roots: tokens that start a word, and tokens that continue
// one ("##ing" without its ##). Finding the longest token at a place takes one step a byte.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfaa {

class TokenTrie {
 public:
  enum Root : std::int32_t { kStart = 0, kContinuation = 1 };
  using Entries = std::vector<std::pair<std::string, std::int32_t>>;

  struct Match {
    std::size_t size = 0;  // bytes; 0 if no token matches
    std::int32_t id = -1;
  };

  TokenTrie() = default;

  /// Empty strings are left out; of two equal ones the later counts.
  TokenTrie(const Entries& starts, const Entries& continuations);

  /// The longest token that `text` begins with.
  Match longest(Root root, std::string_view text) const {
    Match match;
    std::int32_t state = root;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::int32_t next =
          nodes_[static_cast<std::size_t>(state)].base + static_cast<unsigned char>(text[i]);
      const Node& node = nodes_[static_cast<std::size_t>(next)];
      if (node.parent != state) break;
      state = next;
      if (node.id >= 0) match = {i + 1, node.id};
    }
    return match;
  }

 private:
  struct Node {
    std::int32_t base = 0;     // child c is at base + c
    std::int32_t parent = -1;  // -1: free
    std::int32_t id = -1;      // token that ends here
  };

  void place(std::int32_t root, const Entries& sorted);

  std::vector<Node> nodes_;
  std::size_t first_free_ = 256, first_wide_ = 256;  // where to look while building
};

}  // namespace cfaa
