#include "host/ops/review_input.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class ReviewInput : public OnDevice {};
CFAA_TEST_ON_DEVICES(ReviewInput);

template <class T>
void expect_a_copy(Context& context, int64_t rows, int64_t columns) {
  const std::vector<float> review = normal<float>(rows * columns, 7);
  const PaddedMatrix<float> from(context, rows, columns, review, 2);
  const PaddedMatrix<T> out(context, rows, columns,
                            std::vector<T>(review.size(), std::numeric_limits<T>::quiet_NaN()), 3);

  review_input<T>(context, from.view(), out.view());

  EXPECT_EQ(out.to_host(), std::vector<T>(review.begin(), review.end()));
}

TEST_P(ReviewInput, CopiesEveryElementWhateverTheShapeAndPadding) {
  for (const int64_t rows : {1, 31, 33}) {
    for (const int64_t columns : {1, 32, 257}) {
      expect_a_copy<float>(context(), rows, columns);
      expect_a_copy<double>(context(), rows, columns);
    }
  }
}

}  // namespace
}  // namespace cfaa::test
