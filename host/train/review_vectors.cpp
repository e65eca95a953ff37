#include "host/train/review_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/core/error.h"

namespace cfaa {

namespace {

constexpr int32_t kMostSentences = 1 << 20;  // of one review

}  // namespace

ReviewVectors::ReviewVectors(const Domain& domain, PerSide<ReviewSums> sums, ReviewScale scale)
    : sums_(std::move(sums)),
      scale_(scale),
      dim_(sums_[kUser].width),
      reviews_(domain.train.size()) {
  for (const std::size_t side : {kUser, kItem}) {
    CFAA_ASSERT(sums_[side].count != nullptr && sums_[side].width == dim_);
    add_totals(domain, side);
    for (const int64_t sentences : sentences_[side]) absent_[side] += sentences == 0;
    if (scale_ == ReviewScale::standardize) find_moments(side);
  }
}

void ReviewVectors::read_sum(std::size_t side, int64_t row, float* out) const {
  const ReviewSums& sums = sums_[side];
  const std::size_t first = static_cast<std::size_t>(row * dim_) * size_of(sums.dtype);
  convert<float>(sums.dtype, sums.sum + first, 1, dim_, out);
}

void ReviewVectors::check_row(std::size_t side, int64_t row, const std::vector<float>& sum) const {
  const int32_t count = sentences(side, row);
  const bool finite = std::all_of(sum.begin(), sum.end(), [](float x) { return std::isfinite(x); });
  if (count >= 0 && count <= kMostSentences && finite) return;
  throw Error(
      fmt::format("{}: row {} has {}; make the embeddings again with 'cfaa_gpu embed "
                  "--fresh'",
                  sums_[side].origin, row,
                  finite ? fmt::format("{} sentences", count) : "a sum that is not finite"));
}

void ReviewVectors::add_totals(const Domain& domain, std::size_t side) {
  const int64_t count = side == kUser ? domain.users.size() : domain.items.size();
  total_[side].assign(static_cast<std::size_t>(count * dim_), 0.0f);
  sentences_[side].assign(static_cast<std::size_t>(count), 0);
  std::vector<float> sum(static_cast<std::size_t>(dim_));
  constexpr int64_t kRowsInMemory = 1 << 15;
  for (int64_t row = 0; row < domain.train.size(); ++row) {
    if (row % kRowsInMemory == 0) sums_[side].forget_pages();
    const auto r = static_cast<std::size_t>(row);
    read_sum(side, row, sum.data());
    check_row(side, row, sum);
    const auto entity =
        static_cast<std::size_t>(side == kUser ? domain.train.user[r] : domain.train.item[r]);
    float* total = total_[side].data() + entity * sum.size();
    for (std::size_t c = 0; c < sum.size(); ++c) total[c] += sum[c];
    sentences_[side][entity] += sentences(side, row);
  }
  sums_[side].forget_pages();
}

// Mean and spread of the entities' whole vectors, feature by feature, over those that have one.
void ReviewVectors::find_moments(std::size_t side) {
  const auto width = static_cast<std::size_t>(dim_);
  std::vector<double> sum(width), square(width);
  double entities = 0;
  for (std::size_t e = 0; e < sentences_[side].size(); ++e) {
    if (sentences_[side][e] == 0) continue;
    const double scale = 1.0 / static_cast<double>(sentences_[side][e]);
    for (std::size_t c = 0; c < width; ++c) {
      const double x = scale * total_[side][e * width + c];
      sum[c] += x;
      square[c] += x * x;
    }
    ++entities;
  }
  mean_[side].resize(width);
  factor_[side].resize(width);
  double largest = 0;
  for (std::size_t c = 0; c < width; ++c) {
    const double mean = entities > 0 ? sum[c] / entities : 0;
    const double variance = entities > 0 ? square[c] / entities - mean * mean : 0;
    mean_[side][c] = static_cast<float>(mean);
    factor_[side][c] = static_cast<float>(std::sqrt(std::max(0.0, variance)));
    largest = std::max(largest, static_cast<double>(factor_[side][c]));
  }
  // A feature that does not vary stays where it is instead of having its rounding blown up.
  for (float& factor : factor_[side]) factor = factor > 1e-4 * largest ? 1 / factor : 0;
}

ReviewArrays ReviewVectors::arrays(std::size_t side) const {
  const auto of = [&](const std::vector<float>& values) {
    return VectorView<const float>(values.empty() ? nullptr : values.data(), {std::ssize(values)});
  };
  const std::vector<float>& total = total_[side];
  return {.total = {total.data(), {std::ssize(sentences_[side]), dim_}},
          .dtype = sums_[side].dtype,
          .sum = sums_[side].sum,
          .reviews = reviews_,
          .mean = of(mean_[side]),
          .factor = of(factor_[side]),
          .unit = scale_ == ReviewScale::unit};
}

float ReviewVectors::share(std::size_t side, int64_t entity, int64_t excluded) const {
  int64_t left = sentences_[side][static_cast<std::size_t>(entity)];
  if (excluded >= 0) left -= sentences(side, excluded);
  return left > 0 ? 1.0f / static_cast<float>(left) : 0.0f;
}

}  // namespace cfaa
