#include "host/ops/add_scaled.h"

#include <gtest/gtest.h>

#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class AddScaled : public OnDevice {};
CFAA_TEST_ON_DEVICES(AddScaled);

template <class T>
std::vector<T> run(Context& context, double factor, int64_t rows, const std::vector<T>& x,
                   const std::vector<T>& y) {
  const int64_t columns = static_cast<int64_t>(x.size()) / rows;
  const Tensor<double, 1> on_device(context, {1}, &factor);
  const PaddedMatrix<T> from(context, rows, columns, x, 3), to(context, rows, columns, y, 1);

  add_scaled<T>(context, on_device.view().data, from.view(), to.view());

  return to.to_host();
}

TEST_P(AddScaled, GivesTheHandMadeResult) {
  EXPECT_EQ((run<float>(context(), 0.5, 2, {2, 4, 6, 8}, {1, 1, 1, 1})),
            (std::vector<float>{2, 3, 4, 5}));
}

TEST_P(AddScaled, WithoutAFactorAdds) {
  const std::vector<float> x = {2, 4}, y = {1, 1};
  const PaddedMatrix<float> from(context(), 1, 2, x, 3), to(context(), 1, 2, y, 1);

  add_scaled<float>(context(), nullptr, from.view(), to.view());

  EXPECT_EQ(to.to_host(), (std::vector<float>{3, 5}));
}

TEST_P(AddScaled, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t rows : {1, 31, 32, 33, 257}) {
    for (const int64_t columns : {1, 31, 33, 257}) {
      const auto x = normal<double>(rows * columns, 1), y = normal<double>(rows * columns, 2);
      std::vector<double> expected;
      for (std::size_t i = 0; i < x.size(); ++i) expected.push_back(y[i] + 0.8 * x[i]);

      const auto found = run<double>(context(), 0.8, rows, x, y);

      EXPECT_TRUE(close(found, expected, 1e-15)) << rows << " " << columns;
    }
  }
}

}  // namespace
}  // namespace cfaa::test
