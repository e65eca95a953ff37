#include "host/ops/coupling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "bench/reference/vertical.h"
#include "host/core/error.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

using Values = std::vector<double>;

// The result of a call, on the host.
template <class T>
struct HostCoupling {
  std::vector<T> loss, source_gradient, target_gradient, plan, marginal_error;
  std::vector<int32_t> iterations, converged;

  Values plan_of(std::size_t problem) const { return part(plan, problem, loss.size()); }
  Values source_gradient_of(std::size_t problem) const {
    return part(source_gradient, problem, loss.size());
  }
  Values target_gradient_of(std::size_t problem) const {
    return part(target_gradient, problem, loss.size());
  }

  bool finite() const {
    for (const std::vector<T>* all :
         {&loss, &source_gradient, &target_gradient, &plan, &marginal_error}) {
      for (const T value : *all) {
        if (!std::isfinite(value)) return false;
      }
    }
    return true;
  }

 private:
  static Values part(const std::vector<T>& all, std::size_t problem, std::size_t problems) {
    const std::size_t size = all.size() / problems;
    return Values(all.begin() + static_cast<std::ptrdiff_t>(problem * size),
                  all.begin() + static_cast<std::ptrdiff_t>((problem + 1) * size));
  }
};

// Q problems, source and target as (Q, K).
template <class T>
HostCoupling<T> solve(Context& context, int64_t k, const Values& source, const Values& target,
                      const CouplingOptions& options) {
  const int64_t q = static_cast<int64_t>(source.size()) / k;
  const std::vector<T> s(source.begin(), source.end()), t(target.begin(), target.end());
  const Tensor<T, 2> from(context, {q, k}, s.data()), to(context, {q, k}, t.data());
  Tensor<T, 3> plan(context, {q, k, k});
  const Arena::Scope scope(context.scratch());
  const Coupling<T> result = coupling<T>(context, from.view(), to.view(), options, plan.view());
  HostCoupling<T> host;
  host.loss = to_host(context, result.loss);
  host.source_gradient = to_host(context, result.gradient[0]);
  host.target_gradient = to_host(context, result.gradient[1]);
  host.marginal_error = to_host(context, result.marginal_error);
  host.iterations = to_host(context, result.iterations);
  host.converged = to_host(context, result.converged);
  host.plan = plan.to_host();
  return host;
}

// Ascending, as typical samples come.
Values sorted_normal(int64_t k, uint64_t seed, double mean = 0, double spread = 1) {
  Values values = normal<double>(k, seed, mean, spread);
  std::sort(values.begin(), values.end());
  return values;
}

Values times(double factor, Values values) {
  for (double& value : values) value *= factor;
  return values;
}

class Sinkhorn : public OnDevice {};
CFAA_TEST_ON_DEVICES(Sinkhorn);

class SortedCoupling : public OnDevice {};
CFAA_TEST_ON_DEVICES(SortedCoupling);

TEST_P(Sinkhorn, TwoByTwoIsSolvedByHand) {
  // Costs 0 on the diagonal and 1 off it, mean 1/2: the symmetric plan is proportional to the
  // kernel, whose off-diagonal entry is exp(-1 / (epsilon / 2)) = 1/3.
  CouplingOptions options;
  options.epsilon = 2 / std::log(3.0);

  const HostCoupling<double> result = solve<double>(context(), 2, {0, 1}, {0, 1}, options);

  EXPECT_TRUE(close(result.plan, Values{0.375, 0.125, 0.125, 0.375}, 1e-14));
  EXPECT_TRUE(close(result.loss[0], 0.25, 1e-14));
  EXPECT_TRUE(close(result.source_gradient, Values{-0.25, 0.25}, 1e-14));
  EXPECT_TRUE(close(result.target_gradient, Values{-0.25, 0.25}, 1e-14));
  EXPECT_EQ(result.converged[0], 1);
}

template <class T>
void expect_reference(Context& context, int64_t k, const CouplingOptions& options,
                      double tolerance) {
  constexpr std::size_t problems = 3;
  Values source, target;
  for (std::size_t q = 0; q < problems; ++q) {
    // Of different shifts and spreads; the last one not sorted.
    const Values s = q == 2 ? normal<double>(k, 31) : sorted_normal(k, 10 + q, 0.5 * q, 1);
    const Values t = q == 2 ? normal<double>(k, 32) : sorted_normal(k, 20 + q, 0, 1 + 0.5 * q);
    source.insert(source.end(), s.begin(), s.end());
    target.insert(target.end(), t.begin(), t.end());
  }

  const HostCoupling<T> result = solve<T>(context, k, source, target, options);

  for (std::size_t q = 0; q < problems; ++q) {
    SCOPED_TRACE("K " + std::to_string(k) + ", problem " + std::to_string(q));
    const auto part = [&](const Values& all) {
      return Values(all.begin() + static_cast<std::ptrdiff_t>(q) * k,
                    all.begin() + static_cast<std::ptrdiff_t>(q + 1) * k);
    };
    const Transport wanted = options.solver == OtSolver::exact
                                 ? exact_transport(part(source), part(target))
                                 : entropic_transport(part(source), part(target), options.epsilon,
                                                      options.iterations, options.tolerance);
    EXPECT_TRUE(close(result.plan_of(q), wanted.plan, tolerance));
    EXPECT_TRUE(close(result.loss[q], wanted.loss, tolerance));
    EXPECT_TRUE(close(result.source_gradient_of(q), wanted.source_gradient, tolerance));
    EXPECT_TRUE(close(result.target_gradient_of(q), wanted.target_gradient, tolerance));
    EXPECT_NEAR(result.marginal_error[q], wanted.marginal_error, tolerance);
    EXPECT_EQ(result.iterations[q], wanted.iterations);
  }
}

TEST_P(Sinkhorn, AgreesWithTheReferenceAtEverySize) {
  CouplingOptions options;
  options.iterations = 5;
  for (const int64_t k : {1, 2, 31, 32, 33, 64, 65, 128, 129, 257}) {
    expect_reference<double>(context(), k, options, 1e-11);
    expect_reference<float>(context(), k, options, 2e-5);
  }
}

TEST_P(Sinkhorn, AgreesWithTheReferenceAtEveryEpsilon) {
  CouplingOptions options;
  options.iterations = 20;
  for (const double epsilon : {1e-4, 1e-3, 1e-2, 1.0, 100.0}) {
    SCOPED_TRACE("epsilon " + std::to_string(epsilon));
    options.epsilon = epsilon;
    expect_reference<double>(context(), 33, options, 1e-9);
    expect_reference<float>(context(), 33, options, 1e-3);
  }
}

TEST_P(Sinkhorn, OneIterationUpdatesTheSourceThenTheTarget) {
  CouplingOptions options;
  options.iterations = 1;
  expect_reference<double>(context(), 33, options, 1e-11);
}

TEST_P(Sinkhorn, PlanHasUniformMarginals) {
  const int64_t k = 65;
  CouplingOptions options;
  options.iterations = 2000;
  options.tolerance = 1e-10;

  const HostCoupling<double> result =
      solve<double>(context(), k, sorted_normal(k, 1), sorted_normal(k, 2, 0.3, 1.5), options);

  EXPECT_LT(marginal_error(result.plan_of(0), k), 1e-9);
  EXPECT_EQ(result.converged[0], 1);
}

TEST_P(Sinkhorn, ReportsTheMarginalErrorOfItsPlan) {
  const int64_t k = 33;
  CouplingOptions options;
  options.iterations = 3;

  const HostCoupling<double> result =
      solve<double>(context(), k, sorted_normal(k, 1), sorted_normal(k, 2, 2, 0.2), options);

  EXPECT_TRUE(close(result.marginal_error[0], marginal_error(result.plan_of(0), k), 1e-9));
  EXPECT_GT(result.marginal_error[0], 1e-3);
  EXPECT_EQ(result.converged[0], 0);
}

TEST_P(Sinkhorn, StopsEachProblemAtItsTolerance) {
  const int64_t k = 33;
  CouplingOptions options;
  options.iterations = 1000;
  options.tolerance = 1e-6;
  const Values near = sorted_normal(k, 1), far = sorted_normal(k, 3, 1, 0.3);
  const Values target = sorted_normal(k, 2);
  Values source = near, targets = target;
  source.insert(source.end(), far.begin(), far.end());
  targets.insert(targets.end(), target.begin(), target.end());

  const HostCoupling<double> result = solve<double>(context(), k, source, targets, options);

  for (std::size_t q = 0; q < 2; ++q) {
    const Transport wanted = entropic_transport(q == 0 ? near : far, target, options.epsilon,
                                                options.iterations, options.tolerance);
    EXPECT_EQ(result.iterations[q], wanted.iterations);
    EXPECT_LT(result.iterations[q], 1000);
    EXPECT_LE(result.marginal_error[q], 1e-6);
    EXPECT_TRUE(close(result.plan_of(q), wanted.plan, 1e-10));
    EXPECT_EQ(result.converged[q], 1);
  }
  EXPECT_NE(result.iterations[0], result.iterations[1]);
}

TEST_P(Sinkhorn, GradientIsTheCentralDifferenceWithThePlanFixed) {
  const int64_t k = 9;
  for (const OtSolver solver : {OtSolver::sinkhorn, OtSolver::exact}) {
    CouplingOptions options;
    options.solver = solver;
    const Values source = sorted_normal(k, 5), target = sorted_normal(k, 6, 0.4, 1.3);

    const HostCoupling<double> result = solve<double>(context(), k, source, target, options);

    Values differences[2];
    for (int side = 0; side < 2; ++side) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
        // The loss is quadratic in each sample: the step brings rounding alone.
        const double step = 1e-3;
        Values moved[2] = {source, target};
        moved[side][i] += step;
        const double above = transport_cost(result.plan, moved[0], moved[1]);
        moved[side][i] -= 2 * step;
        const double below = transport_cost(result.plan, moved[0], moved[1]);
        differences[side].push_back((above - below) / (2 * step));
      }
    }
    EXPECT_TRUE(close(result.source_gradient, differences[0], 1e-10));
    EXPECT_TRUE(close(result.target_gradient, differences[1], 1e-10));
  }
}

TEST_P(Sinkhorn, PapersScaleDividesByKSquared) {
  const int64_t k = 31;
  const Values source = sorted_normal(k, 1), target = sorted_normal(k, 2);
  for (const OtSolver solver : {OtSolver::sinkhorn, OtSolver::exact}) {
    CouplingOptions options;
    options.solver = solver;
    const HostCoupling<double> transport = solve<double>(context(), k, source, target, options);
    options.scale = OtScale::paper;
    const HostCoupling<double> paper = solve<double>(context(), k, source, target, options);

    const double share = 1.0 / static_cast<double>(k * k);
    EXPECT_TRUE(close(paper.loss[0], share * transport.loss[0], 1e-14));
    EXPECT_TRUE(close(paper.source_gradient, times(share, transport.source_gradient), 1e-14));
    EXPECT_TRUE(close(paper.target_gradient, times(share, transport.target_gradient), 1e-14));
    EXPECT_EQ(paper.plan, transport.plan);
  }
}

TEST_P(Sinkhorn, ExactIsTheLimitOfSmallEpsilon) {
  const int64_t k = 16;
  const Values source = sorted_normal(k, 1), target = sorted_normal(k, 2, 0.5, 0.7);
  CouplingOptions options;
  options.iterations = 3000;
  options.tolerance = 1e-6;
  const double exact = exact_transport(source, target).loss;

  double previous = std::numeric_limits<double>::infinity();
  for (const double epsilon : {0.1, 0.03, 0.01}) {
    options.epsilon = epsilon;
    const double excess = solve<double>(context(), k, source, target, options).loss[0] - exact;
    EXPECT_GT(excess, 0);
    EXPECT_LT(excess, previous);
    previous = excess;
  }

  EXPECT_LT(previous, 0.1 * exact);
}

template <class T>
void expect_finite_at(Context& context, double epsilon, double spread, int64_t k) {
  SCOPED_TRACE(testing::Message() << "epsilon " << epsilon << ", spread " << spread << ", K " << k);
  CouplingOptions options;
  options.epsilon = epsilon;
  options.iterations = 12;
  const Values source = times(spread, normal<double>(k, 3, 0.2)),
               target = times(spread, normal<double>(k, 4));

  const HostCoupling<T> result = solve<T>(context, k, source, target, options);

  EXPECT_TRUE(result.finite());
  EXPECT_GE(result.loss[0], T(0));
  // The last half-step makes the target marginal uniform in every regime.
  const Values plan = result.plan_of(0);
  for (int64_t j = 0; j < k; ++j) {
    double column = 0;
    for (int64_t i = 0; i < k; ++i) column += plan[static_cast<std::size_t>(i * k + j)];
    EXPECT_NEAR(column * static_cast<double>(k), 1, 1e-4);
  }
}

TEST_P(Sinkhorn, IsFiniteForEveryEpsilonThatFloatCanHold) {
  for (const double epsilon :
       {1e-45, 1e-38, 1e-20, 1e-12, 1e-8, 1e-5, 1e-3, 1.0, 1e5, 1e20, 3e38}) {
    for (const int64_t k : {1, 2, 33}) {
      expect_finite_at<float>(context(), epsilon, 1, k);
      expect_finite_at<double>(context(), epsilon, 1, k);
    }
  }
}

TEST_P(Sinkhorn, IsFiniteForEverySpread) {
  for (const double spread : {1e-20, 1e-10, 1e-3, 1e3, 1e10, 1e15}) {
    for (const double epsilon : {1e-30, 0.05, 1e30}) {
      expect_finite_at<float>(context(), epsilon, spread, 33);
      expect_finite_at<double>(context(), epsilon, spread, 33);
    }
  }
}

template <class T>
void expect_scales(Context& context, double factor, double tolerance) {
  const int64_t k = 33;
  // A power of two near the factor, so that both calls see the same mantissas.
  const double scale = std::exp2(std::round(std::log2(factor)));
  const Values source = sorted_normal(k, 1), target = sorted_normal(k, 2, 0.4);

  const HostCoupling<T> base = solve<T>(context, k, source, target, {});
  const HostCoupling<T> scaled =
      solve<T>(context, k, times(scale, source), times(scale, target), {});

  EXPECT_TRUE(close(scaled.plan, base.plan, tolerance));
  EXPECT_TRUE(close(Values(scaled.source_gradient.begin(), scaled.source_gradient.end()),
                    times(scale, Values(base.source_gradient.begin(), base.source_gradient.end())),
                    tolerance));
}

TEST_P(Sinkhorn, PlanDoesNotDependOnTheUnit) {
  for (const double factor : {1e-20, 1e-3, 1e3, 1e15}) {
    expect_scales<float>(context(), factor, 1e-5);
    expect_scales<double>(context(), factor, 1e-12);
  }
}

TEST_P(Sinkhorn, FarApartSetsAreSolvedToo) {
  // The shift dwarfs the spread: nearly all of the cost cancels in the exponents.
  const int64_t k = 33;
  const Values source = sorted_normal(k, 1), target = sorted_normal(k, 2, 100);

  const Transport wanted = entropic_transport(source, target, 0.05, 100);
  const HostCoupling<float> single = solve<float>(context(), k, source, target, {});
  const HostCoupling<double> twice = solve<double>(context(), k, source, target, {});

  EXPECT_TRUE(close(twice.plan, wanted.plan, 1e-10));
  EXPECT_TRUE(close(single.plan, wanted.plan, 1e-4));
  EXPECT_TRUE(close(single.loss[0], wanted.loss, 1e-5));
}

TEST_P(Sinkhorn, OutlierIsSolvedToo) {
  // One sample a thousand spreads away: potentials of very different sizes.
  const int64_t k = 32;
  Values source = sorted_normal(k, 1), target = sorted_normal(k, 2);
  source.back() = 1000;

  const Transport wanted = entropic_transport(source, target, 0.05, 100);
  const HostCoupling<float> single = solve<float>(context(), k, source, target, {});
  const HostCoupling<double> twice = solve<double>(context(), k, source, target, {});

  EXPECT_TRUE(close(twice.plan, wanted.plan, 1e-10));
  EXPECT_TRUE(close(single.plan, wanted.plan, 1e-3));
}

TEST_P(Sinkhorn, IdenticalSamplesHaveTheUniformPlan) {
  for (const int64_t k : {1, 33}) {
    const Values all(static_cast<std::size_t>(k), 0.1);
    const double share = 1.0 / static_cast<double>(k * k);

    const HostCoupling<float> result = solve<float>(context(), k, all, all, {});

    EXPECT_TRUE(close(result.plan, Values(static_cast<std::size_t>(k * k), share), 1e-7));
    EXPECT_EQ(result.loss[0], 0);
    EXPECT_EQ(result.source_gradient, std::vector<float>(static_cast<std::size_t>(k), 0));
    EXPECT_EQ(result.target_gradient, std::vector<float>(static_cast<std::size_t>(k), 0));
    EXPECT_EQ(result.marginal_error[0], 0);
    EXPECT_EQ(result.converged[0], 1);
  }
}

TEST_P(Sinkhorn, OneSampleOnEachSideMovesAllMass) {
  const HostCoupling<double> result = solve<double>(context(), 1, {2}, {5}, {});

  EXPECT_TRUE(close(result.plan[0], 1.0, 1e-14));
  EXPECT_TRUE(close(result.loss[0], 9.0, 1e-14));
  EXPECT_TRUE(close(result.source_gradient[0], -6.0, 1e-14));
  EXPECT_TRUE(close(result.target_gradient[0], 6.0, 1e-14));
}

TEST_P(Sinkhorn, FollowsAPermutationOfTheSamples) {
  const int64_t k = 37;
  const Values source = sorted_normal(k, 1), target = sorted_normal(k, 2, 0.3);
  Values shuffled(source.size());
  const auto place = [k](std::size_t i) { return (i * 10 + 3) % static_cast<std::size_t>(k); };
  for (std::size_t i = 0; i < source.size(); ++i) shuffled[place(i)] = source[i];

  for (const OtSolver solver : {OtSolver::sinkhorn, OtSolver::exact}) {
    CouplingOptions options;
    options.solver = solver;
    const HostCoupling<double> plain = solve<double>(context(), k, source, target, options);
    const HostCoupling<double> moved = solve<double>(context(), k, shuffled, target, options);

    EXPECT_TRUE(close(moved.loss[0], plain.loss[0], 1e-12));
    EXPECT_TRUE(close(moved.target_gradient, plain.target_gradient, 1e-12));
    for (std::size_t i = 0; i < source.size(); ++i) {
      EXPECT_TRUE(close(moved.source_gradient[place(i)], plain.source_gradient[i], 1e-9));
    }
  }
}

TEST_P(Sinkhorn, GivesTheSameBitsForEveryNumberOfThreads) {
  const int64_t k = 33, problems = 7;
  const Values source = normal<double>(problems * k, 1), target = normal<double>(problems * k, 2);
  const auto with_threads = [&](int threads) {
    const std::unique_ptr<Context> own = make_context(GetParam(), {.threads = threads});
    return solve<float>(*own, k, source, target, {});
  };

  const HostCoupling<float> one = with_threads(1);
  for (const int threads : {2, 5}) {
    const HostCoupling<float> many = with_threads(threads);
    EXPECT_EQ(one.loss, many.loss);
    EXPECT_EQ(one.plan, many.plan);
    EXPECT_EQ(one.source_gradient, many.source_gradient);
  }
}

TEST_P(Sinkhorn, AllocatesNothingAfterTheFirstCall) {
  const int64_t k = 33;
  const Values source = sorted_normal(k, 1), target = sorted_normal(k, 2);
  solve<float>(context(), k, source, target, {});
  const int64_t before = context().scratch().allocations();

  // An epsilon that needs more than float must find its room as well.
  CouplingOptions small;
  small.epsilon = 1e-6;
  solve<float>(context(), k, source, target, {});
  solve<float>(context(), k, source, target, small);

  EXPECT_EQ(context().scratch().allocations(), before);
}

TEST_P(Sinkhorn, SamplesThatAreNotFiniteSetTheLatch) {
  for (const OtSolver solver : {OtSolver::sinkhorn, OtSolver::exact}) {
    CouplingOptions options;
    options.solver = solver;
    const double nan = std::numeric_limits<double>::quiet_NaN();

    const HostCoupling<float> result =
        solve<float>(context(), 2, {0, 1, 0, nan}, {0, 1, 0, 1}, options);

    EXPECT_TRUE(std::isfinite(result.loss[0]));
    EXPECT_TRUE(std::isnan(result.loss[1]));
    EXPECT_EQ(result.converged[1], 0);
    EXPECT_THROW(context().check_faults(), Error);
  }
}

TEST_P(SortedCoupling, PairsByRankByHand) {
  CouplingOptions options;
  options.solver = OtSolver::exact;

  const HostCoupling<double> result = solve<double>(context(), 3, {5, 1, 3}, {2, 7, 4}, options);

  // 1-2, 3-4, 5-7: costs 1, 1, 4.
  const double third = 1.0 / 3;
  EXPECT_TRUE(close(result.plan, Values{0, third, 0, third, 0, 0, 0, 0, third}, 1e-15));
  EXPECT_TRUE(close(result.loss[0], 2.0, 1e-14));
  EXPECT_TRUE(close(result.source_gradient, Values{-4 * third, -2 * third, -2 * third}, 1e-14));
  EXPECT_TRUE(close(result.target_gradient, Values{2 * third, 4 * third, 2 * third}, 1e-14));
  EXPECT_EQ(result.converged[0], 1);
}

TEST_P(SortedCoupling, AgreesWithTheReferenceAtEverySize) {
  CouplingOptions options;
  options.solver = OtSolver::exact;
  for (const int64_t k : {1, 2, 31, 32, 33, 257}) {
    expect_reference<double>(context(), k, options, 1e-13);
    expect_reference<float>(context(), k, options, 1e-5);
  }
}

TEST_P(SortedCoupling, PairsEqualSamplesInIndexOrder) {
  CouplingOptions options;
  options.solver = OtSolver::exact;

  const HostCoupling<float> result =
      solve<float>(context(), 4, {1, 0, 1, 0}, {3, 3, 3, 3}, options);

  EXPECT_TRUE(
      close(result.plan, Values{0, 0, 0.25, 0, 0.25, 0, 0, 0, 0, 0, 0, 0.25, 0, 0.25, 0, 0}, 1e-7));
}

TEST_P(SortedCoupling, IsFiniteForEverySpread) {
  CouplingOptions options;
  options.solver = OtSolver::exact;
  for (const double spread : {1e-20, 1e-10, 1e10, 1e15}) {
    const Values source = times(spread, normal<double>(33, 1));
    const Values target = times(spread, normal<double>(33, 2));

    const HostCoupling<float> result = solve<float>(context(), 33, source, target, options);

    EXPECT_TRUE(result.finite());
    EXPECT_TRUE(
        close(result.source_gradient, exact_transport(source, target).source_gradient, 1e-5));
  }
}

TEST_P(SortedCoupling, IdenticalSamplesCostNothing) {
  CouplingOptions options;
  options.solver = OtSolver::exact;
  const Values all(33, 0.1);

  const HostCoupling<float> result = solve<float>(context(), 33, all, all, options);

  EXPECT_EQ(result.loss[0], 0);
  EXPECT_TRUE(result.finite());
}

TEST(CouplingOptions, ThatMakeNoSenseAreRefused) {
  const std::unique_ptr<Context> context = make_context("cpu");
  const auto refuses = [&](auto change) {
    CouplingOptions options;
    change(options);
    EXPECT_THROW(solve<float>(*context, 2, {0, 1}, {0, 1}, options), Error);
  };

  refuses([](CouplingOptions& o) { o.epsilon = 0; });
  refuses([](CouplingOptions& o) { o.epsilon = std::numeric_limits<double>::quiet_NaN(); });
  refuses([](CouplingOptions& o) { o.iterations = 0; });
  refuses([](CouplingOptions& o) { o.tolerance = -1; });
}

}  // namespace
}  // namespace cfaa::test
