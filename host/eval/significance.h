#pragma once

// Is a difference more than chance? Paired tests: the same seed (or the same user) under two
// models.

#include <cstdint>
#include <span>

namespace cfaa {

struct PairedTest {
  int64_t pairs = 0;
  double mean = 0;            // of the differences
  double standard_error = 0;  // of that mean
  double t = 0;               // mean / standard_error; 0 where all differences are 0
  double p = 1;               // two-sided, of Student's t with pairs - 1 degrees of freedom
};

// The t-test of differences that are paired already. Fewer than 2 say nothing: p is 1. Differences
// that are all the same and not 0 have p 0.
PairedTest paired_t_test(std::span<const double> differences);

// P(|T| >= |t|) of Student's t. freedom > 0.
double student_two_sided(double t, double freedom);

// Mean and the sample's standard deviation (n - 1; 0 for one value).
struct MeanAndDeviation {
  double mean = 0, deviation = 0;
};
MeanAndDeviation mean_and_deviation(std::span<const double> values);

}  // namespace cfaa
