#include "host/ops/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bench/reference/bags.h"
#include "host/core/error.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class Adam : public OnDevice {};
CFAA_TEST_ON_DEVICES(Adam);

StepState state_at(uint64_t step) {
  StepState state;
  state.step = step;
  state.learning_rate = 0.01;
  state.beta1 = 0.8;
  state.beta2 = 0.95;
  state.weight_decay = 0.1;
  state.embedding_rate = 0.02;
  state.embedding_decay = 0.3;
  state.clip = 0.5;
  state.correction1 = 1 / (1 - std::pow(state.beta1, static_cast<double>(step + 1)));
  state.correction2 = 1 / (1 - std::pow(state.beta2, static_cast<double>(step + 1)));
  return state;
}

template <class T>
struct Moments {
  std::vector<T> w, m, v;
};

// One element of the contract's equations.
void reference_step(const StepState& s, double rate, double decay, double gradient, double& w,
                    double& m, double& v) {
  const double g = s.clip * gradient;
  m = s.beta1 * m + (1 - s.beta1) * g;
  v = s.beta2 * v + (1 - s.beta2) * g * g;
  w -= rate * (s.correction1 * m / (std::sqrt(s.correction2 * v) + s.epsilon) + decay * w);
}

// Several steps of the dense update with the gradients normal(n, 100 + step).
template <class T>
Moments<T> dense_steps(Context& context, int64_t n, uint64_t steps) {
  const auto start = normal<T>(n, 1);
  const std::vector<T> zeros(static_cast<std::size_t>(n), T(0));
  const Tensor<T, 1> w(context, {n}, start.data()), m(context, {n}, zeros.data()),
      v(context, {n}, zeros.data());
  for (uint64_t step = 0; step < steps; ++step) {
    const StepState state = state_at(step);
    const Tensor<StepState, 1> on_device(context, {1}, &state);
    const Tensor<T, 1> gradient(context, {n}, normal<T>(n, 100 + step).data());

    adam<T>(context, on_device.view().data, gradient, w, m, v);
  }
  return {w.to_host(), m.to_host(), v.to_host()};
}

TEST_P(Adam, FirstStepMovesByTheLearningRate) {
  StepState state;
  state.learning_rate = 0.1;
  state.correction1 = 10;
  state.correction2 = 1000;
  const Tensor<StepState, 1> on_device(context(), {1}, &state);
  const std::vector<double> start = {1, 1, 1}, zeros = {0, 0, 0}, given = {3, -0.5, 0};
  const Tensor<double, 1> w(context(), {3}, start.data()), m(context(), {3}, zeros.data()),
      v(context(), {3}, zeros.data()), gradient(context(), {3}, given.data());

  adam<double>(context(), on_device.view().data, gradient, w, m, v);

  EXPECT_TRUE(close(w.to_host(), std::vector<double>{0.9, 1.1, 1}, 1e-8));
  EXPECT_TRUE(close(m.to_host(), std::vector<double>{0.3, -0.05, 0}, 1e-14));
  EXPECT_TRUE(close(v.to_host(), std::vector<double>{0.009, 0.00025, 0}, 1e-13));
}

TEST_P(Adam, SeveralStepsMatchPlainLoops) {
  for (const int64_t n : {1, 31, 32, 33, 257, 40000}) {
    const auto start = normal<double>(n, 1);
    Moments<double> expected{start, std::vector<double>(start.size()),
                             std::vector<double>(start.size())};
    for (uint64_t step = 0; step < 4; ++step) {
      const auto gradient = normal<double>(n, 100 + step);
      for (std::size_t i = 0; i < start.size(); ++i) {
        reference_step(state_at(step), 0.01, 0.1, gradient[i], expected.w[i], expected.m[i],
                       expected.v[i]);
      }
    }

    const auto found = dense_steps<double>(context(), n, 4);
    const auto narrow = dense_steps<float>(context(), n, 4);

    EXPECT_TRUE(close(found.w, expected.w, 1e-14)) << n;
    EXPECT_TRUE(close(found.m, expected.m, 1e-14)) << n;
    EXPECT_TRUE(close(found.v, expected.v, 1e-14)) << n;
    EXPECT_TRUE(close(narrow.w, expected.w, 1e-6)) << n;
    EXPECT_TRUE(close(narrow.m, expected.m, 1e-6)) << n;
    EXPECT_TRUE(close(narrow.v, expected.v, 1e-6)) << n;
  }
}

TEST_P(Adam, HasTheSameBitsOnOneThreadAndOnTwo) {
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});

  const auto first = dense_steps<float>(*one, 40001, 2);
  const auto second = dense_steps<float>(context(), 40001, 2);

  EXPECT_EQ(first.w, second.w);
  EXPECT_EQ(first.m, second.m);
  EXPECT_EQ(first.v, second.v);
}

// Rows 3 and 5 of 7 are touched by the batch; the others keep every bit, and their moments too.
TEST_P(Adam, RowsThatAreNotTouchedStayAsTheyAre) {
  for (const int64_t columns : {1, 31, 33, 64, 257}) {
    const BagLists lists{{0, 2, 3}, {3, 5, 3}, {1, 1, 1}};
    const int64_t spare = 2, capacity = 2 + spare;
    const DeviceBags<float> bags(context(), lists, spare);
    const auto start = normal<float>(7 * columns, 1);
    const auto first = normal<float>(7 * columns, 2), second = normal<float>(7 * columns, 3, 20);
    const auto given = normal<float>(capacity * columns, 4);
    const Tensor<float, 2> w(context(), {7, columns}, start.data()),
        m(context(), {7, columns}, first.data()), v(context(), {7, columns}, second.data());
    const PaddedMatrix<float> gradient(context(), capacity, columns, given, 3);
    const StepState state = state_at(3);
    const Tensor<StepState, 1> on_device(context(), {1}, &state);
    Moments<double> expected{
        {start.begin(), start.end()}, {first.begin(), first.end()}, {second.begin(), second.end()}};
    for (const auto& [slot, row] : {std::pair{0, 3}, std::pair{1, 5}}) {
      for (int64_t c = 0; c < columns; ++c) {
        const auto at = static_cast<std::size_t>(row * columns + c);
        reference_step(state, 0.02, 0.3, given[static_cast<std::size_t>(slot * columns + c)],
                       expected.w[at], expected.m[at], expected.v[at]);
      }
    }

    adam_rows<float>(context(), on_device.view().data, bags.touched(), gradient.view(), w, m, v);

    const auto found = w.to_host(), found_m = m.to_host(), found_v = v.to_host();
    EXPECT_TRUE(close(found, expected.w, 1e-6)) << columns;
    EXPECT_TRUE(close(found_m, expected.m, 1e-6)) << columns;
    EXPECT_TRUE(close(found_v, expected.v, 1e-6)) << columns;
    for (const int64_t row : {0, 1, 2, 4, 6}) {
      for (int64_t c = 0; c < columns; ++c) {
        const auto at = static_cast<std::size_t>(row * columns + c);
        EXPECT_EQ(found[at], start[at]);
        EXPECT_EQ(found_m[at], first[at]);
        EXPECT_EQ(found_v[at], second[at]);
      }
    }
  }
}

TEST_P(Adam, LatchThatIsSetStopsEveryUpdate) {
  StepState state = state_at(0);
  state.squared_norm = std::numeric_limits<double>::infinity();
  const Tensor<StepState, 1> on_device(context(), {1}, &state);
  const auto start = normal<float>(66, 1);
  const Tensor<float, 2> w(context(), {2, 33}, start.data()), m(context(), {2, 33}, start.data()),
      v(context(), {2, 33}, start.data()), gradient(context(), {2, 33}, start.data());
  const auto flat = [](const Tensor<float, 2>& matrix) {
    return VectorView<float>(matrix.view().data, {66});
  };
  const DeviceBags<float> bags(context(), {{0, 2}, {0, 1}, {1, 1}});

  clip_gradient(context(), on_device.view().data);
  adam<float>(context(), on_device.view().data, flat(gradient), flat(w), flat(m), flat(v));
  adam_rows<float>(context(), on_device.view().data, bags.touched(), gradient, w, m, v);

  EXPECT_EQ(w.to_host(), start);
  EXPECT_EQ(m.to_host(), start);
  EXPECT_EQ(v.to_host(), start);
  EXPECT_THROW(context().check_faults(), Error);
  // Once the fault is read, updates go on.
  adam<float>(context(), on_device.view().data, flat(gradient), flat(w), flat(m), flat(v));
  EXPECT_NE(w.to_host(), start);
}

template <class T>
double norm_of(Context& context, int64_t rows, int64_t columns, const std::vector<T>& values,
               const int32_t* count, double start) {
  const PaddedMatrix<T> gradient(context, rows, columns, values, 3);
  const Tensor<double, 1> norm(context, {1}, &start);
  gradient_norm<T>(context, gradient.view(), count, norm.view().data);
  return norm.to_host()[0];
}

TEST_P(Adam, NormIsAddedToAndLeavesOutRowsBeyondTheCount) {
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {1, 40001}, {33, 31}, {257, 300}, {3000, 33}}) {
    const auto values = normal<float>(rows * columns, 1);
    const int32_t used = static_cast<int32_t>(rows / 2);
    const Tensor<int32_t, 1> count(context(), {1}, &used);
    double all = 5, some = 5;
    for (int64_t i = 0; i < rows * columns; ++i) {
      const double value = values[static_cast<std::size_t>(i)];
      all += value * value;
      if (i / columns < used) some += value * value;
    }

    EXPECT_TRUE(close(norm_of<float>(context(), rows, columns, values, nullptr, 5), all, 1e-13));
    EXPECT_TRUE(
        close(norm_of<float>(context(), rows, columns, values, count.view().data, 5), some, 1e-13));
    EXPECT_TRUE(
        close(norm_of<double>(context(), rows, columns, {values.begin(), values.end()}, nullptr, 5),
              all, 1e-13));
  }
}

TEST_P(Adam, NormHasTheSameBitsOnOneThreadAndOnTwo) {
  const auto values = normal<float>(300 * 301, 1);
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});

  EXPECT_EQ(norm_of<float>(*one, 300, 301, values, nullptr, 0),
            norm_of<float>(context(), 300, 301, values, nullptr, 0));
}

TEST_P(Adam, ClipShortensGradientsThatAreTooLong) {
  const auto clip_of = [&](double squared_norm, double max_norm) {
    StepState state;
    state.squared_norm = squared_norm;
    state.max_norm = max_norm;
    state.clip = -1;
    const Tensor<StepState, 1> on_device(context(), {1}, &state);
    clip_gradient(context(), on_device.view().data);
    return on_device.to_host()[0].clip;
  };

  EXPECT_EQ(clip_of(100, 5), 0.5);
  EXPECT_EQ(clip_of(100, 20), 1);
  EXPECT_EQ(clip_of(0, 20), 1);
  EXPECT_EQ(clip_of(100, 0), 1);
  EXPECT_NO_THROW(context().check_faults());
  clip_of(std::numeric_limits<double>::quiet_NaN(), 0);
  try {
    context().check_faults();
    FAIL() << "no fault";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the gradient's norm"), std::string::npos);
  }
}

}  // namespace
}  // namespace cfaa::test
