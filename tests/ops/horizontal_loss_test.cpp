#include "host/ops/horizontal_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/reference/horizontal.h"
#include "host/core/error.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

using reference::Matrix;

class HorizontalLossOp : public OnDevice {};
CFAA_TEST_ON_DEVICES(HorizontalLossOp);

// Embeddings whose attributes lean on each other: Z = noise (I + 0.5 noise / sqrt(D)).
Matrix embeddings(int64_t n, int64_t d, uint64_t seed, double spread = 1) {
  Matrix mix(d, d, normal<double>(d * d, seed + 1000, 0, 0.5 / std::sqrt(static_cast<double>(d))));
  for (int64_t j = 0; j < d; ++j) mix(j, j) += 1;
  return Matrix(n, d, normal<double>(n * d, seed, 0, spread)) * mix;
}

struct Step {
  double loss;
  std::vector<Matrix> gradient;  // source and target of each pair in turn
  std::vector<Matrix> b, xi;     // of each set: the sources, then the targets
};

// `z` holds source and target of each pair in turn. Gradients start from `start`.
template <class T>
Step run(Context& context, const std::vector<Matrix>& z, const AlignmentOptions& options = {},
         double scale = 1, double start = 0) {
  const int64_t d = z[0].cols;
  std::vector<PaddedMatrix<T>> on_device, gradients;
  for (const Matrix& one : z) {
    on_device.emplace_back(context, one.rows, d,
                           std::vector<T>(one.values.begin(), one.values.end()), 2);
    gradients.emplace_back(context, one.rows, d,
                           std::vector<T>(one.values.size(), static_cast<T>(start)), 1);
  }
  std::vector<EmbeddingPair<T>> pairs;
  std::vector<GradientPair<T>> gradient_pairs;
  for (std::size_t p = 0; p < z.size(); p += 2) {
    pairs.push_back({on_device[p].view(), on_device[p + 1].view()});
    gradient_pairs.push_back({gradients[p].view(), gradients[p + 1].view()});
  }

  const Arena::Scope scope(context.scratch());
  const HorizontalLoss<T> forward = horizontal_loss<T>(context, EmbeddingPairs<T>(pairs), options);
  horizontal_loss_backward<T>(context, EmbeddingPairs<T>(pairs), options, forward, scale,
                              GradientPairs<T>(gradient_pairs));
  Step step{.loss = to_host(context, forward.loss)[0], .gradient = {}, .b = {}, .xi = {}};
  for (std::size_t i = 0; i < z.size(); ++i) {
    step.gradient.emplace_back(z[i].rows, d, gradients[i].to_host());
    const int64_t set = static_cast<int64_t>(i);
    step.b.emplace_back(d, d, to_host(context, forward.slim.b[set]));
    if (options.slim.iterations > 1) {
      step.xi.emplace_back(d, d, to_host(context, forward.slim.xi[set]));
    }
  }
  context.check_faults();
  return step;
}

TEST_P(HorizontalLossOp, IsTheSumOfItsPairs) {
  const std::vector<Matrix> z = {embeddings(20, 9, 1), embeddings(31, 9, 2), embeddings(17, 9, 3),
                                 embeddings(20, 9, 4)};

  const Step both = run<double>(context(), z);

  const Step users = run<double>(context(), {z[0], z[1]}),
             items = run<double>(context(), {z[2], z[3]});
  EXPECT_TRUE(close(both.loss, users.loss + items.loss, 1e-12));
  EXPECT_TRUE(close(both.gradient[1].values, users.gradient[1].values, 1e-10));
  EXPECT_TRUE(close(both.gradient[2].values, items.gradient[0].values, 1e-10));
}

template <class T>
void check_plain_loops(Context& context, int64_t n, int64_t d, SlimStep step, double loss_tolerance,
                       double gradient_tolerance) {
  AlignmentOptions options;
  options.slim.step = step;
  const uint64_t seed = static_cast<uint64_t>(10 * n + d);
  std::vector<Matrix> z = {embeddings(n, d, seed), embeddings(n + 2, d, seed + 5)};
  for (Matrix& one : z) {
    for (double& x : one.values) x = static_cast<float>(x);
  }

  const Step made = run<T>(context, z, options);

  const auto source = reference::slim(z[0], options.slim),
             target = reference::slim(z[1], options.slim);
  const double loss = reference::graph_distance(source.b, target.b, options.graph_floor);
  const Matrix d_source = reference::slim_gradient(
      z[0], source, step, reference::graph_gradient(source.b, target.b, options.graph_floor));
  const Matrix d_target = reference::slim_gradient(
      z[1], target, step, reference::graph_gradient(target.b, source.b, options.graph_floor));
  EXPECT_TRUE(close(made.loss, loss, loss_tolerance)) << n << " x " << d;
  EXPECT_TRUE(close(made.gradient[0].values, d_source.values, gradient_tolerance))
      << n << " x " << d;
  EXPECT_TRUE(close(made.gradient[1].values, d_target.values, gradient_tolerance))
      << n << " x " << d;
}

TEST_P(HorizontalLossOp, EqualsThePlainLoops) {
  for (const SlimStep step : {SlimStep::exact, SlimStep::paper}) {
    for (const int64_t d : {2, 31, 32, 33}) {
      for (const int64_t n : {31, 257}) {
        check_plain_loops<double>(context(), n, d, step, 1e-9, 1e-8);
        check_plain_loops<float>(context(), n, d, step, 2e-4, 2e-3);
      }
    }
  }
}

// The loss with Xi and nu frozen at the base point, where no |B_ij| is near its kink.
TEST_P(HorizontalLossOp, GradientIsTheCentralDifferenceWithPhiFrozen) {
  for (const SlimStep slim_step : {SlimStep::exact, SlimStep::paper}) {
    AlignmentOptions options;
    options.slim.step = slim_step;
    std::vector<Matrix> z = {embeddings(9, 5, 11), embeddings(12, 5, 12)};
    const Step base = run<double>(context(), z, options);
    for (const Matrix& b : base.b) {
      for (int64_t i = 0; i < 25; ++i) {
        const double weight = std::abs(b.values[static_cast<std::size_t>(i)]);
        ASSERT_TRUE(i % 6 == 0 || weight > 1e-3) << "too near a kink: choose another seed";
      }
    }
    const auto loss = [&] {
      const Matrix source = reference::slim_step(z[0], base.xi[0], 0.1, slim_step).b;
      const Matrix target = reference::slim_step(z[1], base.xi[1], 0.1, slim_step).b;
      return reference::graph_distance(source, target, options.graph_floor);
    };

    for (std::size_t set = 0; set < 2; ++set) {
      std::vector<double> differences;
      for (double& x : z[set].values) {
        const double at = x, h = 1e-5;
        x = at + h;
        const double up = loss();
        x = at - h;
        const double down = loss();
        x = at;
        differences.push_back((up - down) / (2 * h));
      }
      EXPECT_TRUE(close(base.gradient[set].values, differences, 1e-6));
    }
  }
}

TEST_P(HorizontalLossOp, BackwardAddsItsScaledGradient) {
  const std::vector<Matrix> z = {embeddings(20, 7, 21), embeddings(15, 7, 22)};
  const Step once = run<double>(context(), z);

  const Step added = run<double>(context(), z, {}, -3, 0.5);

  for (std::size_t set = 0; set < 2; ++set) {
    std::vector<double> expected = once.gradient[set].values;
    for (double& x : expected) x = 0.5 - 3 * x;
    EXPECT_TRUE(close(added.gradient[set].values, expected, 1e-12));
  }
}

TEST_P(HorizontalLossOp, RelativeNuMakesTheLossFreeOfACommonScale) {
  AlignmentOptions options;
  options.slim.nu_scale = NuScale::relative;
  const std::vector<Matrix> z = {embeddings(20, 9, 31), embeddings(20, 9, 32)};
  const Step one = run<double>(context(), z, options);

  for (const double factor : {1e-3, 1e3}) {
    const Step scaled = run<double>(context(), {factor * z[0], factor * z[1]}, options);
    EXPECT_TRUE(close(scaled.loss, one.loss, 1e-9));
    EXPECT_TRUE(close((factor * scaled.gradient[0]).values, one.gradient[0].values, 1e-8));
  }
}

TEST_P(HorizontalLossOp, IdenticalDomainsHaveNoLossAndNoGradient) {
  const Matrix z = embeddings(40, 12, 41);
  const Step apart = run<float>(context(), {z, embeddings(40, 12, 42)});

  const Step same = run<float>(context(), {z, z});

  EXPECT_LE(std::abs(same.loss), 1e-5 * apart.loss);
  for (const double x : same.gradient[0].values) EXPECT_LE(std::abs(x), 1e-4);
}

// A constant column, a zero column, twins, one row only, all zeros, and far scales: a finite
// answer.
TEST_P(HorizontalLossOp, DegenerateEmbeddingsHaveAFiniteAnswer) {
  const int64_t d = 8;
  std::vector<Matrix> cases;
  for (int kind = 0; kind < 3; ++kind) {
    Matrix z = embeddings(20, d, 51);
    for (int64_t i = 0; i < 20; ++i) z(i, 3) = kind == 0 ? 2 : kind == 1 ? 0 : z(i, 4);
    cases.push_back(z);
  }
  cases.push_back(embeddings(1, d, 52));
  cases.push_back(Matrix(5, d));
  for (const double spread : {1e-20, 1e-3, 1e3}) cases.push_back(embeddings(20, d, 53, spread));

  for (const NuScale scale : {NuScale::absolute, NuScale::relative}) {
    AlignmentOptions options;
    options.slim.nu_scale = scale;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Step step = run<float>(context(), {cases[i], embeddings(30, d, 54)}, options);
      EXPECT_TRUE(std::isfinite(step.loss)) << "case " << i;
      EXPECT_GE(step.loss, 0) << "case " << i;
      for (const Matrix& gradient : step.gradient) {
        for (const double x : gradient.values) EXPECT_TRUE(std::isfinite(x)) << "case " << i;
      }
    }
  }
}

TEST_P(HorizontalLossOp, OneAttributeIsRefusedWithASentence) {
  try {
    run<float>(context(), {Matrix(5, 1), Matrix(5, 1)});
    FAIL() << "one attribute was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("at least 2 attributes"), std::string::npos);
  }
}

TEST_P(HorizontalLossOp, StepsAfterTheFirstAllocateNothing) {
  const std::vector<Matrix> z = {embeddings(30, 33, 61), embeddings(20, 33, 62)};
  run<float>(context(), z);
  const int64_t before = context().scratch().allocations();

  run<float>(context(), z);

  EXPECT_EQ(context().scratch().allocations(), before);
}

TEST_P(HorizontalLossOp, HasTheSameBitsOnAnyNumberOfThreads) {
  const std::vector<Matrix> z = {embeddings(30, 33, 71), embeddings(40, 33, 72),
                                 embeddings(50, 33, 73), embeddings(60, 33, 74)};
  std::vector<Step> steps;
  for (const int threads : {1, 2, 7}) {
    steps.push_back(run<float>(*make_context(GetParam(), {.threads = threads}), z));
  }

  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].loss, steps[0].loss);
    for (std::size_t set = 0; set < 4; ++set) {
      EXPECT_EQ(steps[i].gradient[set].values, steps[0].gradient[set].values);
    }
  }
}

}  // namespace
}  // namespace cfaa::test
