#include "host/ops/grouped_linear.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "bench/reference/layers.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class GroupedLinear : public OnDevice {};
CFAA_TEST_ON_DEVICES(GroupedLinear);

template <class T>
using Tower = LinearInputs<T>;
template <class T>
using Outcome = LinearOutputs<T>;

// The op on towers whose rows are padded, parameter gradients added to `start`.
template <class T>
std::vector<Outcome<T>> run(Context& context, const std::vector<Tower<T>>& towers,
                            Activation activation, MathMode math = MathMode::fp32, T start = 0,
                            int64_t padding = 3) {
  struct OnTheDevice {
    PaddedMatrix<T> x, weight, y, dy, dx, dweight;
    Tensor<T, 1> bias, dbias;
  };
  const T nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<std::unique_ptr<OnTheDevice>> memory;
  std::vector<LinearLayer<T>> layers;
  std::vector<LinearGradient<T>> gradients;
  for (const Tower<T>& tower : towers) {
    const auto [m, k, n] = tower.e;
    const auto filled = [](int64_t size, T value) {
      return std::vector<T>(static_cast<std::size_t>(size), value);
    };
    const std::vector<T> dbias = filled(n, start);
    memory.push_back(std::make_unique<OnTheDevice>(OnTheDevice{
        PaddedMatrix<T>(context, m, k, tower.x, padding),
        PaddedMatrix<T>(context, n, k, tower.weight, padding),
        PaddedMatrix<T>(context, m, n, filled(m * n, nan), padding),
        PaddedMatrix<T>(context, m, n, tower.dy, padding),
        PaddedMatrix<T>(context, m, k, filled(m * k, nan), padding),
        PaddedMatrix<T>(context, n, k, filled(n * k, start), padding),
        Tensor<T, 1>(context, {n}, tower.bias.data()), Tensor<T, 1>(context, {n}, dbias.data())}));
    const OnTheDevice& d = *memory.back();
    layers.push_back({d.x.view(), d.weight.view(), d.bias.view(), d.y.view()});
    gradients.push_back({d.dy.view(), d.dx.view(), d.dweight.view(), d.dbias.view()});
  }

  grouped_linear<T>(context, layers, activation, math);
  grouped_linear_backward<T>(context, layers, activation, gradients, math);

  std::vector<Outcome<T>> outcomes;
  for (const auto& d : memory) {
    outcomes.push_back({d->y.to_host(), d->dx.to_host(), d->dweight.to_host(), d->dbias.to_host()});
  }
  return outcomes;
}

template <class T>
void expect_reference(const std::vector<Tower<T>>& towers, Activation activation,
                      const std::vector<Outcome<T>>& outcomes, double start, double tolerance) {
  ASSERT_EQ(outcomes.size(), towers.size());
  for (std::size_t g = 0; g < towers.size(); ++g) {
    const Outcome<double> expected = linear_layer(towers[g], activation, start);
    EXPECT_TRUE(close(outcomes[g].y, expected.y, tolerance)) << "y of tower " << g;
    EXPECT_TRUE(close(outcomes[g].dx, expected.dx, tolerance)) << "dx of tower " << g;
    EXPECT_TRUE(close(outcomes[g].dweight, expected.dweight, tolerance)) << "dW of tower " << g;
    EXPECT_TRUE(close(outcomes[g].dbias, expected.dbias, tolerance)) << "db of tower " << g;
  }
}

// One row, one input, one output; a warp less, exactly and more than one; a tall one.
template <class T>
std::vector<Tower<T>> uneven_towers() {
  return {random_layer<T>({1, 1, 1}, 10), random_layer<T>({33, 31, 65}, 20),
          random_layer<T>({32, 64, 32}, 30), random_layer<T>({257, 5, 7}, 40)};
}

TEST_P(GroupedLinear, GivesTheHandMadeResult) {
  // x = (1, 2), W = (3 4; -5 1), b = (1, 1): x W' + b = (12, -2)
  const std::vector<Tower<double>> towers = {{{1, 2, 2}, {1, 2}, {3, 4, -5, 1}, {1, 1}, {10, 100}}};

  const Outcome<double> linear = run<double>(context(), towers, Activation::none)[0];
  const Outcome<double> relu = run<double>(context(), towers, Activation::relu)[0];

  EXPECT_EQ(linear.y, (std::vector<double>{12, -2}));
  EXPECT_EQ(linear.dx, (std::vector<double>{-470, 140}));
  EXPECT_EQ(linear.dweight, (std::vector<double>{10, 20, 100, 200}));
  EXPECT_EQ(linear.dbias, (std::vector<double>{10, 100}));
  EXPECT_EQ(relu.y, (std::vector<double>{12, 0}));
  EXPECT_EQ(relu.dx, (std::vector<double>{30, 40}));
  EXPECT_EQ(relu.dweight, (std::vector<double>{10, 20, 0, 0}));
  EXPECT_EQ(relu.dbias, (std::vector<double>{10, 0}));
}

TEST_P(GroupedLinear, UnevenTowersMatchPlainLoopsInDouble) {
  const auto towers = uneven_towers<double>();

  const auto linear = run<double>(context(), towers, Activation::none, MathMode::fp32, 0.5);
  const auto relu = run<double>(context(), towers, Activation::relu, MathMode::fp32, 0.5);

  expect_reference(towers, Activation::none, linear, 0.5, 1e-14);
  expect_reference(towers, Activation::relu, relu, 0.5, 1e-14);
}

TEST_P(GroupedLinear, UnevenTowersMatchPlainLoopsInFloat) {
  const auto towers = uneven_towers<float>();

  const auto relu = run<float>(context(), towers, Activation::relu, MathMode::fp32, 0.5f);

  expect_reference(towers, Activation::relu, relu, 0.5, 1e-6);
}

// Factors that have been rounded before: sums of their products are all that is left to differ.
std::vector<Tower<float>> rounded_towers(std::vector<Tower<float>> towers, MathMode math) {
  for (Tower<float>& tower : towers) {
    for (std::vector<float>* factor : {&tower.x, &tower.weight, &tower.dy}) {
      for (float& value : *factor) value = rounded(value, math);
    }
  }
  return towers;
}

// Rows of whole 16 bytes, and 65 inputs, which a GPU's tensor cores cannot read as they are.
TEST_P(GroupedLinear, RoundsTheFactorsOfEveryProductAndNothingElse) {
  for (const int64_t inputs : {64, 65}) {
    for (const auto& [math, rounding] :
         {std::pair(MathMode::tf32, 2e-3), std::pair(MathMode::bf16, 1e-2)}) {
      const std::vector<Tower<float>> towers = {random_layer<float>({40, inputs, 32}, 50),
                                                random_layer<float>({64, inputs, 36}, 60)};
      const auto factors = rounded_towers(towers, math);

      const auto linear = run<float>(context(), towers, Activation::none, math, 0.5f, 4);
      const auto relu = run<float>(context(), factors, Activation::relu, math, 0.5f, 4);

      expect_reference(towers, Activation::none, linear, 0.5, rounding);
      expect_reference(factors, Activation::relu, relu, 0.5, 1e-6);
      for (std::size_t g = 0; g < towers.size(); ++g) {
        const Outcome<double> exact = linear_layer(towers[g], Activation::none, 0.5);
        const Outcome<double> expected = linear_layer(factors[g], Activation::none, 0.5);
        // dX of 65 columns is in fp32.
        EXPECT_TRUE(close(linear[g].y, expected.y, 1e-5));
        EXPECT_TRUE(close(linear[g].dx, inputs == 64 ? expected.dx : exact.dx, 1e-5));
        EXPECT_TRUE(close(linear[g].dweight, expected.dweight, 1e-5));
        EXPECT_TRUE(close(linear[g].dbias, exact.dbias, 1e-6));
        EXPECT_FALSE(close(linear[g].y, exact.y, 1e-4)) << "nothing was rounded";
      }
    }
  }
}

TEST_P(GroupedLinear, OutputsOfUnevenWidthAreInFp32) {
  const std::vector<Tower<float>> towers = {random_layer<float>({40, 64, 31}, 50)};

  const auto found = run<float>(context(), towers, Activation::relu, MathMode::bf16, 0.5f, 4);

  EXPECT_TRUE(close(found[0].y, linear_layer(towers[0], Activation::relu, 0.5).y, 1e-6));
}

TEST(MathMode, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(rounded(1.0f + 0x1p-8f, MathMode::bf16), 1.0f);             // a tie, down
  EXPECT_EQ(rounded(1.0f + 3 * 0x1p-8f, MathMode::bf16), 1 + 0x1p-6f);  // a tie, up
  EXPECT_EQ(rounded(1.0f + 0x1.8p-8f, MathMode::bf16), 1 + 0x1p-7f);
  EXPECT_EQ(rounded(1.0f + 0x1p-10f, MathMode::tf32), 1 + 0x1p-10f);
  EXPECT_EQ(rounded(1.0f + 0x1p-12f, MathMode::tf32), 1.0f);
  EXPECT_EQ(rounded(-3.1f, MathMode::fp32), -3.1f);
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN(), MathMode::bf16)));
  EXPECT_TRUE(std::isinf(rounded(std::numeric_limits<float>::infinity(), MathMode::tf32)));
}

TEST_P(GroupedLinear, ReluKeepsNaN) {
  auto towers = std::vector<Tower<float>>{random_layer<float>({2, 3, 2}, 70)};
  towers[0].x[0] = std::numeric_limits<float>::quiet_NaN();

  const auto relu = run<float>(context(), towers, Activation::relu);

  EXPECT_TRUE(std::isnan(relu[0].y[0]));
  EXPECT_TRUE(std::isnan(relu[0].y[1]));
  EXPECT_FALSE(std::isnan(relu[0].y[2]));
}

TEST_P(GroupedLinear, LeavesOutTheInputGradientNobodyWants) {
  Context& context = this->context();
  const Tower<double> tower = random_layer<double>({4, 3, 2}, 80);
  const Tensor<double, 2> x(context, {4, 3}, tower.x.data()),
      weight(context, {2, 3}, tower.weight.data()), y(context, {4, 2}),
      dy(context, {4, 2}, tower.dy.data());
  const Tensor<double, 1> bias(context, {2}, tower.bias.data());
  Tensor<double, 2> dweight(context, {2, 3});
  Tensor<double, 1> dbias(context, {2});
  dweight.fill_zero();
  dbias.fill_zero();
  const LinearLayer<double> layer{x, weight, bias, y};
  const LinearGradient<double> gradient{dy, {}, dweight, dbias};

  grouped_linear<double>(context, {&layer, 1}, Activation::none);
  grouped_linear_backward<double>(context, {&layer, 1}, Activation::none, {&gradient, 1});

  const Outcome<double> expected = linear_layer(tower, Activation::none, 0);
  EXPECT_TRUE(close(dweight.to_host(), expected.dweight, 1e-14));
  EXPECT_TRUE(close(dbias.to_host(), expected.dbias, 1e-14));
}

// <dy, y> differentiated by steps of 1e-6, away from relu's kink: the towers' outputs differ from
// zero by more than a step can move them.
TEST_P(GroupedLinear, BackwardEqualsCentralDifferences) {
  const std::vector<Tower<double>> base = {random_layer<double>({2, 3, 4}, 90),
                                           random_layer<double>({4, 2, 3}, 95)};
  const double step = 1e-6;
  for (const Activation activation : {Activation::none, Activation::relu}) {
    const auto outcomes = run<double>(context(), base, activation);
    const auto objective = [&](const std::vector<Tower<double>>& towers) {
      const auto moved = run<double>(context(), towers, activation);
      double sum = 0;
      for (std::size_t g = 0; g < towers.size(); ++g) {
        for (std::size_t i = 0; i < moved[g].y.size(); ++i) sum += moved[g].y[i] * towers[g].dy[i];
      }
      return sum;
    };
    for (std::size_t g = 0; g < base.size(); ++g) {
      using Member = std::vector<double> Tower<double>::*;
      const std::array<std::pair<Member, const std::vector<double>*>, 3> parts = {{
          {&Tower<double>::x, &outcomes[g].dx},
          {&Tower<double>::weight, &outcomes[g].dweight},
          {&Tower<double>::bias, &outcomes[g].dbias},
      }};
      for (const auto& [member, gradient] : parts) {
        std::vector<double> differences;
        for (std::size_t i = 0; i < gradient->size(); ++i) {
          auto up = base, down = base;
          (up[g].*member)[i] += step;
          (down[g].*member)[i] -= step;
          differences.push_back((objective(up) - objective(down)) / (2 * step));
        }
        EXPECT_TRUE(close(*gradient, differences, 1e-7)) << "tower " << g;
      }
    }
  }
}

}  // namespace
}  // namespace cfaa::test
