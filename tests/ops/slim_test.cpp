#include "host/ops/slim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/reference/horizontal.h"
#include "host/core/error.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

using reference::Matrix;

class SlimOp : public OnDevice {};
CFAA_TEST_ON_DEVICES(SlimOp);

// What the op makes of one set, on the host.
struct Solved {
  Matrix b, theta, xi;
  std::vector<double> gamma, objective;
  double nu;
  int rounds;
};

template <class T>
struct Problem {
  int64_t n, d;
  std::vector<T> z;

  Problem(int64_t rows, int64_t cols, uint64_t seed, double mean = 0, double spread = 1)
      : n(rows), d(cols), z(normal<T>(rows * cols, seed, mean, spread)) {}
  Problem(int64_t rows, int64_t cols, const std::vector<T>& values) : n(rows), d(cols), z(values) {}

  Matrix matrix() const { return Matrix(n, d, z); }
};

template <class T>
Solved solve(Context& context, const Problem<T>& problem, SlimOptions options, int64_t padding = 0,
             bool last_objective = true) {
  options.last_objective = last_objective;
  const int64_t d = problem.d;
  const PaddedMatrix<T> z(context, problem.n, d, problem.z, padding);
  const MatrixView<const T> set = z.view();
  const Arena::Scope scope(context.scratch());
  const Slim result = slim<T>(context, {&set, 1}, options);
  Solved out{.b = Matrix(d, d, to_host(context, result.b)),
             .theta = Matrix(d, d, to_host(context, result.theta)),
             .xi = options.iterations > 1 ? Matrix(d, d, to_host(context, result.xi))
                                          : 2.0 * reference::identity(d),
             .gamma = to_host(context, result.gamma),
             .objective = to_host(context, result.objective),
             .nu = to_host(context, result.nu)[0],
             .rounds = to_host(context, result.rounds)[0]};
  context.check_faults();
  return out;
}

// dZ for the upstream gradient `g` of B, added to `start`.
template <class T>
std::vector<T> gradient(Context& context, const Problem<T>& problem, const SlimOptions& options,
                        const std::vector<double>& g, double scale, const std::vector<T>& start,
                        int64_t padding = 0) {
  const int64_t n = problem.n, d = problem.d;
  const PaddedMatrix<T> z(context, n, d, problem.z, padding), dz(context, n, d, start, 2 * padding);
  const Tensor<double, 3> upstream(context, {1, d, d}, g.data());
  const MatrixView<const T> set = z.view();
  const MatrixView<T> out = dz.view();
  const Arena::Scope scope(context.scratch());
  const Slim forward = slim<T>(context, {&set, 1}, options);
  slim_backward<T>(context, {&set, 1}, options, forward, upstream, scale, {&out, 1});
  context.check_faults();
  return dz.to_host();
}

TEST_P(SlimOp, TwoAttributesHaveTheSolutionOfOneRegressionEach) {
  // Gram = [10 14; 14 20]; the penalty of the first round is nu |B|^2.
  const Problem<double> problem(2, 2, {1, 2, 3, 4});
  const SlimOptions options{.nu = 0.5, .delta = 1e-4, .iterations = 1};

  const Solved solved = solve(context(), problem, options);

  EXPECT_TRUE(close(solved.b.values, std::vector<double>{0, 14.0 / 11, 14.0 / 21, 0}, 1e-14));
  const double residual =
      (20 - 14.0 * 14 / 11 * (2 - 10.0 / 11)) + (10 - 14.0 * 14 / 21 * (2 - 20.0 / 21));
  const double penalty =
      std::sqrt(std::pow(14.0 / 11, 2) + 1e-4) + std::sqrt(std::pow(14.0 / 21, 2) + 1e-4);
  EXPECT_TRUE(close(solved.objective[0], residual / 2 + penalty, 1e-13));
}

template <class T>
void check_plain_loops(Context& context, int64_t n, int64_t d, const SlimOptions& options) {
  const Problem<T> problem(n, d, static_cast<uint64_t>(100 * n + d), 0.3, 0.8);

  const Solved solved = solve(context, problem, options, 3);

  const reference::SlimRounds expected = reference::slim(problem.matrix(), options);
  EXPECT_TRUE(close(solved.b.values, expected.b.values, 1e-9)) << n << " x " << d;
  EXPECT_TRUE(close(solved.theta.values, expected.theta.values, 1e-9)) << n << " x " << d;
  EXPECT_TRUE(close(solved.xi.values, expected.xi.values, 1e-9)) << n << " x " << d;
  EXPECT_TRUE(close(solved.objective, expected.objective, 1e-10)) << n << " x " << d;
  EXPECT_TRUE(close(solved.nu, expected.nu, 1e-14));
  EXPECT_EQ(solved.rounds, options.iterations);
  if (options.step == SlimStep::exact) {
    EXPECT_TRUE(close(solved.gamma, expected.gamma, 1e-9)) << n << " x " << d;
  }
}

TEST_P(SlimOp, EqualsThePlainLoopsAtOddSizesAndPaddedRows) {
  for (const int64_t d : {2, 31, 32, 33}) {
    for (const int64_t n : {1, 31, 257}) {
      for (const SlimStep step : {SlimStep::exact, SlimStep::paper}) {
        check_plain_loops<float>(context(), n, d, {.iterations = 3, .step = step});
        check_plain_loops<double>(context(), n, d,
                                  {.nu_scale = NuScale::relative, .iterations = 2, .step = step});
        check_plain_loops<float>(context(), n, d,
                                 {.iterations = 3, .step = step, .solver = Solver::cusolver});
      }
    }
  }
}

TEST_P(SlimOp, LeavingOutTheLastObjectiveChangesNothingElse) {
  const Problem<float> problem(40, 33, 5);
  for (const SlimStep step : {SlimStep::exact, SlimStep::paper}) {
    for (const int64_t iterations : {1, 3}) {
      const SlimOptions options{.iterations = iterations, .step = step};

      Solved with = solve(context(), problem, options),
             without = solve(context(), problem, options, 0, false);

      EXPECT_EQ(without.b.values, with.b.values);
      EXPECT_EQ(without.theta.values, with.theta.values);
      EXPECT_EQ(without.xi.values, with.xi.values);
      EXPECT_EQ(without.gamma, with.gamma);
      EXPECT_EQ(without.rounds, with.rounds);
      EXPECT_TRUE(std::isnan(without.objective.back()));
      with.objective.pop_back();
      without.objective.pop_back();
      EXPECT_EQ(without.objective, with.objective);
    }
  }
}

TEST_P(SlimOp, DiagonalOfBIsZero) {
  for (const SlimStep step : {SlimStep::exact, SlimStep::paper}) {
    const Solved solved = solve(context(), Problem<float>(40, 33, 5), {.step = step});
    for (int64_t j = 0; j < 33; ++j) EXPECT_EQ(solved.b(j, j), 0);
  }
}

TEST_P(SlimOp, ExactStepNeverRaisesTheObjective) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const int64_t d = 2 + static_cast<int64_t>(seed) % 12, n = 1 + static_cast<int64_t>(seed) * 2;
    const double spread = std::pow(10.0, static_cast<double>(seed % 5) - 2);
    const Problem<double> problem(n, d, seed, 0.2, spread);

    const Solved solved = solve(context(), problem, {.iterations = 12});

    for (std::size_t round = 1; round < 12; ++round) {
      EXPECT_LE(solved.objective[round], solved.objective[round - 1] * (1 + 1e-11))
          << "seed " << seed << ", round " << round;
    }
  }
}

TEST_P(SlimOp, ObjectiveIsTheOneOfItsB) {
  for (const SlimStep step : {SlimStep::exact, SlimStep::paper}) {
    const Problem<double> problem(20, 9, 3);

    const Solved solved = solve(context(), problem, {.iterations = 4, .step = step});

    const double expected = reference::slim_objective(problem.matrix(), solved.b, 0.1, 1e-4);
    EXPECT_TRUE(close(solved.objective[3], expected, 1e-12));
  }
}

TEST_P(SlimOp, NoPerturbationOfBLowersWhatTheRoundMinimises) {
  const Problem<double> problem(12, 7, 11);
  const Solved solved = solve(context(), problem, {});
  const Matrix z = problem.matrix(), phi = 0.5 * solved.xi;
  const double least = reference::penalised_residual(z, solved.b, 0.1, phi);

  for (uint64_t seed = 0; seed < 50; ++seed) {
    Matrix b = solved.b;
    const std::vector<double> noise = normal<double>(49, seed, 0, 1e-3);
    for (int64_t i = 0; i < 49; ++i) {
      if (i % 8 != 0) b.values[static_cast<std::size_t>(i)] += noise[static_cast<std::size_t>(i)];
    }
    EXPECT_GT(reference::penalised_residual(z, b, 0.1, phi), least);
  }
}

TEST_P(SlimOp, PaperStepIsThePrintedFormula) {
  const Problem<double> problem(12, 7, 12);

  const Solved solved = solve(context(), problem, {.step = SlimStep::paper});

  const Matrix z = problem.matrix();
  const Matrix theta = reference::inverse(reference::transpose(z) * z + 0.1 * solved.xi);
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t j = 0; j < 7; ++j) {
      const double printed = i == j ? 0 : -theta(i, j) / theta(j, j);
      EXPECT_NEAR(solved.b(i, j), printed, 1e-11);
    }
  }
}

TEST_P(SlimOp, StopsWhereTheObjectiveStopsFalling) {
  const Problem<double> problem(30, 8, 4);
  const SlimOptions options{.iterations = 40, .tolerance = 1e-3};

  const Solved solved = solve(context(), problem, options);

  ASSERT_GT(solved.rounds, 1);
  ASSERT_LT(solved.rounds, 40);
  const auto fall = [&](int round) {
    const double before = solved.objective[static_cast<std::size_t>(round - 2)];
    return (before - solved.objective[static_cast<std::size_t>(round - 1)]) / before;
  };
  EXPECT_LT(fall(solved.rounds), 1e-3);
  for (int round = 2; round < solved.rounds; ++round) EXPECT_GE(fall(round), 1e-3);
  for (int round = solved.rounds; round < 40; ++round) {
    EXPECT_TRUE(std::isnan(solved.objective[static_cast<std::size_t>(round)]));
  }
  const Solved fixed = solve(context(), problem, {.iterations = solved.rounds});
  EXPECT_EQ(solved.b.values, fixed.b.values);
  EXPECT_EQ(solved.theta.values, fixed.theta.values);
  EXPECT_EQ(solved.xi.values, fixed.xi.values);
}

TEST_P(SlimOp, RelativeNuFollowsTheScaleOfEachSet) {
  const SlimOptions options{.nu = 0.25, .nu_scale = NuScale::relative};
  const Problem<double> problem(20, 5, 8);
  const Solved solved = solve(context(), problem, options);
  const Matrix z = problem.matrix();
  const double mean = reference::trace(reference::transpose(z) * z) / 5;

  EXPECT_TRUE(close(solved.nu, 0.25 * mean, 1e-14));
  for (const double factor : {1e-3, 1e3}) {
    Problem<double> scaled = problem;
    for (double& x : scaled.z) x *= factor;
    const Solved again = solve(context(), scaled, options);
    EXPECT_TRUE(close(again.b.values, solved.b.values, 1e-10));
    EXPECT_TRUE(close(again.objective[2], solved.objective[2] * factor * factor, 1e-10));
  }
}

template <class T>
void check_printed_gradient(Context& context, int64_t n, int64_t d, SlimStep step,
                            double tolerance) {
  const SlimOptions options{.step = step};
  const Problem<T> problem(n, d, static_cast<uint64_t>(n + 7 * d), 0.2);
  const std::vector<double> g = normal<double>(d * d, 77);

  const std::vector<T> dz =
      gradient<T>(context, problem, options, g, 1.0, std::vector<T>(problem.z.size()), 3);

  const Matrix z = problem.matrix();
  const Matrix expected =
      reference::slim_gradient(z, reference::slim(z, options), step, Matrix(d, d, g));
  EXPECT_TRUE(close(dz, expected.values, tolerance)) << n << " x " << d;
}

TEST_P(SlimOp, BackwardIsThePrintedGradient) {
  for (const SlimStep step : {SlimStep::exact, SlimStep::paper}) {
    for (const int64_t d : {2, 31, 32, 33}) {
      for (const int64_t n : {1, 31, 257}) {
        check_printed_gradient<double>(context(), n, d, step, 1e-8);
        check_printed_gradient<float>(context(), n, d, step, 1e-5);
      }
    }
  }
}

// With Xi and nu frozen at the base point; B is smooth in Z there.
TEST_P(SlimOp, BackwardIsTheCentralDifferenceWithPhiFrozen) {
  for (const SlimStep step : {SlimStep::exact, SlimStep::paper}) {
    for (const int64_t n : {3, 9}) {
      const int64_t d = 5;
      const SlimOptions options{.nu_scale = NuScale::relative, .step = step};
      const Problem<double> problem(n, d, 21);
      const std::vector<double> g = normal<double>(d * d, 22);
      const Solved base = solve(context(), problem, options);
      const auto value = [&](const Matrix& z) {
        const Matrix b = reference::slim_step(z, base.xi, base.nu, step).b;
        double sum = 0;
        for (std::size_t i = 0; i < b.values.size(); ++i) sum += g[i] * b.values[i];
        return sum;
      };

      const std::vector<double> dz = gradient<double>(context(), problem, options, g, 1.0,
                                                      std::vector<double>(problem.z.size()));

      std::vector<double> differences;
      Matrix z = problem.matrix();
      for (double& x : z.values) {
        const double at = x, h = 1e-5;
        x = at + h;
        const double up = value(z);
        x = at - h;
        const double down = value(z);
        x = at;
        differences.push_back((up - down) / (2 * h));
      }
      EXPECT_TRUE(close(dz, differences, 1e-7)) << n;
    }
  }
}

TEST_P(SlimOp, BackwardAddsItsScaledGradientAndIgnoresTheDiagonal) {
  const int64_t n = 13, d = 6;
  const Problem<double> problem(n, d, 31);
  std::vector<double> g = normal<double>(d * d, 32);
  const std::vector<double> zero(problem.z.size()), start = normal<double>(n * d, 33);
  const std::vector<double> once = gradient<double>(context(), problem, {}, g, 1.0, zero);
  for (int64_t j = 0; j < d; ++j) g[static_cast<std::size_t>(j * d + j)] = 1e6;

  const std::vector<double> added = gradient<double>(context(), problem, {}, g, -2.5, start);

  std::vector<double> expected = start;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= 2.5 * once[i];
  EXPECT_TRUE(close(added, expected, 1e-13));
}

TEST_P(SlimOp, SetsOfABatchDoNotMix) {
  const int64_t d = 9;
  const Problem<float> a(5, d, 41), b(40, d, 42), c(300, d, 43);
  const PaddedMatrix<float> za(context(), a.n, d, a.z, 1), zb(context(), b.n, d, b.z),
      zc(context(), c.n, d, c.z, 4);
  const std::vector<MatrixView<const float>> sets = {za.view(), zb.view(), zc.view()};

  const Arena::Scope scope(context().scratch());
  const Slim batch = slim<float>(context(), sets, {});

  EXPECT_TRUE(close(to_host(context(), batch.b[0]), solve(context(), a, {}).b.values, 1e-12));
  EXPECT_TRUE(close(to_host(context(), batch.b[1]), solve(context(), b, {}).b.values, 1e-12));
  EXPECT_TRUE(close(to_host(context(), batch.b[2]), solve(context(), c, {}).b.values, 1e-12));
}

TEST_P(SlimOp, SetOfZerosMixesNothing) {
  for (const NuScale scale : {NuScale::absolute, NuScale::relative}) {
    const Problem<float> problem(6, 5, std::vector<float>(30));

    const Solved solved = solve(context(), problem, {.nu_scale = scale});

    EXPECT_EQ(solved.b.values, std::vector<double>(25));
    EXPECT_TRUE(close(solved.objective[2], 2 * 0.1 * 5 * 0.01, 1e-12));
    const std::vector<float> dz =
        gradient<float>(context(), problem, {.nu_scale = scale}, normal<double>(25, 1), 1.0,
                        std::vector<float>(30));
    EXPECT_EQ(dz, std::vector<float>(30));
  }
}

TEST_P(SlimOp, DuplicatedColumnsShareTheirWeight) {
  Problem<double> problem(30, 4, 51);
  for (int64_t i = 0; i < 30; ++i) {
    problem.z[static_cast<std::size_t>(4 * i + 1)] = problem.z[static_cast<std::size_t>(4 * i)];
  }

  const Solved solved = solve(context(), problem, {});

  // Attributes 0 and 1 are the same: each explains the other, and both explain 2 and 3 alike.
  EXPECT_GT(solved.b(0, 1), 0.9);
  EXPECT_TRUE(close(solved.b(0, 1), solved.b(1, 0), 1e-9));
  EXPECT_TRUE(close(solved.b(0, 2), solved.b(1, 2), 1e-9));
  EXPECT_TRUE(close(solved.b(0, 3), solved.b(1, 3), 1e-9));
}

TEST_P(SlimOp, ConstantColumnIsOneAttributeLikeAnother) {
  Problem<double> problem(30, 6, 52, 0.5);
  for (int64_t i = 0; i < 30; ++i) problem.z[static_cast<std::size_t>(6 * i + 2)] = 3;

  const Solved solved = solve(context(), problem, {});

  const reference::SlimRounds expected = reference::slim(problem.matrix(), {});
  EXPECT_TRUE(close(solved.b.values, expected.b.values, 1e-10));
}

// Where double cannot hold the answer, the op says so; it never hands out a NaN in silence.
TEST_P(SlimOp, AnyScaleGivesFiniteNumbersOrAFault) {
  for (const double spread : {1e-20, 1e-10, 1e-3, 1e3, 1e8, 1e15}) {
    for (const NuScale scale : {NuScale::absolute, NuScale::relative}) {
      const Problem<float> problem(10, 17, 61, 0, spread);
      try {
        const Solved solved = solve(context(), problem, {.nu_scale = scale});
        for (const double x : solved.b.values) EXPECT_TRUE(std::isfinite(x)) << spread;
        for (const double x : solved.objective) EXPECT_TRUE(std::isfinite(x)) << spread;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("SLIM"), std::string::npos);
        EXPECT_GT(spread, 1e3) << error.what();
        EXPECT_EQ(scale, NuScale::absolute) << error.what();
      }
    }
  }
}

TEST_P(SlimOp, FaultNamesTheSet) {
  Problem<double> bad(8, 5, 71);
  bad.z[7] = std::nan("");
  const Problem<double> good(8, 5, 72);
  const PaddedMatrix<double> za(context(), 8, 5, good.z), zb(context(), 8, 5, bad.z);
  const std::vector<MatrixView<const double>> sets = {za.view(), zb.view(), za.view()};

  const Arena::Scope scope(context().scratch());
  slim<double>(context(), sets, {});

  try {
    context().check_faults();
    FAIL() << "no fault was latched";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("SLIM"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("problem 1"), std::string::npos) << error.what();
  }
  context().check_faults();
}

TEST_P(SlimOp, ResultHasTheSameBitsOnAnyNumberOfThreads) {
  const Problem<float> a(20, 33, 81), b(50, 33, 82), c(70, 33, 83);
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 5}) {
    const auto own = make_context(GetParam(), {.threads = threads});
    const PaddedMatrix<float> za(*own, a.n, 33, a.z), zb(*own, b.n, 33, b.z),
        zc(*own, c.n, 33, c.z);
    const std::vector<MatrixView<const float>> sets = {za.view(), zb.view(), zc.view()};
    const Arena::Scope scope(own->scratch());
    results.push_back(to_host(*own, slim<float>(*own, sets, {}).b));
  }

  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST_P(SlimOp, NonsenseOptionsAreRefused) {
  const Problem<double> problem(4, 3, 91);

  EXPECT_THROW(solve(context(), problem, {.nu = 0}), Error);
  EXPECT_THROW(solve(context(), problem, {.nu = std::nan("")}), Error);
  EXPECT_THROW(solve(context(), problem, {.delta = 0}), Error);
  EXPECT_THROW(solve(context(), problem, {.iterations = 0}), Error);
  EXPECT_THROW(solve(context(), problem, {.tolerance = -1}), Error);
}

}  // namespace
}  // namespace cfaa::test
