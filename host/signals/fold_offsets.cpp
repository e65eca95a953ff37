#include "host/signals/fold_offsets.h"

#include <algorithm>
#include <cmath>

#include "host/signals/signal_scores.h"

namespace cfaa {
namespace {

constexpr int64_t kMeanItems = 1000;  // that the mean over the catalogue is taken of

std::size_t index(int64_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

std::vector<double> history_scale(const SparseRows& liked) {
  std::vector<double> scale;
  for (int64_t u = 0; u < liked.rows(); ++u) {
    const auto items = static_cast<double>(liked.columns_of(u).size());
    scale.push_back(1 / std::sqrt(std::max(1.0, items)));
  }
  return scale;
}

FoldOffsets::FoldOffsets(Context& context, const ReviewedDomain& reviewed,
                         std::span<const SignalName> names, std::span<const double> weights,
                         const SignalOptions& options, const FoldOptions& folds)
    : user_(reviewed.domain->train.user), fold_(folds_of_rows(*reviewed.domain, folds)) {
  for (int32_t which = 0; which < folds.folds; ++which) {
    std::vector<char> used;
    for (const int32_t fold : fold_) used.push_back(fold != which);
    const ScaledSignals made = make_scaled_signals(context, reviewed, names, options, used);
    std::vector<double> over_scale;
    for (std::size_t s = 0; s < weights.size(); ++s) {
      over_scale.push_back(weights[s] / made.scale[s]);
    }
    const SignalScores scores(context, made.evidence, made.signals, over_scale);
    made_.push_back({scores.left(), transpose(scores.right()), scores.dim(), scores.user_factors(),
                     scores.item_factors(), history_scale(made.evidence.liked),
                     std::vector<double>(index(reviewed.users()))});
    Fold& fold = made_.back();
    std::vector<char> wanted(index(reviewed.users()));
    for (std::size_t row = 0; row < fold_.size(); ++row) {
      if (fold_[row] == which) wanted[index(user_[row])] = 1;
    }
    context.threads().parallel_for(reviewed.users(), 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t u = begin; u < end; ++u) {
        if (wanted[index(u)] == 0) continue;
        fold.log_mean[index(u)] = fold.log_mean_exp(made.evidence, static_cast<int32_t>(u));
      }
    });
  }
}

double FoldOffsets::Fold::sum(int32_t user, int32_t item) const {
  double sum = 0;
  for (int64_t q = 0; q < dim; ++q) {
    sum +=
        double{user_factors[index(user * dim + q)]} * double{item_factors[index(item * dim + q)]};
  }
  const auto left = of_user.columns_of(user), right = of_item.columns_of(item);
  const auto left_value = of_user.values_of(user), right_value = of_item.values_of(item);
  for (std::size_t a = 0, b = 0; a < left.size() && b < right.size();) {
    if (left[a] == right[b]) {
      sum += double{left_value[a++]} * double{right_value[b++]};
    } else if (left[a] < right[b]) {
      ++a;
    } else {
      ++b;
    }
  }
  return sum * user_scale[index(user)];
}

double FoldOffsets::Fold::log_mean_exp(const Evidence& evidence, int32_t user) const {
  const auto known = evidence.known.columns_of(user);
  const int64_t step = (evidence.items() + kMeanItems - 1) / kMeanItems;
  std::vector<double> sums;
  for (int64_t i = 0; i < evidence.items(); i += step) {
    const auto item = static_cast<int32_t>(i);
    if (!std::binary_search(known.begin(), known.end(), item)) sums.push_back(sum(user, item));
  }
  if (sums.empty()) return 0;
  const double most = *std::max_element(sums.begin(), sums.end());
  double total = 0;
  for (const double x : sums) total += std::exp(x - most);
  return most + std::log(total / static_cast<double>(sums.size()));
}

void FoldOffsets::fill(int64_t row, std::span<const int32_t> items, double* offsets) const {
  const Fold& fold = made_[index(fold_[index(row)])];
  const int32_t user = user_[index(row)];
  for (std::size_t i = 0; i < items.size(); ++i) {
    offsets[i] = fold.sum(user, items[i]) - fold.log_mean[index(user)];
  }
}

}  // namespace cfaa
