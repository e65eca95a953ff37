#pragma once

// Users of the target whom `prepare --hold-out-users SHARE` keeps out of the data altogether, to
// measure what a model does for people it has never seen. The folder newcomers/ of a prepared
// directory has
//
//   reviews.jsonl  what they say: their interactions that the split calls training, with texts, in
//                  a format that `prepare` and `recommend --reviews` read
//   asked.tsv      user_id, item_id: their positives that it calls validation or test
//
// Whatever the share, users are drawn by the draw "newcomers"; a larger share holds out more.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/data/interactions.h"
#include "host/data/keyed_draw.h"

namespace cfaa {

class HeldOutUsersDraw {
 public:
  HeldOutUsersDraw(double share, int64_t seed)
      : share_(share), draw_("newcomers", "target", seed) {}
  bool operator()(std::string_view user) const {
    return share_ > 0 && draw_.uniform(user, "") < share_;
  }

 private:
  double share_;
  KeyedDraw draw_;
};

struct HeldOutUsers {
  std::vector<Interaction> rows;
  std::vector<Split> splits;  // of each row
};

// Takes the rows of such users out of the domain and out of `splits`.
HeldOutUsers take_held_out_users(Interactions& domain, std::vector<Split>& splits,
                                 const HeldOutUsersDraw& draw);

// Writes newcomers/ below a prepared directory. Positives are those rated at or above `positive`.
void write_held_out_users(const std::filesystem::path& directory, const Interactions& domain,
                          const HeldOutUsers& held_out, double positive);

std::filesystem::path held_out_reviews_path(const std::filesystem::path& directory);

// (user, item) of asked.tsv, ascending. Error where `directory` has none.
std::vector<std::pair<std::string, std::string>> read_asked_items(
    const std::filesystem::path& directory);

}  // namespace cfaa
