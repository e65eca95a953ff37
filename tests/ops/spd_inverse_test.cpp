#include "host/ops/spd_inverse.h"

#include <gtest/gtest.h>

#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

// X'X + n I with X (n, n) normal; the strict upper triangle is NaN, since it may not be read.
template <class T>
std::vector<T> positive_definite(int64_t n, uint64_t seed) {
  const std::vector<double> x = normal<double>(n * n, seed);
  std::vector<T> a(x.size(), std::numeric_limits<T>::quiet_NaN());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = i == j ? static_cast<double>(n) : 0;
      for (int64_t k = 0; k < n; ++k) {
        sum += x[static_cast<std::size_t>(k * n + i)] * x[static_cast<std::size_t>(k * n + j)];
      }
      a[static_cast<std::size_t>(i * n + j)] = static_cast<T>(sum);
    }
  }
  return a;
}

// max |A A^-1 - I|, with A from its lower triangle.
template <class T>
double residual(int64_t n, const std::vector<T>& a, const std::vector<T>& inverse) {
  double worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = i == j ? -1 : 0;
      for (int64_t k = 0; k < n; ++k) {
        sum += double{a[static_cast<std::size_t>(std::max(i, k) * n + std::min(i, k))]} *
               double{inverse[static_cast<std::size_t>(k * n + j)]};
      }
      if (!(std::abs(sum) <= worst)) worst = std::abs(sum);
    }
  }
  return worst;
}

class SpdInverse : public OnDevice {};
CFAA_TEST_ON_DEVICES(SpdInverse);

TEST_P(SpdInverse, InvertsAHandSolvedMatrix) {
  const std::vector<double> lower = {4, 0, 2, 3};
  Tensor<double, 2> a(context(), {2, 2}, lower.data());

  const int64_t minor = spd_inverse<double>(context(), a.view());

  EXPECT_EQ(minor, 0);
  EXPECT_TRUE(close(a.to_host(), std::vector<double>{3. / 8, -2. / 8, -2. / 8, 4. / 8}, 1e-14));
}

TEST_P(SpdInverse, IsTheInverseAtEverySizeAndSymmetric) {
  for (const int64_t n : {1, 31, 33, 257, 300}) {
    const std::vector<double> lower = positive_definite<double>(n, static_cast<uint64_t>(n));
    Tensor<double, 2> a(context(), {n, n}, lower.data());

    ASSERT_EQ(spd_inverse<double>(context(), a.view()), 0);

    const std::vector<double> inverse = a.to_host();
    EXPECT_LE(residual(n, lower, inverse), 1e-12) << n;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        ASSERT_EQ(inverse[static_cast<std::size_t>(i * n + j)],
                  inverse[static_cast<std::size_t>(j * n + i)]);
      }
    }
  }
}

TEST_P(SpdInverse, WorksInFloat) {
  const int64_t n = 65;
  const std::vector<float> lower = positive_definite<float>(n, 9);
  Tensor<float, 2> a(context(), {n, n}, lower.data());

  ASSERT_EQ(spd_inverse<float>(context(), a.view()), 0);

  EXPECT_LE(residual(n, lower, a.to_host()), 1e-4);
}

TEST_P(SpdInverse, NamesTheMinorThatIsNotPositive) {
  const int64_t n = 300;
  std::vector<double> lower = positive_definite<double>(n, 3);
  lower[280 * 300 + 280] = -1;
  Tensor<double, 2> a(context(), {n, n}, lower.data());

  EXPECT_EQ(spd_inverse<double>(context(), a.view()), 281);
}

TEST(SpdInverseOnTheCpu, HasTheSameBitsOnEveryNumberOfThreads) {
  const int64_t n = 600;
  const std::vector<double> lower = positive_definite<double>(n, 5);
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 5}) {
    const auto context = make_context("cpu", {threads, 0});
    Tensor<double, 2> a(*context, {n, n}, lower.data());
    ASSERT_EQ(spd_inverse<double>(*context, a.view()), 0);
    results.push_back(a.to_host());
  }

  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace cfaa::test
