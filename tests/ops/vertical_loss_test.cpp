#include "host/ops/vertical_loss.h"

#include <cmath>

#include "bench/reference/embedding_sets.h"
#include "bench/reference/vertical.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

using Values = std::vector<double>;

struct Result {
  double loss;
  std::vector<Values> gradients;  // per set (N, D)
};

template <class T>
Result on_device(Context& context, const std::vector<HostSet>& sets,
                 const AlignmentOptions& options, double scale = 1) {
  const EmbeddingSets<T> embeddings(context, sets);
  const Arena::Scope scope(context.scratch());
  const VerticalLoss<T> forward = vertical_loss<T>(context, embeddings.pairs(), options);
  vertical_loss_backward<T>(context, embeddings.pairs(), forward, scale,
                            embeddings.gradient_pairs());
  Result result;
  result.loss = static_cast<double>(to_host(context, forward.loss)[0]);
  for (std::size_t set = 0; set < sets.size(); ++set) {
    const std::vector<T> gradient = embeddings.gradient(set);
    result.gradients.emplace_back(gradient.begin(), gradient.end());
  }
  return result;
}

// Psi and the plan of one attribute of a pair, at the point where they were found.
struct Frozen {
  TypicalColumn source, target;
  Transport transport;

  double loss(const Values& zs, const Values& zt) const {
    return transport_cost(transport.plan, samples_of(source.psi, zs), samples_of(target.psi, zt));
  }
};

Frozen freeze(const Values& zs, const Values& zt, const AlignmentOptions& options) {
  const double alpha = attribute_alpha(options.typical, zs, zt);
  Frozen frozen;
  frozen.source = typical_column(zs, options.typical.k, alpha, options.typical.iterations);
  frozen.target = typical_column(zt, options.typical.k, alpha, options.typical.iterations);
  frozen.transport = transport(frozen.source.samples, frozen.target.samples, options.coupling);
  return frozen;
}

Result reference(const std::vector<HostSet>& sets, const AlignmentOptions& options) {
  const std::size_t pairs = sets.size() / 2;
  const int64_t d = sets[0].cols;
  Result result;
  result.loss = 0;
  for (const HostSet& set : sets) result.gradients.emplace_back(set.values.size(), 0.0);
  for (std::size_t p = 0; p < pairs; ++p) {
    for (int64_t q = 0; q < d; ++q) {
      const Frozen frozen = freeze(sets[p].column(q), sets[pairs + p].column(q), options);
      result.loss += frozen.transport.loss / static_cast<double>(d);
      const auto put = [&](std::size_t set, const TypicalColumn& column, const Values& dm) {
        const Values dz = column_gradient(column, dm);
        for (std::size_t i = 0; i < dz.size(); ++i) {
          result.gradients[set][i * static_cast<std::size_t>(d) + static_cast<std::size_t>(q)] =
              dz[i] / static_cast<double>(d);
        }
      };
      put(p, frozen.source, frozen.transport.source_gradient);
      put(pairs + p, frozen.target, frozen.transport.target_gradient);
    }
  }
  return result;
}

class VerticalLossOp : public OnDevice {};
CFAA_TEST_ON_DEVICES(VerticalLossOp);

AlignmentOptions options_for(OtSolver solver) {
  AlignmentOptions options;
  options.typical.k = 13;
  options.coupling.solver = solver;
  options.coupling.iterations = 30;
  return options;
}

TEST_P(VerticalLossOp, AgreesWithTheReferenceForUsersAndItems) {
  const std::vector<HostSet> sets = {normal_set(33, 5, 1), normal_set(40, 5, 2),
                                     normal_set(20, 5, 3, 0.5, 2), normal_set(31, 5, 4)};
  for (const OtSolver solver : {OtSolver::sinkhorn, OtSolver::exact}) {
    const AlignmentOptions options = options_for(solver);
    const Result wanted = reference(sets, options);

    const Result twice = on_device<double>(context(), sets, options);
    const Result single = on_device<float>(context(), sets, options);

    EXPECT_TRUE(close(twice.loss, wanted.loss, 1e-10));
    EXPECT_TRUE(close(single.loss, wanted.loss, 2e-5));
    for (std::size_t set = 0; set < sets.size(); ++set) {
      EXPECT_TRUE(close(twice.gradients[set], wanted.gradients[set], 1e-9));
      EXPECT_TRUE(close(single.gradients[set], wanted.gradients[set], 2e-4));
    }
  }
}

TEST_P(VerticalLossOp, GradientIsTheCentralDifferenceWithPsiAndPlanFixed) {
  const std::vector<HostSet> sets = {normal_set(9, 1, 1), normal_set(11, 1, 2, 0.4)};
  for (const OtSolver solver : {OtSolver::sinkhorn, OtSolver::exact}) {
    AlignmentOptions options = options_for(solver);
    options.typical.k = 4;
    const Result result = on_device<double>(context(), sets, options);
    const Frozen frozen = freeze(sets[0].values, sets[1].values, options);

    for (std::size_t side = 0; side < 2; ++side) {
      Values differences;
      for (std::size_t i = 0; i < sets[side].values.size(); ++i) {
        // Quadratic in each coordinate: the step brings rounding alone.
        const double step = 1e-3;
        const auto loss_at = [&](double offset) {
          Values z[2] = {sets[0].values, sets[1].values};
          z[side][i] += offset;
          return frozen.loss(z[0], z[1]);
        };
        differences.push_back((loss_at(step) - loss_at(-step)) / (2 * step));
      }
      EXPECT_TRUE(close(result.gradients[side], differences, 1e-9));
    }
  }
}

TEST_P(VerticalLossOp, EqualSetsCostNothingWithTheExactPlan) {
  const HostSet set = normal_set(33, 3, 1);

  const Result result = on_device<float>(context(), {set, set}, options_for(OtSolver::exact));

  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.gradients[0], Values(set.values.size(), 0.0));
}

TEST_P(VerticalLossOp, AShiftCostsItsSquare) {
  // Typical samples follow a shift, so every sample moves by 2.
  const HostSet source = normal_set(33, 3, 1);
  HostSet target = source;
  for (double& value : target.values) value += 2;

  const Result result =
      on_device<double>(context(), {source, target}, options_for(OtSolver::exact));

  EXPECT_TRUE(close(result.loss, 4.0, 1e-12));
  // Moving every row of an attribute by t changes its part of the loss, (2 - t)^2 / D.
  for (std::size_t q = 0; q < 3; ++q) {
    double sum = 0;
    for (std::size_t i = 0; i < 33; ++i) sum += result.gradients[0][3 * i + q];
    EXPECT_TRUE(close(sum, -4.0 / 3, 1e-12));
  }
}

TEST_P(VerticalLossOp, ScaleMultipliesTheGradient) {
  const std::vector<HostSet> sets = {normal_set(20, 3, 1), normal_set(20, 3, 2)};
  const AlignmentOptions options = options_for(OtSolver::sinkhorn);

  const Result once = on_device<double>(context(), sets, options);
  const Result half = on_device<double>(context(), sets, options, 0.5);

  Values wanted = once.gradients[0];
  for (double& value : wanted) value *= 0.5;
  EXPECT_EQ(half.loss, once.loss);
  EXPECT_TRUE(close(half.gradients[0], wanted, 1e-14));
}

TEST_P(VerticalLossOp, KeepsThePlansOnRequest) {
  const std::vector<HostSet> sets = {normal_set(20, 3, 1), normal_set(20, 3, 2)};
  const EmbeddingSets<double> embeddings(context(), sets);
  const Arena::Scope scope(context().scratch());

  const VerticalLoss<double> forward =
      vertical_loss<double>(context(), embeddings.pairs(), options_for(OtSolver::sinkhorn), true);

  const Values plans = to_host(context(), forward.plan);
  ASSERT_EQ(plans.size(), 3u * 13 * 13);
  double mass = 0;
  for (const double entry : plans) mass += entry;
  EXPECT_TRUE(close(mass, 3.0, 1e-12));
}

TEST_P(VerticalLossOp, ConstantEmbeddingsAreFinite) {
  const std::vector<HostSet> sets = {{4, 2, Values(8, 0.1)}, {5, 2, Values(10, 0.4)}};
  for (const OtSolver solver : {OtSolver::sinkhorn, OtSolver::exact}) {
    const Result result = on_device<double>(context(), sets, options_for(solver));

    EXPECT_TRUE(close(result.loss, 0.09, 1e-12));
    EXPECT_TRUE(close(result.gradients[0], Values(8, 2 * -0.3 / (2 * 4)), 1e-12));
    EXPECT_TRUE(close(result.gradients[1], Values(10, 2 * 0.3 / (2 * 5)), 1e-12));
  }
}

TEST_P(VerticalLossOp, AllocatesNothingAfterTheFirstCall) {
  const std::vector<HostSet> sets = {normal_set(33, 5, 1), normal_set(40, 5, 2)};
  const AlignmentOptions options = options_for(OtSolver::sinkhorn);
  on_device<float>(context(), sets, options);
  const int64_t before = context().scratch().allocations();

  on_device<float>(context(), sets, options);

  EXPECT_EQ(context().scratch().allocations(), before);
}

TEST_P(VerticalLossOp, GivesTheSameBitsForEveryNumberOfThreads) {
  const std::vector<HostSet> sets = {normal_set(33, 11, 1), normal_set(40, 11, 2)};
  const auto with_threads = [&](int threads) {
    const std::unique_ptr<Context> own = make_context(GetParam(), {.threads = threads});
    return on_device<float>(*own, sets, options_for(OtSolver::sinkhorn));
  };

  const Result one = with_threads(1);
  for (const int threads : {2, 5}) {
    const Result many = with_threads(threads);
    EXPECT_EQ(one.loss, many.loss);
    EXPECT_EQ(one.gradients, many.gradients);
  }
}

}  // namespace
}  // namespace cfaa::test
