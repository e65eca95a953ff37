#include "host/eval/significance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/core/error.h"

namespace cfaa {
namespace {

// The continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  if (std::abs(d) < kTiny) d = kTiny;
  d = 1 / d;
  double h = d;
  for (int m = 1; m <= 1000; ++m) {
    const double m2 = 2.0 * m;
    const double even = m * (b - m) * x / ((a + m2 - 1) * (a + m2));
    const double odd = -(a + m) * (a + b + m) * x / ((a + m2) * (a + m2 + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 + term * d;
      if (std::abs(d) < kTiny) d = kTiny;
      c = 1 + term / c;
      if (std::abs(c) < kTiny) c = kTiny;
      d = 1 / d;
      change = d * c;
      h *= change;
    }
    if (std::abs(change - 1) < 1e-15) break;
  }
  return h;
}

// I_x(a, b), regularised.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast on this side of the mean, and the other follows by symmetry.
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_two_sided(double t, double freedom) {
  CFAA_ASSERT(freedom > 0);
  if (std::isinf(t)) return 0;
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

MeanAndDeviation mean_and_deviation(std::span<const double> values) {
  MeanAndDeviation result;
  const auto count = static_cast<double>(values.size());
  if (values.empty()) return result;
  for (const double value : values) result.mean += value / count;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / (count - 1));
  return result;
}

PairedTest paired_t_test(std::span<const double> differences) {
  PairedTest test;
  test.pairs = static_cast<int64_t>(differences.size());
  const MeanAndDeviation all = mean_and_deviation(differences);
  test.mean = all.mean;
  if (test.pairs < 2) return test;
  const auto [least, most] = std::minmax_element(differences.begin(), differences.end());
  if (*least == *most) {  // exactly: the deviation would be rounding
    if (*least == 0) return test;
    test.t = std::copysign(std::numeric_limits<double>::infinity(), *least);
    test.p = 0;
    return test;
  }
  const auto pairs = static_cast<double>(test.pairs);
  test.standard_error = all.deviation / std::sqrt(pairs);
  test.t = test.mean / test.standard_error;
  test.p = student_two_sided(test.t, pairs - 1);
  return test;
}

}  // namespace cfaa
