// Offsets are what signals that have not seen a row say of its pairs.

#include "host/signals/fold_offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/compare.h"
#include "tests/on_device.h"
#include "tests/signals/small_reviews.h"

namespace cfaa::test {
namespace {

class Offsets : public OnDevice {
 protected:
  // Of a training row's user and every item.
  std::vector<double> offsets(const SmallReviews& reviews, std::size_t row) {
    const std::vector<SignalName>& names = every_signal();
    const std::vector<double> weights = weights_of(names.size());
    const FoldOffsets made(context(), reviews.read(context().threads()), names, weights, {}, {});
    std::vector<int32_t> items;
    for (int32_t i = 0; i < reviews.domain.items.size(); ++i) items.push_back(i);
    std::vector<double> values(items.size());
    made.fill(static_cast<int64_t>(row), items, values.data());
    return values;
  }
  static std::vector<double> weights_of(std::size_t signals) {
    std::vector<double> weights;
    for (std::size_t s = 0; s < signals; ++s) weights.push_back(0.2 + 0.1 * static_cast<double>(s));
    return weights;
  }
};
CFAA_TEST_ON_DEVICES(Offsets);

TEST_P(Offsets, OfAnEdgeDoNotChangeWithTheEdge) {
  const SmallReviews reviews(40, 16);
  std::size_t edge = reviews.texts.size() / 2;
  while (reviews.domain.train.label[edge] == 0) ++edge;
  SmallReviews disliked = reviews, rewritten = reviews, replaced = reviews;
  disliked.domain.train.label[edge] = 0;
  disliked.domain.train.rating[edge] = 2;
  rewritten.texts[edge] = "kind0 kind1 kind2 maker0 maker1 zither";
  rewritten.sums[edge * SmallReviews::kWidth] += 100;
  rewritten.counts[edge] += 3;
  replaced.domain.train.label[edge] = kNoLabel;  // removed, but for its place
  replaced.texts[edge] = "";
  const std::vector<double> expected = offsets(reviews, edge);

  EXPECT_TRUE(offsets(disliked, edge) == expected);
  EXPECT_TRUE(offsets(rewritten, edge) == expected);
  EXPECT_TRUE(offsets(replaced, edge) == expected);

  const std::vector<int32_t> fold = folds_of_rows(reviews.domain, {});
  std::size_t other = 0;
  while (fold[other] == fold[edge]) ++other;
  EXPECT_TRUE(offsets(disliked, other) != offsets(reviews, other))
      << "the edge does take part in the other folds";
}

TEST_P(Offsets, AreLogitsOfTheSumThatWeightsWereFittedOn) {
  const SmallReviews reviews(40, 16);
  const std::size_t row = 50;
  const int32_t user = reviews.domain.train.user[row];
  const std::vector<int32_t> fold = folds_of_rows(reviews.domain, {});
  std::vector<char> used;
  for (const int32_t f : fold) used.push_back(f != fold[row]);
  const ReviewedDomain reviewed = reviews.read(context().threads());
  const ScaledSignals made = make_scaled_signals(context(), reviewed, every_signal(), {}, used);
  std::vector<double> rows(16 * every_signal().size()), sums(16);
  scaled_rows(made, user, rows.data());
  const std::vector<double> weights = weights_of(every_signal().size());
  const auto liked = static_cast<double>(made.evidence.liked.columns_of(user).size());
  for (std::size_t s = 0; s < weights.size(); ++s) {
    for (std::size_t i = 0; i < 16; ++i)
      sums[i] += weights[s] * rows[16 * s + i] / std::sqrt(liked);
  }
  const auto known = made.evidence.known.columns_of(user);
  double mean = 0, counted = 0;
  for (int32_t i = 0; i < 16; ++i) {
    if (std::find(known.begin(), known.end(), i) != known.end()) continue;
    mean += std::exp(sums[static_cast<std::size_t>(i)]);
    ++counted;
  }
  ASSERT_GT(liked, 1);
  for (double& sum : sums) sum -= std::log(mean / counted);

  EXPECT_TRUE(close(sums, offsets(reviews, row), 1e-5));
}

}  // namespace
}  // namespace cfaa::test
