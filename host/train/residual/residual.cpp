#include "host/train/residual/residual.h"

#include "host/eval/significance.h"
#include "host/ops/add_scaled.h"

namespace cfaa {
namespace {

constexpr std::size_t kNdcg = 2;  // of kMetricNames

// A score block of the model, and what it is multiplied by, in device memory.
struct ModelPart {
  ModelPart(Context& context, const DomainEmbeddings& embeddings, const ScorerArrays& arrays,
            double share)
      : scores(block_scores(context, embeddings, arrays)),
        beta(share),
        device_beta(context, {1}, &share) {}

  BlockScores scores;
  double beta;
  Tensor<double, 1> device_beta;
};

// NDCG@10 of each user with a validation positive.
std::vector<double> values_of(Context& context, const Scorer& scorer, const HeldOut& validation) {
  EvaluationOptions options;
  options.ks = {10};
  options.bootstrap = 0;
  const UserMetrics users = evaluate(context, scorer, validation, options).per_user;
  std::vector<double> values;
  for (std::size_t u = 0; u < users.user.size(); ++u) {
    values.push_back(users.value[u * kUserMetrics + kNdcg]);
  }
  return values;
}

}  // namespace

std::unique_ptr<Scorer> make_residual_scorer(Context& context, const SignalScores& signals,
                                             const DomainEmbeddings& embeddings,
                                             const ScorerArrays& arrays, double beta) {
  return make_residual_scorer(
      context,
      [&signals](Context& where, std::span<const int32_t> users, int64_t first, int64_t last,
                 MatrixView<float> scores) { signals.fill(where, users, first, last, scores); },
      [&signals](int32_t user, std::span<const int32_t> items, double* scores) {
        signals.score(user, items, scores);
      },
      embeddings, arrays, beta);
}

std::unique_ptr<Scorer> make_residual_scorer(Context& context, BlockFunction signals,
                                             PairFunction signal_pairs,
                                             const DomainEmbeddings& embeddings,
                                             const ScorerArrays& arrays, double beta) {
  const auto model = std::make_shared<ModelPart>(context, embeddings, arrays, beta);
  return std::make_unique<BlockScorer>(
      embeddings.count[kUser], embeddings.count[kItem],
      [signals = std::move(signals), model](Context& where, std::span<const int32_t> users,
                                            int64_t first, int64_t last, MatrixView<float> scores) {
        signals(where, users, first, last, scores);
        if (model->beta == 0) return;
        const Arena::Scope scope(where.scratch());
        const auto added = where.scratch().take<float, 2>(scores.shape);
        model->scores.block(where, users, first, last, added);
        add_scaled<float>(where, model->device_beta.view().data, added, scores);
      },
      [pairs = std::move(signal_pairs), model](int32_t user, std::span<const int32_t> items,
                                               double* scores) {
        pairs(user, items, scores);
        if (model->beta == 0) return;
        std::vector<double> added(items.size());
        model->scores.pairs(user, items, added.data());
        for (std::size_t i = 0; i < items.size(); ++i) scores[i] += model->beta * added[i];
      });
}

ResidualShare choose_share(Context& context, const SignalScores& signals,
                           const DomainEmbeddings& embeddings, const ScorerArrays& arrays,
                           const HeldOut& validation) {
  ResidualShare share;
  if (validation.positives.item.empty()) return share;
  std::vector<double> alone;
  double best = 0;
  for (const double beta : {0.0, 0.25, 0.5, 1.0}) {
    const auto scorer = make_residual_scorer(context, signals, embeddings, arrays, beta);
    std::vector<double> values = values_of(context, *scorer, validation);
    if (beta == 0) alone = values;
    std::vector<double> ahead(values.size());
    for (std::size_t u = 0; u < ahead.size(); ++u) ahead[u] = values[u] - alone[u];
    const PairedTest gain = paired_t_test(ahead);
    share.tried.push_back({beta, mean_and_deviation(values).mean, gain.mean, gain.standard_error});
    if (gain.mean > gain.standard_error && gain.mean > best) {
      best = gain.mean;
      share.beta = beta;
    }
  }
  return share;
}

}  // namespace cfaa
