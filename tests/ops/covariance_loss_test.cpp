#include "host/ops/covariance_loss.h"

#include <gtest/gtest.h>

#include "bench/reference/embedding_sets.h"
#include "bench/reference/moments.h"
#include "host/core/error.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/differences.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class CovarianceLoss : public OnDevice {};
CFAA_TEST_ON_DEVICES(CovarianceLoss);

template <class T>
struct Result {
  T loss;
  std::vector<std::vector<T>> gradients;
};

template <class T>
Result<T> run(Context& context, const std::vector<HostSet>& sets, double scale = 1) {
  const EmbeddingSets<T> embeddings(context, sets);
  const Tensor<T, 1> loss(context, {1});

  covariance_loss<T>(context, embeddings.pairs(), scale, loss, embeddings.gradient_pairs());

  Result<T> result{loss.to_host()[0], {}};
  for (std::size_t set = 0; set < sets.size(); ++set) {
    result.gradients.push_back(embeddings.gradient(set));
  }
  return result;
}

TEST_P(CovarianceLoss, GivesTheHandMadeResult) {
  // variances 2 and 16 of the first attribute; the second is constant
  const std::vector<HostSet> sets = {{2, 2, {0, 1, 2, 1}}, {3, 2, {-4, 5, 0, 5, 4, 5}}};

  const auto found = run<double>(context(), sets);

  EXPECT_EQ(found.loss, (2.0 - 16) * (2 - 16) / 4);
  EXPECT_EQ(found.gradients[0], (std::vector<double>{14, 0, -14, 0}));
  EXPECT_EQ(found.gradients[1], (std::vector<double>{-28, 0, 0, 0, 28, 0}));
}

TEST_P(CovarianceLoss, IsZeroWhereTheDomainsAreEqual) {
  const HostSet set = normal_set(9, 5, 1);

  const auto found = run<double>(context(), {set, set});

  EXPECT_EQ(found.loss, 0);
  EXPECT_EQ(found.gradients[0], std::vector<double>(45, 0.0));
}

TEST_P(CovarianceLoss, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t d : {1, 31, 33, 70}) {
    const std::vector<HostSet> sets = {normal_set(33, d, 1, 3, 0.5), normal_set(2, d, 2),
                                       normal_set(65, d, 3, -2, 2), normal_set(31, d, 4)};
    const double expected = reference::covariance_loss(sets);

    EXPECT_TRUE(close(run<double>(context(), sets).loss, expected, 1e-12)) << d;
    EXPECT_TRUE(close(run<float>(context(), sets).loss, expected, 1e-5)) << d;
  }
}

TEST_P(CovarianceLoss, GradientEqualsCentralDifferences) {
  const std::vector<HostSet> sets = {normal_set(5, 3, 1), normal_set(4, 3, 2),
                                     normal_set(6, 3, 3, 1, 2), normal_set(3, 3, 4)};

  const auto found = run<double>(context(), sets, 0.7);
  const auto narrow = run<float>(context(), sets, 0.7);

  for (std::size_t set = 0; set < sets.size(); ++set) {
    const auto differences =
        central_differences(sets[set].values, [&](const std::vector<double>& values) {
          auto moved = sets;
          moved[set].values = values;
          return 0.7 * reference::covariance_loss(moved);
        });
    EXPECT_TRUE(close(found.gradients[set], differences, 1e-8)) << set;
    EXPECT_TRUE(close(narrow.gradients[set], differences, 1e-5)) << set;
  }
}

TEST_P(CovarianceLoss, RefusesASetOfOneRow) {
  EXPECT_THROW(run<float>(context(), {normal_set(1, 3, 1), normal_set(4, 3, 2)}), Error);
}

TEST_P(CovarianceLoss, HasTheSameBitsOnOneThreadAndOnTwo) {
  const std::vector<HostSet> sets = {normal_set(256, 150, 1), normal_set(200, 150, 2)};
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});

  const auto alone = run<float>(*one, sets), together = run<float>(context(), sets);

  EXPECT_EQ(alone.loss, together.loss);
  EXPECT_EQ(alone.gradients, together.gradients);
}

}  // namespace
}  // namespace cfaa::test
