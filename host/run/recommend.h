#pragma once

// Lists of items for users, by a run's best parameters or by a kept baseline. What a user had in
// training and validation is not recommended.
//
//   Run run(*context, "run");
//   const Recommendation list = recommend(*context, run, "A1B2C3");
//   list.items[0].item, list.items[0].score

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/context.h"
#include "host/run/ranking_model.h"

namespace cfaa {

struct RecommendRequest {
  std::string domain = "target";  // whose users and items
  int64_t top = 10;               // length of a list
};

struct RecommendedItem {
  std::string item;
  std::string title;  // "" where the data have none
  double score = 0;
  std::string signal;  // that raised it most, in a run of signals; "model": their residual
  std::string words;   // a sentence of a review of it (host/run/review_words.h)
  // The user's own items behind it, or the words it shares; in a run of CFAA those with the nearest
  // embeddings.
  std::vector<std::string> because;
  std::vector<std::string> own_words;  // what the user wrote of those items
};

struct Recommendation {
  std::string user;
  int64_t known = 0;                   // interactions of the user, none of which is recommended
  std::vector<RecommendedItem> items;  // best first
};

struct SimilarItem {
  std::string item;
  std::string title;  // "" where the data have none
  double score = 0;
};

// The lists of one domain, with all that is needed for them made once: for those who ask often.
// `model` must outlive it. What is const may be called from several threads at a time, each with a
// context of its own on the model's device.
class Recommender {
 public:
  explicit Recommender(RankingModel& model, const std::string& domain = "target");
  ~Recommender();

  const Domain& domain() const;
  std::string_view title(int32_t item) const;  // "" where it has none
  // The first sentence of the user's review of the item (host/run/review_words.h).
  std::string words(int32_t user, int32_t item) const;

  // The `top` best of a row of users.tsv; without reasons there are items, titles and scores.
  Recommendation recommend(Context& context, int32_t user, int64_t top, bool reasons = true) const;

  // Every user's, in the order of users.tsv, handed over one by one, without words and reasons.
  void recommend_all(Context& context, int64_t top,
                     const std::function<void(const Recommendation&)>& take) const;

  // The items that liking this one raises most by the signals of a run, their popularity left out;
  // without signals those with the nearest embeddings, by cosine. The best first, at most `top`.
  // Not for a model that has neither.
  bool has_similar() const;
  std::vector<SimilarItem> similar(int32_t item, int64_t top) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of some known items those with the embeddings nearest to an item's, by cosine: at most two.
std::vector<int32_t> nearest_known(const DomainEmbeddings& embeddings,
                                   std::span<const int32_t> known, int32_t item);

// Those of a Recommender that is made for one call.
Recommendation recommend(Context& context, RankingModel& model, const std::string& user,
                         const RecommendRequest& request = {});
void recommend_all(Context& context, RankingModel& model, const RecommendRequest& request,
                   const std::function<void(const Recommendation&)>& take);

}  // namespace cfaa
