#include "host/eval/significance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/compare.h"

namespace cfaa::test {
namespace {

// Values of scipy.stats.t.sf, doubled.
TEST(Significance, StudentsTailIsThatOfTables) {
  EXPECT_TRUE(close(student_two_sided(2, 4), 0.11611652351681556, 1e-12));
  EXPECT_TRUE(close(student_two_sided(-2, 4), 0.11611652351681556, 1e-12));
  EXPECT_TRUE(close(student_two_sided(0.5, 1), 0.7048327646991335, 1e-12));
  EXPECT_TRUE(close(student_two_sided(10, 9), 3.578237431924736e-06, 1e-10));
  EXPECT_TRUE(close(student_two_sided(1.3, 100), 0.19658946342236616, 1e-12));
  EXPECT_EQ(student_two_sided(0, 3), 1);
}

// scipy.stats.ttest_1samp.
TEST(Significance, PairedTestIsStudents) {
  const PairedTest test = paired_t_test(std::vector<double>{0.01, 0.02, -0.005, 0.03, 0.015});

  EXPECT_EQ(test.pairs, 5);
  EXPECT_TRUE(close(test.mean, 0.014, 1e-12));
  EXPECT_TRUE(close(test.t, 2.418831591627808, 1e-12));
  EXPECT_TRUE(close(test.p, 0.07285505961025576, 1e-12));
}

TEST(Significance, EqualDifferencesNeedNoSpread) {
  EXPECT_EQ(paired_t_test(std::vector<double>{0, 0, 0}).p, 1);
  EXPECT_EQ(paired_t_test(std::vector<double>{0.1, 0.1, 0.1}).p, 0);
  EXPECT_EQ(paired_t_test(std::vector<double>{0.1}).p, 1);
  EXPECT_EQ(paired_t_test({}).pairs, 0);
}

TEST(Significance, DeviationIsThatOfASample) {
  const MeanAndDeviation found = mean_and_deviation(std::vector<double>{1, 2, 4});

  EXPECT_TRUE(close(found.mean, 7.0 / 3, 1e-14));
  EXPECT_TRUE(close(found.deviation, std::sqrt(7.0 / 3), 1e-14));
  EXPECT_EQ(mean_and_deviation(std::vector<double>{5}).deviation, 0);
}

}  // namespace
}  // namespace cfaa::test
