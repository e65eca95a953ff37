#include "tests/compare.h"

#include <cmath>
#include <limits>

namespace cfaa::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Comparator, NaNIsCloseToNothing) {
  EXPECT_FALSE(close(kNaN, 1.0, 1e300));
  EXPECT_FALSE(close(1.0, kNaN, 1e300));
  EXPECT_FALSE(close(kNaN, kNaN, 1e300));
  EXPECT_FALSE(close(std::vector{1.0, kNaN}, std::vector{1.0, 2.0}, 1e300));
  EXPECT_FALSE(close(std::vector{1.0, 2.0}, std::vector{kNaN, 2.0}, 1e300));
  EXPECT_FALSE(close_each(std::vector{kNaN}, std::vector{kNaN}, 1e300, 1.0));
}

TEST(Comparator, SignCounts) {
  EXPECT_FALSE(close(1.0, -1.0, 0.5));
  EXPECT_TRUE(close(-1.0, -1.0 - 1e-12, 1e-9));
  EXPECT_FALSE(close(std::vector{1.0, -1.0}, std::vector{-1.0, 1.0}, 0.5));
}

TEST(Comparator, ZeroIsCloseToZeroOnly) {
  EXPECT_TRUE(close(0.0, -0.0, 0));
  EXPECT_FALSE(close(0.0, 1e-300, 1e-3));
  EXPECT_TRUE(close(std::vector{0.0, 0.0}, std::vector{0.0, 0.0}, 0));
}

TEST(Comparator, InfinityIsCloseToItselfOnly) {
  EXPECT_TRUE(close(kInfinity, kInfinity, 0));
  EXPECT_FALSE(close(kInfinity, 1.0, 1e300));
  EXPECT_FALSE(close(kInfinity, -kInfinity, 1e300));
  EXPECT_FALSE(close(std::vector{kInfinity}, std::vector{1.0}, 0.5));
}

TEST(Comparator, ToleranceIsRelativeToTheLargerValue) {
  EXPECT_TRUE(close(100.0, 101.0, 0.01));
  EXPECT_FALSE(close(100.0, 101.1, 0.01));
  EXPECT_FALSE(close(std::vector<double>{1}, std::vector<double>{1, 2}, 1));
}

}  // namespace
}  // namespace cfaa::test
