// The factorisations by products, which a CUDA graph can hold; they exist on the GPU alone.

#if CFAA_HAS_CUDA

#include "kernels/polar.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "bench/reference/horizontal.h"
#include "cuda/graph.h"
#include "cuda/polar_polynomials.h"
#include "host/core/error.h"
#include "host/core/tensor.h"
#include "host/ops/horizontal_loss.h"
#include "kernels/cholesky.cuh"
#include "tests/compare.h"
#include "tests/on_cuda.h"
#if CFAA_EMULATED
#include "emulator/control.h"
#endif

namespace cfaa::test {
namespace {

using reference::Matrix;

TEST(PolarPolynomials, TakeTheWholeIntervalToOne) {
  for (const double least : {1.0, 0.9999, 0.5, 1e-2, 1e-3, 1e-4}) {
    const auto row = cuda::polar_polynomials(least, 10);

    ASSERT_EQ(row.size(), 10u);
    for (int i = 0; i <= 2000; ++i) {
      double x = std::pow(least, i / 2000.0);
      for (const cuda::OddQuintic& p : row) x = p(x);
      EXPECT_NEAR(x, 1, 4e-15) << least;
    }
  }
}

// 1 - x^2 = e becomes at most e^3.
TEST(PolarPolynomials, EndWithTheStepThatCubesWhatIsLeft) {
  const cuda::OddQuintic last = cuda::polar_polynomials(1e-3, 3).back();

  for (const double e : {-0.9, -0.1, 1e-3, 0.5, 1.0}) {
    const double x = last(std::sqrt(1 - e));
    EXPECT_LE(std::abs(1 - x * x), std::abs(e * e * e) + 1e-15) << e;
  }
}

// Householder's reflection of a random vector after that of another.
Matrix orthogonal(int64_t n, uint64_t seed) {
  Matrix result = reference::identity(n);
  for (const uint64_t s : {seed, seed + 1}) {
    const Matrix v(n, 1, normal<double>(n, s));
    const Matrix square = reference::transpose(v) * v;
    result = result * (reference::identity(n) + (-2 / square(0, 0)) * (v * transpose(v)));
  }
  return result;
}

// Symmetric, with eigenvalues from 1 / condition to 1.
Matrix positive(int64_t n, double condition, uint64_t seed) {
  const Matrix q = orthogonal(n, seed);
  Matrix values = reference::identity(n);
  for (int64_t i = 0; i < n; ++i) {
    const double at = n == 1 ? 0 : static_cast<double>(i) / static_cast<double>(n - 1);
    values(i, i) = std::pow(condition, -at);
  }
  return q * values * reference::transpose(q);
}

Tensor<double, 3> upload(Context& context, const std::vector<Matrix>& matrices) {
  std::vector<double> all;
  for (const Matrix& one : matrices) all.insert(all.end(), one.values.begin(), one.values.end());
  const int64_t n = matrices[0].rows;
  return Tensor<double, 3>(context, {static_cast<int64_t>(matrices.size()), n, n}, all.data());
}

std::string fault_of(Context& context) {
  try {
    context.check_faults();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class PolarFactor : public OnCuda {};

TEST_F(PolarFactor, IsTheOrthogonalPart) {
  for (const int64_t n : {1, 2, 31, 33, 65}) {
    for (const double condition : {1.0, 30.0, 4000.0}) {
      const Matrix first = orthogonal(n, 5), second = orthogonal(n, 9);
      // Scales far from one: the iteration finds its own.
      const Tensor<double, 3> x = upload(context(), {1e3 * (first * positive(n, condition, 1)),
                                                     1e-5 * (second * positive(n, 1.5, 2))});
      const std::vector<double> bounds = {1e3 / condition, 1e-5 / 1.5};
      const Tensor<double, 1> least(context(), {2}, bounds.data());

      cuda::polar_factor(context(), x, least.view().data, 9, FaultSite::wasserstein);

      EXPECT_EQ(fault_of(context()), "");
      EXPECT_TRUE(close(to_host(context(), x.view()[0]), first.values, 1e-16 * (20 + condition)));
      EXPECT_TRUE(close(to_host(context(), x.view()[1]), second.values, 2e-15)) << n;
    }
  }
}

// An error of float's rounding times the condition, and orthogonal all the same.
TEST_F(PolarFactor, IsTheOrthogonalPartNearlyWithStepsInFloat) {
  for (const int64_t n : {1, 2, 33, 65}) {
    for (const double condition : {1.0, 30.0, 490.0}) {
      const Matrix expected = orthogonal(n, 5);
      const Tensor<double, 3> x = upload(context(), {1e3 * (expected * positive(n, condition, 1))});
      const Tensor<double, 1> least(context(), {1}, std::vector<double>{1e3 / condition}.data());

      cuda::polar_factor(context(), x, least.view().data, 9, FaultSite::slim_penalty,
                         cuda::Steps::in_float);

      EXPECT_EQ(fault_of(context()), "");
      Matrix found = expected;
      found.values = to_host(context(), x.view()[0]);
      EXPECT_TRUE(close(found.values, expected.values, 1e-7 * (5 + condition)));
      double largest = 0;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double product = i == j ? -1 : 0;
          for (int64_t k = 0; k < n; ++k) product += found(k, i) * found(k, j);
          largest = std::max(largest, std::abs(product));
        }
      }
      EXPECT_LT(largest, 1e-11);
    }
  }
}

#if CFAA_EMULATED
struct LossAndGradients {
  std::vector<float> loss, source, target;
};

LossAndGradients horizontal_on(emulator::Architecture architecture) {
  emulator::set_architecture(architecture);
  const auto context = make_context("cuda", {.threads = 2});
  emulator::set_architecture(emulator::Architecture::sm_80);
  const std::array<int64_t, 2> shape = {80, 48};
  const Tensor<float, 2> source(*context, shape, normal<float>(80 * 48, 1).data()),
      target(*context, shape, normal<float>(80 * 48, 2, 0.5, 2).data());
  Tensor<float, 2> of_source(*context, shape), of_target(*context, shape);
  of_source.fill_zero();
  of_target.fill_zero();
  const EmbeddingPair<float> pair{source.view(), target.view()};
  const GradientPair<float> gradient{of_source.view(), of_target.view()};
  const Arena::Scope scope(context->scratch());
  const auto forward = horizontal_loss<float>(*context, {&pair, 1}, {});
  horizontal_loss_backward<float>(*context, {&pair, 1}, {}, forward, 1, {&gradient, 1});
  LossAndGradients found{to_host(*context, forward.loss), of_source.to_host(), of_target.to_host()};
  context->check_faults();
  return found;
}

TEST(SlowDouble, TakesStepsInFloatWithinTheLosssTolerance) {
  const LossAndGradients exact = horizontal_on(emulator::Architecture::sm_80);

  const LossAndGradients found = horizontal_on(emulator::Architecture::sm_120);

  EXPECT_NE(found.source, exact.source) << "the steps were in double";
  EXPECT_TRUE(close(found.loss, exact.loss, 1e-6));
  EXPECT_TRUE(close(found.source, exact.source, 2e-5));
  EXPECT_TRUE(close(found.target, exact.target, 2e-5));
}
#endif

TEST_F(PolarFactor, LatchesWhatItsStepsDoNotReach) {
  const Matrix good = orthogonal(20, 1), bad = orthogonal(20, 3) * positive(20, 1e9, 1);
  const Tensor<double, 3> x = upload(context(), {good, bad});
  const std::vector<double> bounds = {1, 1e-9};
  const Tensor<double, 1> least(context(), {2}, bounds.data());

  cuda::polar_factor(context(), x, least.view().data, 9, FaultSite::wasserstein);

  EXPECT_EQ(fault_of(context()).find("the Gaussian Wasserstein distance, problem 1: the solver by "
                                     "products did not converge; set alignment.solver"),
            0u);
}

TEST_F(PolarFactor, LatchesNaN) {
  Matrix bad = orthogonal(20, 3);
  bad(4, 7) = std::numeric_limits<double>::quiet_NaN();
  const Tensor<double, 3> x = upload(context(), {bad});
  const Tensor<double, 1> least(context(), {1}, std::vector<double>{1}.data());

  cuda::polar_factor(context(), x, least.view().data, 9, FaultSite::slim_penalty);

  EXPECT_NE(fault_of(context()).find("did not converge"), std::string::npos);
}

class BlockedCholesky : public OnCuda {};

TEST_F(BlockedCholesky, MakesTheFactorAndItsInverse) {
  for (const int64_t n : {1, 31, 32, 33, 64, 100}) {
    const Matrix first = positive(n, 1e4, 1), second = 1e6 * positive(n, 3, 2);
    const Tensor<double, 3> a = upload(context(), {first, second}),
                            y = upload(context(), {first, second});

    cuda::blocked_cholesky<double>(context(), a, y, FaultSite::slim);

    EXPECT_EQ(fault_of(context()), "");
    for (std::size_t s = 0; s < 2; ++s) {
      const Matrix upper(n, n, to_host(context(), a.view()[static_cast<int64_t>(s)]));
      const Matrix inverse(n, n, to_host(context(), y.view()[static_cast<int64_t>(s)]));
      const Matrix product = reference::transpose(upper) * upper;
      EXPECT_TRUE(close(product.values, (s == 0 ? first : second).values, 1e-14)) << n;
      const Matrix unit = inverse * reference::transpose(upper);
      EXPECT_TRUE(close(unit.values, reference::identity(n).values, 1e-12)) << n;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = i + 1; j < n; ++j) {
          EXPECT_EQ(upper(j, i), 0);
          EXPECT_EQ(inverse(i, j), 0);
        }
      }
    }
  }
}

TEST_F(BlockedCholesky, NamesTheMinorThatIsNotPositive) {
  Matrix good = positive(70, 10, 1), bad = reference::identity(70);
  bad(40, 40) = -1;
  const Tensor<double, 3> a = upload(context(), {good, bad}), y = upload(context(), {good, bad});

  cuda::blocked_cholesky<double>(context(), a, y, FaultSite::slim);

  EXPECT_EQ(fault_of(context()).find(
                "SLIM, problem 1: the matrix is not positive definite (leading minor 41)"),
            0u);
}

TEST_F(BlockedCholesky, AndThePolarFactorHaveTheSameBitsFromAGraph) {
  const Matrix matrix = positive(50, 1e4, 1);
  const Tensor<double, 1> least(context(), {1}, std::vector<double>{1e-2}.data());
  const auto solved = [&](bool graph) {
    const Tensor<double, 3> a = upload(context(), {matrix}), y = upload(context(), {matrix});
    const auto step = [&] {
      cuda::blocked_cholesky<double>(context(), a, y, FaultSite::slim);
      cuda::polar_factor(context(), a, least.view().data, 9, FaultSite::slim);
    };
    if (graph) {
      cuda::Graph captured(device());
      captured.capture(step);
      EXPECT_EQ(captured.captured_segments(), 1u);
      EXPECT_EQ(captured.calls_between_segments(), 0u);
      captured.replay();
      return to_host(context(), a.view());
    }
    step();
    return to_host(context(), a.view());
  };

  const std::vector<double> plain = solved(false);

  EXPECT_EQ(solved(true), plain);
}

}  // namespace
}  // namespace cfaa::test

#endif  // CFAA_HAS_CUDA
