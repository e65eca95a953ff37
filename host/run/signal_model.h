#pragma once

// The scorer of signals: score(u, i) = sum_s w_s f_s(u, i) / scale_s.
//
//   const ReviewedData data(context, dataset);
//   const SignalFit fit = fit_signals(context, data, default_signals());
//   const SignalModel model(context, data, kTarget, options, fit.weights[kTarget]);
//   model.scorer()->rank(...)
//
// Weights are fitted on folds of the training split (host/signals/out_of_fold.h). What the source,
// thinned to the target's density, teaches counts as a number of edges of the target, chosen by the
// loss on validation. Then signals are made again from the whole training split.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/data/dataset.h"
#include "host/embed/review_sums.h"
#include "host/eval/scorer.h"
#include "host/model/batch.h"
#include "host/signals/signal_scores.h"
#include "host/signals/signals_options.h"
#include "host/train/residual/residual.h"

namespace cfaa {

// A dataset with what its training reviews say: words, and the encoder's vectors where `embed` has
// made them. The dataset must outlive it.
class ReviewedData {
 public:
  ReviewedData(Context& context, const Dataset& dataset);
  ~ReviewedData();
  ReviewedData(const ReviewedData&) = delete;
  ReviewedData& operator=(const ReviewedData&) = delete;

  const ReviewedDomain& domain(std::size_t which) const { return domains_[which]; }
  bool has_vectors() const;
  const std::vector<std::string>& terms() const { return terms_; }  // the vocabulary, ascending

 private:
  void read_vectors(std::size_t domain, const ReviewSums& sums);

  struct Vectors;
  std::unique_ptr<Vectors> vectors_;
  std::vector<ReviewedDomain> domains_;
  std::vector<std::string> terms_;
};

// Ranks with them; valid as long as `scores`.
std::unique_ptr<Scorer> make_scorer(const SignalScores& scores);

struct SignalWeight {
  SignalName name = SignalName::popularity;
  double weight = 0;
};

struct SignalFit {
  PerDomain<std::vector<SignalWeight>> weights;
  // Each prior that was fitted: how many edges the source counts as (infinity: the source
  // alone), NDCG@10 on validation, and how far that is ahead of the usual prior of 100 edges, user
  // by user, with the standard error (all 0 where there is no validation to choose by).
  struct Tried {
    double edges = 0, valid = 0, ahead = 0, error = 0;
  };
  std::vector<Tried> tried;
  double prior = 0;  // the one that was taken
  // NDCG@10 of these weights less that of popularity alone, on edges of the target that the signals
  // have not seen: out of fold and of validation. Within a standard error of 0, or below,
  // popularity alone is taken.
  struct BesidePopularity {
    double ahead = 0, error = 0;
    bool taken = false;  // popularity is
  };
  std::optional<BesidePopularity> beside_popularity;
  // What a model that was trained on top of the signals counts for; none until it has finished.
  std::optional<ResidualShare> residual;
};

// The prior that is taken is the best on validation if it is ahead of 100 edges by more than two
// standard errors, and 100 edges otherwise: a validation of few labels chooses by chance.
//
// The loss is of whole lists, and what is shown is their top: where few edges are left the weights
// can rank worse than popularity. They are compared with it on all edges that the signals have not
// seen, and must be ahead by a standard error: otherwise popularity alone is taken (not where
// `options.prior` is `only`).
//
// Signals that cannot be made of this data are left out with a line in the log where `options.use`
// has all of them: `encoder` without vectors, closed forms without the memory. Error otherwise.
SignalFit fit_signals(Context& context, const ReviewedData& data, const SignalsOptions& options);

// Why an item was recommended: the signal that raised it most above the user's other items.
struct SignalReason {
  SignalName signal = SignalName::popularity;
  double raised = 0;               // its score of the item, less its mean over all items
  std::vector<int32_t> items;      // the user's own items behind it, the most important first
  std::vector<std::string> words;  // of `text`: those that user and item share
};

// Where a model is their residual (`options.residual`), a user's scores are divided by the square
// root of the number of items that the user liked, as they are where weights are fitted.
class SignalModel {
 public:
  SignalModel(Context& context, const ReviewedData& data, std::size_t domain,
              const SignalsOptions& options, const std::vector<SignalWeight>& weights);

  // Valid as long as this object.
  std::unique_ptr<Scorer> scorer() const;
  // Of each of the items. From several threads at a time.
  std::vector<SignalReason> reasons(int32_t user, std::span<const int32_t> items) const;
  const SignalScores& scores() const { return scores_; }
  const ReviewedData& data() const { return data_; }

  // Users who were not in training (host/signals/later_users.h), with what the others have.
  struct Placed {
    LaterUsers users;
    std::vector<double> scale;
    SignalScores::Users scored;
  };
  Placed place(Context& context, SparseRows liked, const ReviewTerms& reviews,
               std::span<const int32_t> author) const;
  // Valid as long as this object and `placed`, whose users it ranks for.
  std::unique_ptr<Scorer> scorer(const Placed& placed) const;
  std::vector<SignalReason> reasons(const Placed& placed, int32_t user,
                                    std::span<const int32_t> items) const;

 private:
  template <class UserOf>
  std::vector<SignalReason> reasons_of(UserOf user_of, double scale,
                                       std::span<const int32_t> items) const;
  void explain(const Signal& signal, const SignalUser& user, bool negative, int32_t item,
               SignalReason& reason) const;

  const ReviewedData& data_;
  SignalOptions options_;
  ScaledSignals made_;
  std::vector<double> weight_;      // over the scales
  std::vector<double> user_scale_;  // of a residual's base; empty: 1
  SignalScores scores_;
};

}  // namespace cfaa
