#include "host/text/token_trie.h"

#include <algorithm>

namespace cfaa {
namespace {

TokenTrie::Entries sorted_unique(TokenTrie::Entries entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  TokenTrie::Entries unique;
  for (auto& entry : entries) {
    if (entry.first.empty()) continue;
    if (!unique.empty() && unique.back().first == entry.first) {
      unique.back() = std::move(entry);
    } else {
      unique.push_back(std::move(entry));
    }
  }
  return unique;
}

}  // namespace

TokenTrie::TokenTrie(const Entries& starts, const Entries& continuations) {
  nodes_.resize(1024);
  nodes_[kStart].parent = nodes_[kContinuation].parent = -2;  // taken, and nobody's child
  place(kStart, sorted_unique(starts));
  place(kContinuation, sorted_unique(continuations));
}

// Breadth first: the wide nodes near the root find room early, the chains below fill the gaps.
void TokenTrie::place(std::int32_t root, const Entries& sorted) {
  struct Task {
    std::int32_t state;
    std::size_t low, high, depth;  // entries [low, high) share the first `depth` bytes
  };
  std::vector<Task> tasks = {{root, 0, sorted.size(), 0}};
  std::vector<std::pair<unsigned char, std::size_t>> children;  // byte, first entry
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    auto [state, low, high, depth] = tasks[t];
    if (low < high && sorted[low].first.size() == depth) {
      nodes_[static_cast<std::size_t>(state)].id = sorted[low++].second;
    }
    children.clear();
    for (std::size_t i = low; i < high; ++i) {
      const auto byte = static_cast<unsigned char>(sorted[i].first[depth]);
      if (children.empty() || children.back().first != byte) children.emplace_back(byte, i);
    }
    if (children.empty()) continue;
    // First fit. Every place from 256 to first_free_ is taken. Nodes with several children start
    // their search at first_wide_, which moves on when the search gets long: the gaps left behind
    // are filled by nodes with a single child, the many.
    while (nodes_[first_free_].parent != -1) {
      if (++first_free_ + 512 > nodes_.size()) nodes_.resize(nodes_.size() * 2);
    }
    const bool wide = children.size() > 1;
    const std::size_t from = wide ? std::max(first_wide_, first_free_) : first_free_;
    std::size_t base = from - children[0].first;
    const auto fits = [&] {
      return std::all_of(children.begin(), children.end(), [&](const auto& child) {
        return nodes_[base + child.first].parent == -1;
      });
    };
    const std::size_t first_base = base;
    while (!fits()) {
      if (++base + 512 > nodes_.size()) nodes_.resize(nodes_.size() * 2);
    }
    if (wide && base - first_base > 64) first_wide_ = base;
    nodes_[static_cast<std::size_t>(state)].base = static_cast<std::int32_t>(base);
    for (std::size_t c = 0; c < children.size(); ++c) {
      const std::size_t end = c + 1 < children.size() ? children[c + 1].second : high;
      const std::size_t place = base + children[c].first;
      nodes_[place].parent = state;
      tasks.push_back({static_cast<std::int32_t>(place), children[c].second, end, depth + 1});
    }
  }
}

}  // namespace cfaa
