#include "host/ops/typical_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/reference/embedding_sets.h"
#include "bench/reference/vertical.h"
#include "host/core/error.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

using Values = std::vector<double>;

// The result of a call, on the host, with the gradients for a given dM.
template <class T>
struct HostTypicalSamples {
  int64_t attributes, k;
  std::vector<T> samples, previous, weight, column_std, sample_std, spread;
  std::vector<std::vector<T>> gradients;  // per set (N, D)

  Values of(const std::vector<T>& all, std::size_t set, int64_t q) const {
    const auto first = all.begin() + (static_cast<int64_t>(set) * attributes + q) * k;
    return Values(first, first + k);
  }
  Values samples_of(std::size_t set, int64_t q) const { return of(samples, set, q); }
  Values gradient_of(std::size_t set, int64_t q) const {
    Values column;
    for (std::size_t i = static_cast<std::size_t>(q); i < gradients[set].size();
         i += static_cast<std::size_t>(attributes)) {
      column.push_back(static_cast<double>(gradients[set][i]));
    }
    return column;
  }

  bool finite() const {
    const auto all_finite = [](const std::vector<T>& values) {
      return std::all_of(values.begin(), values.end(), [](T v) { return std::isfinite(v); });
    };
    return all_finite(samples) && all_finite(previous) && all_finite(weight) &&
           all_finite(column_std) && all_finite(sample_std) && all_finite(spread) &&
           std::all_of(gradients.begin(), gradients.end(), all_finite);
  }
};

constexpr uint64_t kGradientSeed = 99;

// dM of attribute q of a set, as `run` gives it to the backward.
Values samples_gradient(int64_t attributes, int64_t k, std::size_t set, int64_t q) {
  const Values all =
      normal<double>((static_cast<int64_t>(set) + 1) * attributes * k, kGradientSeed);
  const auto first = all.begin() + (static_cast<int64_t>(set) * attributes + q) * k;
  return Values(first, first + k);
}

// Sources first, then targets.
template <class T>
HostTypicalSamples<T> run(Context& context, const std::vector<HostSet>& sets,
                          const TypicalSamplesOptions& options, double scale = 1) {
  const EmbeddingSets<T> on_device(context, sets);
  const Arena::Scope scope(context.scratch());
  const TypicalSamples<T> result = typical_samples<T>(context, on_device.pairs(), options);
  const std::vector<T> dm = normal<T>(result.samples.size(), kGradientSeed);
  const Tensor<T, 3> gradient(context, result.samples.shape, dm.data());
  typical_samples_backward<T>(context, on_device.pairs(), result, gradient.view(), scale,
                              on_device.gradient_pairs());

  HostTypicalSamples<T> host;
  host.attributes = result.samples.shape[1];
  host.k = result.samples.shape[2];
  host.samples = to_host(context, result.samples);
  host.previous = to_host(context, result.previous);
  host.weight = to_host(context, result.weight);
  host.column_std = to_host(context, result.column_std);
  host.sample_std = to_host(context, result.sample_std);
  host.spread = to_host(context, result.spread);
  for (std::size_t set = 0; set < sets.size(); ++set) {
    host.gradients.push_back(on_device.gradient(set));
  }
  return host;
}

double alpha_of(const std::vector<HostSet>& sets, std::size_t set, int64_t q,
                const TypicalSamplesOptions& options) {
  if (options.alpha_scale == AlphaScale::absolute) return options.alpha;
  const std::size_t pairs = sets.size() / 2, pair = set % pairs;
  return options.alpha * (variance(sets[pair].column(q)) + variance(sets[pairs + pair].column(q))) /
         2;
}

template <class T>
void expect_reference(Context& context, const std::vector<HostSet>& sets,
                      const TypicalSamplesOptions& options, double tolerance) {
  const HostTypicalSamples<T> result = run<T>(context, sets, options);

  for (std::size_t set = 0; set < sets.size(); ++set) {
    for (int64_t q = 0; q < result.attributes; ++q) {
      SCOPED_TRACE(testing::Message() << "N " << sets[set].rows << ", K " << result.k << ", set "
                                      << set << ", attribute " << q);
      const Values z = sets[set].column(q);
      const TypicalColumn wanted =
          typical_column(z, result.k, alpha_of(sets, set, q, options), options.iterations);
      const Values dm = samples_gradient(result.attributes, result.k, set, q);
      EXPECT_TRUE(close(result.samples_of(set, q), wanted.samples, tolerance));
      EXPECT_TRUE(close(result.of(result.weight, set, q), wanted.weight, tolerance));
      EXPECT_TRUE(close(result.gradient_of(set, q), column_gradient(wanted, dm), tolerance));
      const std::size_t at =
          set * static_cast<std::size_t>(result.attributes) + static_cast<std::size_t>(q);
      EXPECT_NEAR(result.column_std[at], std::sqrt(variance(z)), tolerance);
      EXPECT_NEAR(result.sample_std[at], std::sqrt(variance(wanted.samples)), tolerance);
    }
  }
}

class TypicalSamplesOp : public OnDevice {};
CFAA_TEST_ON_DEVICES(TypicalSamplesOp);

TEST_P(TypicalSamplesOp, StartAtTheMidpointQuantiles) {
  // So small an alpha assigns every point to its nearest sample: 0, 1 to 0.5 and 2, 3 to 2.5, where
  // the samples stand already.
  TypicalSamplesOptions options{
      .k = 2, .alpha = 1e-6, .alpha_scale = AlphaScale::absolute, .iterations = 1};
  const std::vector<HostSet> sets = {{4, 1, {3, 0, 2, 1}}, {4, 1, {3, 0, 2, 1}}};

  const HostTypicalSamples<double> result = run<double>(context(), sets, options);

  EXPECT_TRUE(close(result.samples_of(0, 0), Values{0.5, 2.5}, 1e-14));
  EXPECT_TRUE(close(result.of(result.weight, 0, 0), Values{2, 2}, 1e-14));
  // The centre is 1.5 and the spread the column's standard deviation.
  EXPECT_TRUE(close(result.spread[0], std::sqrt(1.25), 1e-14));
  const double unit = 1 / std::sqrt(1.25);
  EXPECT_TRUE(close(result.of(result.previous, 0, 0), Values{-unit, unit}, 1e-14));
}

TEST_P(TypicalSamplesOp, OneStepIsSolvedByHand) {
  // Samples start on the points -1 and 1; alpha makes the weight of the far one a third: Psi is 3/4
  // and 1/4, so M = -3/4 + 1/4, and dZ_i = sum_j Psi_ij dM_j with s_j = 1.
  TypicalSamplesOptions options{
      .k = 2, .alpha = 4 / std::log(3.0), .alpha_scale = AlphaScale::absolute, .iterations = 1};
  const std::vector<HostSet> sets = {{2, 1, {1, -1}}, {2, 1, {1, -1}}};

  const HostTypicalSamples<double> result = run<double>(context(), sets, options);

  EXPECT_TRUE(close(result.samples_of(0, 0), Values{-0.5, 0.5}, 1e-14));
  EXPECT_TRUE(close(result.of(result.weight, 0, 0), Values{1, 1}, 1e-14));
  const Values dm = samples_gradient(1, 2, 0, 0);
  EXPECT_TRUE(close(result.gradient_of(0, 0),
                    Values{0.25 * dm[0] + 0.75 * dm[1], 0.75 * dm[0] + 0.25 * dm[1]}, 1e-14));
}

TEST_P(TypicalSamplesOp, AgreesWithTheReferenceAtEverySize) {
  for (const int64_t n : {1, 31, 32, 33, 257}) {
    for (const int64_t k : {1, 31, 33}) {
      const std::vector<HostSet> sets = {normal_set(n, 3, 1), normal_set(n, 3, 2, 0.3, 1.4)};
      const TypicalSamplesOptions options{.k = k, .iterations = 2};
      expect_reference<double>(context(), sets, options, 1e-11);
      expect_reference<float>(context(), sets, options, 1e-4);
    }
  }
}

TEST_P(TypicalSamplesOp, AgreesWithTheReferenceForAsManySamplesAsRegistersHoldAndMore) {
  const std::vector<HostSet> sets = {normal_set(70, 2, 1), normal_set(70, 2, 2, 0.3, 1.4)};
  for (const int64_t k : {64, 65, 128, 129}) {
    const TypicalSamplesOptions options{.k = k, .iterations = 2};
    expect_reference<double>(context(), sets, options, 1e-11);
    expect_reference<float>(context(), sets, options, 1e-4);
  }
}

TEST_P(TypicalSamplesOp, AgreesWithTheReferenceForTwoPairsOfDifferentSizes) {
  // Users and items; as many attributes as make a block of columns and a rest.
  const std::vector<HostSet> sets = {normal_set(40, 11, 1), normal_set(9, 11, 2, -1, 3),
                                     normal_set(65, 11, 3, 0.2), normal_set(33, 11, 4)};
  const TypicalSamplesOptions options{.k = 17};
  expect_reference<double>(context(), sets, options, 1e-10);
  expect_reference<float>(context(), sets, options, 2e-4);
}

// Columns of one attribute, as floats hold them: normal, with outliers on either side, in two heaps
// far from each other, and of a few values only.
std::vector<HostSet> columns_of_every_kind(int64_t n, uint64_t seed) {
  std::vector<HostSet> sets(4, normal_set(n, 1, seed));
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i % 40 == 7) sets[1].values[at] *= i % 80 == 7 ? 6 : 15;
    sets[2].values[at] = i % 3 == 0 ? 4 + 0.3 * sets[2].values[at] : sets[2].values[at] - 4;
    sets[3].values[at] = std::round(3 * sets[3].values[at]) / 3;
  }
  for (HostSet& set : sets) {
    for (double& value : set.values) value = static_cast<double>(static_cast<float>(value));
  }
  return sets;
}

TEST_P(TypicalSamplesOp, AreRightInFloatWhereSamplesLieDense) {
  for (const double alpha : {0.02, 0.1, 1.0}) {
    SCOPED_TRACE(testing::Message() << "alpha " << alpha);
    const TypicalSamplesOptions options{.k = 100, .alpha = alpha, .iterations = 5};
    for (const HostSet& set : columns_of_every_kind(200, 7)) {
      expect_reference<float>(context(), {set, set}, options, 5e-5);
    }
  }
}

TEST_P(TypicalSamplesOp, AgreesWithTheReferenceForEveryAlpha) {
  const std::vector<HostSet> sets = {normal_set(50, 2, 1), normal_set(60, 2, 2, 0.3)};
  for (const AlphaScale scale : {AlphaScale::relative, AlphaScale::absolute}) {
    for (const double alpha : {0.01, 0.1, 1.0, 10.0}) {
      SCOPED_TRACE(testing::Message() << "alpha " << alpha);
      const TypicalSamplesOptions options{
          .k = 20, .alpha = alpha, .alpha_scale = scale, .iterations = 3};
      expect_reference<double>(context(), sets, options, 1e-9);
    }
  }
}

TEST_P(TypicalSamplesOp, MoreSamplesThanPointsAreAllowed) {
  const std::vector<HostSet> sets = {normal_set(5, 2, 1), normal_set(7, 2, 2)};
  const TypicalSamplesOptions options{.k = 33, .iterations = 3};
  expect_reference<double>(context(), sets, options, 1e-10);
  expect_reference<float>(context(), sets, options, 1e-4);
}

TEST_P(TypicalSamplesOp, KDefaultsToHalfTheSmallerSet) {
  const std::vector<HostSet> sets = {normal_set(21, 1, 1), normal_set(9, 1, 2)};
  EXPECT_EQ(run<float>(context(), sets, {}).k, 4);

  const std::vector<HostSet> single = {normal_set(1, 1, 1), normal_set(9, 1, 2)};
  EXPECT_EQ(run<float>(context(), single, {}).k, 1);
}

TEST_P(TypicalSamplesOp, GradientIsTheCentralDifferenceWithPsiFixed) {
  const std::vector<HostSet> sets = {normal_set(12, 1, 1), normal_set(12, 1, 2)};
  const TypicalSamplesOptions options{.k = 5};
  const HostTypicalSamples<double> result = run<double>(context(), sets, options);
  const Values dm = samples_gradient(1, 5, 0, 0), z = sets[0].column(0);
  const TypicalColumn column = typical_column(z, 5, alpha_of(sets, 0, 0, options), 10);

  Values differences;
  for (std::size_t i = 0; i < z.size(); ++i) {
    // Linear in z: the step brings rounding alone.
    const double step = 1e-3;
    const auto loss_at = [&](double offset) {
      Values moved = z;
      moved[i] += offset;
      const Values m = samples_of(column.psi, moved);
      double loss = 0;
      for (std::size_t j = 0; j < m.size(); ++j) loss += dm[j] * m[j];
      return loss;
    };
    differences.push_back((loss_at(step) - loss_at(-step)) / (2 * step));
  }

  EXPECT_TRUE(close(result.gradient_of(0, 0), differences, 1e-10));
}

TEST_P(TypicalSamplesOp, BackwardAddsItsScaledGradient) {
  const std::vector<HostSet> sets = {normal_set(20, 3, 1), normal_set(20, 3, 2)};
  const TypicalSamplesOptions options{.k = 8};
  const HostTypicalSamples<double> once = run<double>(context(), sets, options);

  const EmbeddingSets<double> on_device(context(), sets);
  const Arena::Scope scope(context().scratch());
  const TypicalSamples<double> forward =
      typical_samples<double>(context(), on_device.pairs(), options);
  const Values dm = normal<double>(forward.samples.size(), kGradientSeed);
  const Tensor<double, 3> gradient(context(), forward.samples.shape, dm.data());
  for (const double scale : {0.5, 2.0}) {
    typical_samples_backward<double>(context(), on_device.pairs(), forward, gradient.view(), scale,
                                     on_device.gradient_pairs());
  }

  Values wanted = once.gradients[1];
  for (double& value : wanted) value *= 2.5;
  EXPECT_TRUE(close(on_device.gradient(1), wanted, 1e-14));
}

TEST_P(TypicalSamplesOp, AreAscendingAndWithinTheColumn) {
  const std::vector<HostSet> sets = {normal_set(257, 4, 1, 3, 0.01), normal_set(33, 4, 2, -5)};
  for (const double alpha : {1e-6, 0.1, 3.0}) {
    const TypicalSamplesOptions options{.k = 50, .alpha = alpha, .iterations = 4};
    const HostTypicalSamples<float> result = run<float>(context(), sets, options);
    for (std::size_t set = 0; set < 2; ++set) {
      for (int64_t q = 0; q < 4; ++q) {
        const Values m = result.samples_of(set, q), z = sets[set].column(q);
        EXPECT_TRUE(std::is_sorted(m.begin(), m.end()));
        EXPECT_GE(m.front(), *std::min_element(z.begin(), z.end()) - 1e-6);
        EXPECT_LE(m.back(), *std::max_element(z.begin(), z.end()) + 1e-6);
      }
    }
  }
}

TEST_P(TypicalSamplesOp, SpreadRatioShowsACollapse) {
  const std::vector<HostSet> sets = {normal_set(128, 1, 1, 0, 0.1), normal_set(128, 1, 2, 0, 0.1)};
  TypicalSamplesOptions options{
      .k = 64, .alpha = 0.1, .alpha_scale = AlphaScale::absolute, .iterations = 5};
  const HostTypicalSamples<double> collapsed = run<double>(context(), sets, options);
  options.alpha_scale = AlphaScale::relative;
  const HostTypicalSamples<double> spread = run<double>(context(), sets, options);

  EXPECT_LT(collapsed.sample_std[0] / collapsed.column_std[0], 1e-3);
  EXPECT_GT(spread.sample_std[0] / spread.column_std[0], 0.8);
}

template <class T>
void expect_follows_scale(Context& context, double factor, double tolerance) {
  SCOPED_TRACE(testing::Message() << "factor " << factor);
  // A power of two near the factor, so that both calls see the same mantissas.
  const double scale = std::exp2(std::round(std::log2(factor)));
  std::vector<HostSet> sets = {normal_set(33, 2, 1), normal_set(40, 2, 2, 0.4)};
  const TypicalSamplesOptions options{.k = 16};
  const HostTypicalSamples<T> base = run<T>(context, sets, options);
  for (HostSet& set : sets) {
    for (double& value : set.values) value *= scale;
  }
  const HostTypicalSamples<T> scaled = run<T>(context, sets, options);

  EXPECT_TRUE(scaled.finite());
  EXPECT_TRUE(close(scaled.weight, base.weight, tolerance));
  for (std::size_t set = 0; set < 2; ++set) {
    EXPECT_TRUE(close(scaled.gradients[set], base.gradients[set], tolerance));
    Values wanted = base.samples_of(set, 0);
    for (double& value : wanted) value *= scale;
    EXPECT_TRUE(close(scaled.samples_of(set, 0), wanted, tolerance));
  }
}

TEST_P(TypicalSamplesOp, FollowTheUnitOfTheEmbeddings) {
  for (const double factor : {1e-20, 1e-3, 1e3, 1e15}) {
    expect_follows_scale<float>(context(), factor, 1e-5);
    expect_follows_scale<double>(context(), factor, 1e-12);
  }
}

TEST_P(TypicalSamplesOp, FollowAnOffsetOfTheColumn) {
  const HostSet a = normal_set(40, 1, 1), b = normal_set(40, 1, 2);
  const TypicalSamplesOptions options{.k = 16};
  const HostTypicalSamples<double> base = run<double>(context(), {a, b}, options);
  HostSet shifted = a;
  for (double& value : shifted.values) value += 1e6;
  const HostTypicalSamples<double> moved = run<double>(context(), {shifted, b}, options);

  Values wanted = base.samples_of(0, 0);
  for (double& value : wanted) value += 1e6;
  EXPECT_TRUE(close(moved.samples_of(0, 0), wanted, 1e-14));
  EXPECT_TRUE(close(moved.gradients[0], base.gradients[0], 1e-7));
}

template <class T>
void expect_constant_columns(Context& context) {
  // Attribute 0 is constant in both sets, attribute 1 in the source alone, attribute 2 in neither.
  HostSet source = normal_set(6, 3, 1), target = normal_set(9, 3, 2);
  for (int64_t i = 0; i < 6; ++i) {
    source.values[static_cast<std::size_t>(3 * i)] = 0.1;
    source.values[static_cast<std::size_t>(3 * i + 1)] = -0.3;
  }
  for (int64_t i = 0; i < 9; ++i) target.values[static_cast<std::size_t>(3 * i)] = 7.7;
  const TypicalSamplesOptions options{.k = 4};

  const HostTypicalSamples<T> result = run<T>(context, {source, target}, options);

  EXPECT_TRUE(result.finite());
  EXPECT_EQ(result.spread[0], T(0));
  EXPECT_TRUE(close(result.samples_of(0, 0), Values(4, 0.1), 1e-6));
  EXPECT_TRUE(close(result.samples_of(1, 0), Values(4, 7.7), 1e-6));
  EXPECT_TRUE(close(result.of(result.weight, 1, 0), Values(4, 9.0 / 4), 1e-6));
  EXPECT_TRUE(close(result.samples_of(0, 1), Values(4, -0.3), 1e-6));
  EXPECT_EQ(result.column_std[0], T(0));
  EXPECT_EQ(result.sample_std[1], T(0));
  for (const int64_t q : {0, 1}) {
    // Psi = 1/K and s = N/K, so that every row gets sum_j dM_j / N.
    const Values dm = samples_gradient(3, 4, 0, q);
    const double wanted = (dm[0] + dm[1] + dm[2] + dm[3]) / 6;
    EXPECT_TRUE(close(result.gradient_of(0, q), Values(6, wanted), 1e-5));
  }
}

TEST_P(TypicalSamplesOp, ConstantColumnsHaveADefinedAnswer) {
  expect_constant_columns<float>(context());
  expect_constant_columns<double>(context());
}

TEST_P(TypicalSamplesOp, OnePointIsItsOwnSample) {
  const std::vector<HostSet> sets = {{1, 2, {3, -4}}, {1, 2, {1, 2}}};

  const HostTypicalSamples<float> result = run<float>(context(), sets, {.k = 3});

  EXPECT_EQ(result.samples_of(0, 0), Values(3, 3));
  EXPECT_EQ(result.samples_of(1, 1), Values(3, 2));
  EXPECT_TRUE(result.finite());
}

TEST_P(TypicalSamplesOp, AreFiniteForEveryAlphaAndSpread) {
  for (const AlphaScale scale : {AlphaScale::relative, AlphaScale::absolute}) {
    for (const double alpha : {1e-300, 1e-38, 1e-10, 1e-3, 1e3, 1e38, 1e300}) {
      for (const double spread : {1e-20, 1.0, 1e15}) {
        SCOPED_TRACE(testing::Message() << "alpha " << alpha << ", spread " << spread);
        HostSet source = normal_set(33, 1, 1, 0, spread), target = normal_set(20, 1, 2, 0, spread);
        source.values[5] = 1e4 * spread;  // an outlier
        const TypicalSamplesOptions options{
            .k = 17, .alpha = alpha, .alpha_scale = scale, .iterations = 3};
        EXPECT_TRUE(run<float>(context(), {source, target}, options).finite());
        EXPECT_TRUE(run<double>(context(), {source, target}, options).finite());
      }
    }
  }
}

TEST_P(TypicalSamplesOp, ASampleWithoutWeightKeepsItsPlaceAndGetsNoGradient) {
  // Points 0 and 1 with three samples: the middle one starts at 1/2, where no point prefers it.
  const std::vector<HostSet> sets = {{2, 1, {0, 1}}, {2, 1, {0, 1}}};
  const TypicalSamplesOptions options{.k = 3, .alpha = 1e-9};

  const HostTypicalSamples<float> result = run<float>(context(), sets, options);

  EXPECT_TRUE(close(result.samples_of(0, 0), Values{0, 0.5, 1}, 1e-6));
  EXPECT_EQ(result.of(result.weight, 0, 0), (Values{1, 0, 1}));
  const Values dm = samples_gradient(1, 3, 0, 0);
  EXPECT_TRUE(close(result.gradient_of(0, 0), Values{dm[0], dm[2]}, 1e-6));
}

TEST_P(TypicalSamplesOp, GradientFollowsAPermutationOfTheRows) {
  const int64_t n = 37;
  const HostSet plain = normal_set(n, 2, 1), target = normal_set(20, 2, 2);
  HostSet shuffled = plain;
  const auto place = [n](int64_t i) { return (i * 10 + 3) % n; };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t q = 0; q < 2; ++q) {
      shuffled.values[static_cast<std::size_t>(2 * place(i) + q)] =
          plain.values[static_cast<std::size_t>(2 * i + q)];
    }
  }
  const TypicalSamplesOptions options{.k = 12};

  const HostTypicalSamples<double> a = run<double>(context(), {plain, target}, options);
  const HostTypicalSamples<double> b = run<double>(context(), {shuffled, target}, options);

  EXPECT_TRUE(close(a.samples, b.samples, 1e-13));
  Values moved(a.gradients[0].size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t q = 0; q < 2; ++q) {
      moved[static_cast<std::size_t>(2 * place(i) + q)] =
          a.gradients[0][static_cast<std::size_t>(2 * i + q)];
    }
  }
  EXPECT_TRUE(close(moved, b.gradients[0], 1e-12));
}

TEST_P(TypicalSamplesOp, GiveTheSameBitsForEveryNumberOfThreads) {
  const std::vector<HostSet> sets = {normal_set(40, 19, 1), normal_set(33, 19, 2)};
  const auto with_threads = [&](int threads) {
    const std::unique_ptr<Context> own = make_context(GetParam(), {.threads = threads});
    return run<float>(*own, sets, {});
  };

  const HostTypicalSamples<float> one = with_threads(1);
  for (const int threads : {2, 5}) {
    const HostTypicalSamples<float> many = with_threads(threads);
    EXPECT_EQ(one.samples, many.samples);
    EXPECT_EQ(one.weight, many.weight);
    EXPECT_EQ(one.gradients, many.gradients);
  }
}

TEST_P(TypicalSamplesOp, AllocateNothingAfterTheFirstCall) {
  const std::vector<HostSet> sets = {normal_set(40, 9, 1), normal_set(33, 9, 2)};
  run<float>(context(), sets, {});
  const int64_t before = context().scratch().allocations();

  run<float>(context(), sets, {});
  run<float>(context(), sets, {});

  EXPECT_EQ(context().scratch().allocations(), before);
}

TEST_P(TypicalSamplesOp, AColumnThatIsNotFiniteSetsTheLatch) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    std::vector<HostSet> sets = {normal_set(10, 3, 1), normal_set(12, 3, 2)};
    sets[1].values[7] = bad;  // row 2, attribute 1

    const HostTypicalSamples<float> result = run<float>(context(), sets, {.k = 5});

    EXPECT_TRUE(std::isnan(result.samples_of(1, 1)[0]));
    EXPECT_TRUE(std::isfinite(result.samples_of(1, 0)[0]));
    try {
      context().check_faults();
      ADD_FAILURE() << "no fault";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("attribute 1"), std::string::npos) << error.what();
    }
  }
}

TEST(TypicalSamplesOptions, ThatMakeNoSenseAreRefused) {
  const std::unique_ptr<Context> context = make_context("cpu");
  const std::vector<HostSet> sets = {normal_set(4, 1, 1), normal_set(4, 1, 2)};

  EXPECT_THROW(run<float>(*context, sets, {.k = -1}), Error);
  EXPECT_THROW(run<float>(*context, sets, {.alpha = 0}), Error);
  EXPECT_THROW(run<float>(*context, sets, {.iterations = 0}), Error);
}

}  // namespace
}  // namespace cfaa::test
