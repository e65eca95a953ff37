#pragma once

// Lists for users whom training never saw, from reviews they wrote.
//
//   const Newcomers newcomers(*context, run, "target");
//   const std::vector<NewReview> reviews = {{"ann", "B0002E1G5C", "Warm tone, fine strings.", 5}};
//   const NewUserLists made = newcomers.lists(*context, reviews);
//   made.users[0].items[0].item
//
// A newcomer is placed as it would be if it had been in the data with these reviews: a known user,
// presented as new with exactly its training reviews, has the same scores to the last bit. What a
// review counts for follows `prepare` (the data's prepare.json): one at or above `positive` is of
// an item the user liked; one below says nothing in a target that dropped its negatives, but its
// item is not recommended. Of two reviews of one item the later in the order given counts.
//
//   An item that the domain does not have: the text counts, the item does not.
//   A review without text, or in words that the data never uses: the item counts alone.
//   No review says anything: the list is that of a user without history, mostly popularity.

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/run/ranking_model.h"
#include "host/run/recommend.h"

namespace cfaa {

struct NewReview {
  std::string user, item, text;
  double rating = std::numeric_limits<double>::quiet_NaN();  // NaN: the user liked it
};

struct NewUserLists {
  std::vector<Recommendation> users;  // in the order of their first reviews
  int64_t reviews = 0;                // that were given
  int64_t of_unknown_items = 0;       // of these
  int64_t without_text = 0;
  std::vector<std::string> unknown_items;  // each once, ascending
};

// Whoever makes lists for newcomers holds one: what they share is made once. Its calls may come
// from several threads, each with a Context of its own, on the CPU.
class Newcomers {
 public:
  // `model` must outlive it. Error where it cannot place newcomers, and where it has no such
  // domain.
  Newcomers(Context& context, RankingModel& model, const std::string& domain = "target");
  ~Newcomers();

  // A list of `top` items for each user of the reviews. With `reasons`, items have titles, words
  // and what they are recommended for.
  NewUserLists lists(Context& context, std::span<const NewReview> reviews, int64_t top = 10,
                     bool reasons = true) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
