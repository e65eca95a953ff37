#include "host/ops/factorization_machine.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "bench/reference/pair_products.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/differences.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class FactorizationMachineOp : public OnDevice {};
CFAA_TEST_ON_DEVICES(FactorizationMachineOp);

using Values = std::vector<double>;

struct Given {
  Machine machine;
  Values z, dscore;
  double p = 0;

  int64_t rows() const { return static_cast<int64_t>(dscore.size()); }
};

Given random_given(int64_t rows, int64_t columns, int64_t terms, double p = 0) {
  return {{columns, terms, normal<double>(columns * terms, 1), normal<double>(columns, 2), 0.3},
          normal<double>(rows * columns, 3),
          normal<double>(rows, 4),
          p};
}

// What dropout of layer 5 in step 7 leaves of ones.
Values mask_of(Context& context, double p, int64_t rows, int64_t columns) {
  const Values ones(static_cast<std::size_t>(rows * columns), 1.0);
  StepState state;
  state.draw = 7;
  const Tensor<StepState, 1> on_device(context, {1}, &state);
  const Tensor<double, 2> x(context, {rows, columns}, ones.data());
  if (p > 0) dropout<double>(context, p, on_device.view().data, 5, x.view());
  return x.to_host();
}

template <class T>
struct Result {
  std::vector<T> score, dz, dfactors, dlinear, dbias;
};

// Scores and the parameters' gradients start from 1.
template <class T>
Result<T> run(Context& context, const Given& given) {
  const auto as = [](const Values& values) { return std::vector<T>(values.begin(), values.end()); };
  const auto ones = [](const Values& like) { return std::vector<T>(like.size(), T(1)); };
  const Machine& m = given.machine;
  StepState state;
  state.draw = 7;
  const Tensor<StepState, 1> on_device(context, {1}, &state);
  const PaddedMatrix<T> z(context, given.rows(), m.columns, as(given.z), 3),
      dz(context, given.rows(), m.columns,
         std::vector<T>(given.z.size(), std::numeric_limits<T>::quiet_NaN()), 2),
      factors(context, m.terms, m.columns, as(m.factors), 1),
      dfactors(context, m.terms, m.columns, ones(m.factors), 4);
  const Tensor<T, 1> linear(context, {m.columns}, as(m.linear).data()),
      dlinear(context, {m.columns}, ones(m.linear).data()), bias(context, {1}, as({m.bias}).data()),
      dbias(context, {1}, ones({0}).data()),
      score(context, {given.rows()}, ones(given.dscore).data()),
      dscore(context, {given.rows()}, as(given.dscore).data());
  const FactorizationMachine<T> machine{factors.view(), linear, bias};
  const Dropout dropped{given.p, on_device.view().data, 5};

  factorization_machine<T>(context, z.view(), machine, dropped, score);
  factorization_machine_backward<T>(context, z.view(), machine, dropped, dscore, dz.view(),
                                    {dfactors.view(), dlinear, dbias});

  return {score.to_host(), dz.to_host(), dfactors.to_host(), dlinear.to_host(), dbias.to_host()};
}

TEST_P(FactorizationMachineOp, GivesTheHandMadeResult) {
  // Factors (1 2 3) and (1 0 -1) on z = (1 2 3): pairs 2 + 3 and 6 of the first weigh
  // 2 + 9 + 36, of the second -3; w adds 1 + 20 + 300, b 1/2, and 1 was there.
  const Given given{{3, 2, {1, 2, 3, 1, 0, -1}, {1, 10, 100}, 0.5}, {1, 2, 3}, {1}};

  const auto found = run<double>(context(), given);

  EXPECT_EQ(found.score, (Values{1 + 0.5 + 321 + (1 * 2 * 2 + 1 * 3 * 3 + 2 * 3 * 6) - 3}));
  EXPECT_EQ(found.dbias, (Values{2}));
  EXPECT_EQ(found.dlinear, (Values{2, 3, 4}));
}

TEST_P(FactorizationMachineOp, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t rows : {1, 33, 257}) {
    for (const int64_t columns : {1, 31, 33, 64}) {
      const Given given = random_given(rows, columns, 8);
      Values expected =
          factorization_machine(given.machine, given.z, mask_of(context(), 0, rows, 8));
      for (double& score : expected) score += 1;

      EXPECT_TRUE(close(run<double>(context(), given).score, expected, 1e-12));
      EXPECT_TRUE(close(run<float>(context(), given).score, expected, 1e-5));
    }
  }
}

TEST_P(FactorizationMachineOp, BackwardEqualsCentralDifferencesWithAndWithoutDropout) {
  for (const double p : {0.0, 0.5}) {
    const Given given = random_given(6, 5, 3, p);
    const Values mask = mask_of(context(), p, 6, 3);
    const auto objective = [&](const Given& at) {
      const Values score = factorization_machine(at.machine, at.z, mask);
      return std::inner_product(score.begin(), score.end(), given.dscore.begin(), 0.0);
    };

    const auto found = run<double>(context(), given);
    const auto narrow = run<float>(context(), given);

    const auto differences = [&](Values Given::*values, Values Machine::*of_machine) {
      Given moved = given;
      const Values& start = values != nullptr ? given.*values : given.machine.*of_machine;
      Values result = central_differences(start, [&](const Values& x) {
        (values != nullptr ? moved.*values : moved.machine.*of_machine) = x;
        return objective(moved);
      });
      return result;
    };
    const auto plus_one = [](Values values) {
      for (double& value : values) value += 1;
      return values;
    };
    const Values dz = differences(&Given::z, nullptr);
    const Values dfactors = plus_one(differences(nullptr, &Machine::factors));
    const Values dlinear = plus_one(differences(nullptr, &Machine::linear));
    EXPECT_TRUE(close(found.dz, dz, 1e-8)) << p;
    EXPECT_TRUE(close(found.dfactors, dfactors, 1e-8)) << p;
    EXPECT_TRUE(close(found.dlinear, dlinear, 1e-8)) << p;
    EXPECT_TRUE(close(narrow.dz, dz, 1e-5)) << p;
    EXPECT_TRUE(close(narrow.dfactors, dfactors, 1e-5)) << p;
    EXPECT_TRUE(close(found.dbias[0],
                      std::accumulate(given.dscore.begin(), given.dscore.end(), 1.0), 1e-13));
  }
}

// What the header says of ranking: a dot product of the factors' sums, and each side alone.
TEST_P(FactorizationMachineOp, ScoreIsADotProductPlusTheMachineOfEachSide) {
  const Given whole = random_given(1, 6, 4);
  const Machine& m = whole.machine;
  Given user = whole, item = whole;
  for (std::size_t k = 0; k < 3; ++k) item.z[k] = user.z[3 + k] = 0;
  double dot = 0;
  for (std::size_t f = 0; f < 4; ++f) {
    double of_user = 0, of_item = 0;
    for (std::size_t k = 0; k < 6; ++k) {
      of_user += m.factors[f * 6 + k] * user.z[k];
      of_item += m.factors[f * 6 + k] * item.z[k];
    }
    dot += of_user * of_item;
  }

  const double found = run<double>(context(), whole).score[0] - 1;
  const double sides =
      run<double>(context(), user).score[0] + run<double>(context(), item).score[0];

  EXPECT_TRUE(close(found, dot + sides - 2 - m.bias, 1e-12));
}

TEST_P(FactorizationMachineOp, HasTheSameBitsOnOneThreadAndOnTwo) {
  const Given given = random_given(300, 64, 8, 0.5);
  const auto one = make_context(GetParam(), {.threads = 1});
  const auto two = make_context(GetParam(), {.threads = 2});

  const auto alone = run<float>(*one, given), together = run<float>(*two, given);

  EXPECT_EQ(alone.score, together.score);
  EXPECT_EQ(alone.dz, together.dz);
  EXPECT_EQ(alone.dfactors, together.dfactors);
}

}  // namespace
}  // namespace cfaa::test
