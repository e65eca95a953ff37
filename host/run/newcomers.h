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
// In a run of CFAA that is the list of a model in which the user's row of the id table is zero; in
// one of signals, the known user's own.
//
//   An item that the domain does not have: the text counts, the item does not.
//   A review without text: the item counts alone. So it does, in a run of signals, where the text
//   is of words that the data never uses (another language); an encoder reads what it is given.
//   No review says anything: the list is that of a user without history, mostly popularity.

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/parallel.h"
#include "host/embed/review_reader.h"
#include "host/run/evaluate.h"
#include "host/run/ranking_model.h"
#include "host/run/recommend.h"

namespace cfaa {

struct NewReview {
  std::string user, item, text;
  double rating = std::numeric_limits<double>::quiet_NaN();  // NaN: the user liked it
};

// The reviews in files of any format that `prepare` reads, ordered by user, then by item, those of
// one item by time. `columns` as prepare's; "": those of the run's data. What the data's rating
// scale or repairs say holds here too, and a line that `prepare` refuses is refused.
std::vector<NewReview> read_new_reviews(const std::vector<std::string>& paths,
                                        const RankingModel& model, const std::string& domain,
                                        const std::string& columns, ThreadPool& pool);

// By which `model` reads newcomers' texts: the encoder in `folder`, null where it reads none. Error
// where it reads them and there is no folder, or another encoder in it.
std::shared_ptr<ReviewReader> open_review_reader(Context& context, const RankingModel& model,
                                                 const std::string& folder);

struct NewUserLists {
  std::vector<Recommendation> users;  // in the order of their first reviews
  int64_t reviews = 0;                // that were given
  int64_t of_unknown_items = 0;       // of these
  int64_t without_text = 0;
  int64_t of_unknown_words = 0;  // with text, but without a word that the data's reviews have
  std::vector<std::string> unknown_items;  // each once, ascending
};

// Whoever makes lists for newcomers holds one: what they share is made once. Its calls may come
// from several threads, each with a Context of its own, on the CPU.
class Newcomers {
 public:
  // `model` must outlive it. Error where it cannot place newcomers, where it has no such domain,
  // and where it reads vectors of reviews and `reader` is null.
  Newcomers(Context& context, RankingModel& model, const std::string& domain = "target",
            std::shared_ptr<ReviewReader> reader = nullptr);
  ~Newcomers();

  // Lists for the writers of `reviews`, in the order of their first ones, measured by what they
  // were asked to find. A user of whom nothing was asked is counted as skipped.
  using Asked = std::vector<std::pair<std::string, std::string>>;  // user, item
  EvaluationReport evaluate(Context& context, std::span<const NewReview> reviews,
                            const Asked& asked, const EvaluationConfig& eval) const;

  // A list of `top` items for each user of the reviews. With `reasons`, items have titles, words
  // and what they are recommended for.
  NewUserLists lists(Context& context, std::span<const NewReview> reviews, int64_t top = 10,
                     bool reasons = true) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Lists for the users whom `prepare --hold-out-users` kept out of the data, from the reviews that
// they wrote (host/data/held_out_users.h).
struct NewcomersReport {
  EvaluationReport report;
  Domain people;                // their ids as users, and the domain's items: rows as in the report
  int64_t without_reviews = 0;  // users of whom something is asked, but who say nothing
  int64_t of_unknown_items = 0;  // asked, but nobody else has the item: not to be found
};
NewcomersReport evaluate_newcomers(Context& context, RankingModel& model,
                                   const EvaluationConfig& eval,
                                   std::shared_ptr<ReviewReader> reader = nullptr);

}  // namespace cfaa
