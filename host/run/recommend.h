#pragma once

// Lists of items for users, by a run's best parameters or by a kept baseline. What a user had in
// training and validation is not recommended.
//
//   Run run(*context, "run");
//   const Recommendation list = recommend(*context, run, "A1B2C3");
//   list.items[0].item, list.items[0].score

#include <functional>
#include <string>
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

// Error where the domain has no such user.
Recommendation recommend(Context& context, RankingModel& model, const std::string& user,
                         const RecommendRequest& request = {});

// Every user's, in the order of users.tsv, handed over one by one, without words and reasons.
void recommend_all(Context& context, RankingModel& model, const RecommendRequest& request,
                   const std::function<void(const Recommendation&)>& take);

}  // namespace cfaa
