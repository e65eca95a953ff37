#include "host/ops/review_input.h"

#include <gtest/gtest.h>

#include <limits>

#include "host/ops/device.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class ReviewInput : public OnDevice {};
CFAA_TEST_ON_DEVICES(ReviewInput);

template <class T>
std::vector<T> forward(Context& context, const std::vector<float>& review,
                       const std::vector<int32_t>& present, const std::vector<T>& absent) {
  const auto rows = static_cast<int64_t>(present.size());
  const auto columns = static_cast<int64_t>(absent.size());
  const PaddedMatrix<float> from(context, rows, columns, review, 2);
  const PaddedMatrix<T> out(context, rows, columns,
                            std::vector<T>(review.size(), std::numeric_limits<T>::quiet_NaN()), 3);
  const Tensor<int32_t, 1> flags(context, {rows}, present.data());
  const Tensor<T, 1> vector(context, {columns}, absent.data());

  review_input<T>(context, from.view(), flags, vector, out.view());

  return out.to_host();
}

template <class T>
std::vector<T> backward(Context& context, const std::vector<T>& dout,
                        const std::vector<int32_t>& present, const std::vector<T>& start) {
  const auto rows = static_cast<int64_t>(present.size());
  const auto columns = static_cast<int64_t>(start.size());
  const PaddedMatrix<T> from(context, rows, columns, dout, 3);
  const Tensor<int32_t, 1> flags(context, {rows}, present.data());
  const Tensor<T, 1> gradient(context, {columns}, start.data());

  review_input_backward<T>(context, from.view(), flags, gradient);

  return gradient.to_host();
}

TEST_P(ReviewInput, GivesTheHandMadeResult) {
  const std::vector<int32_t> present = {1, 0, 0};

  const auto out = forward<double>(context(), {1, 2, 3, 4, 5, 6}, present, {-1, -2});
  const auto gradient = backward<double>(context(), {1, 2, 3, 4, 5, 6}, present, {100, 200});

  EXPECT_EQ(out, (std::vector<double>{1, 2, -1, -2, -1, -2}));
  EXPECT_EQ(gradient, (std::vector<double>{108, 210}));
}

// A row without a review may hold anything, NaN too: it is not looked at.
TEST_P(ReviewInput, DoesNotReadAbsentReviews) {
  const float nan = std::numeric_limits<float>::quiet_NaN();

  const auto out = forward<float>(context(), {nan, nan, 3, 4}, {0, 1}, {7, 8});

  EXPECT_EQ(out, (std::vector<float>{7, 8, 3, 4}));
}

TEST_P(ReviewInput, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t rows : {1, 31, 32, 33, 257}) {
    for (const int64_t columns : {1, 31, 33, 257}) {
      const auto review = normal<float>(rows * columns, 1);
      const auto absent = normal<double>(columns, 2), dout = normal<double>(rows * columns, 3);
      std::vector<int32_t> present(static_cast<std::size_t>(rows));
      std::vector<double> expected, expected_gradient = absent;
      for (int64_t r = 0; r < rows; ++r) {
        present[static_cast<std::size_t>(r)] = r % 3 == 0 ? 0 : 1;
        for (int64_t c = 0; c < columns; ++c) {
          const auto at = static_cast<std::size_t>(r * columns + c);
          const auto column = static_cast<std::size_t>(c);
          expected.push_back(r % 3 == 0 ? absent[column] : static_cast<double>(review[at]));
          if (r % 3 == 0) expected_gradient[column] += dout[at];
        }
      }

      EXPECT_EQ(forward<double>(context(), review, present, absent), expected);
      EXPECT_TRUE(
          close(backward<double>(context(), dout, present, absent), expected_gradient, 1e-14));
    }
  }
}

TEST_P(ReviewInput, BackwardHasTheSameBitsOnOneThreadAndOnTwo) {
  const auto dout = normal<float>(257 * 300, 3);
  const std::vector<int32_t> present(257, 0);
  const std::vector<float> start(300, 0.5f);
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});

  EXPECT_EQ(backward<float>(*one, dout, present, start),
            backward<float>(context(), dout, present, start));
}

}  // namespace
}  // namespace cfaa::test
