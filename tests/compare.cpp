#include "tests/compare.h"

#include <algorithm>
#include <cmath>

namespace cfaa::test {

template <class A, class B>
testing::AssertionResult close(A a, B b, double tolerance) {
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  if (x == y) return testing::AssertionSuccess();
  const double scale = std::max(std::abs(x), std::abs(y));
  const double error = std::abs(x - y) / scale;
  if (!(error <= tolerance)) {
    return testing::AssertionFailure()
           << x << " and " << y << " differ by " << error << " (allowed " << tolerance << ")";
  }
  return testing::AssertionSuccess();
}

template <class A, class B>
testing::AssertionResult close(const std::vector<A>& a, const std::vector<B>& b, double tolerance) {
  if (a.size() != b.size()) {
    return testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size() << " differ";
  }
  double difference = 0, norm_a = 0, norm_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    norm_a += x * x;
    norm_b += y * y;
  }
  if (difference == 0) return testing::AssertionSuccess();
  // A quotient, not a product: infinity over infinity is NaN and fails.
  const double norm = std::sqrt(std::max(norm_a, norm_b));
  const double error = std::sqrt(difference) / norm;
  if (!(error <= tolerance)) {
    return testing::AssertionFailure() << "the arrays differ by " << error << " of their norm "
                                       << norm << " (allowed " << tolerance << ")";
  }
  return testing::AssertionSuccess();
}

template <class A, class B>
testing::AssertionResult close_each(const std::vector<A>& a, const std::vector<B>& b,
                                    double tolerance, double floor) {
  if (a.size() != b.size()) {
    return testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size() << " differ";
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (x == y) continue;
    const double error = std::abs(x - y) / std::max({std::abs(x), std::abs(y), floor});
    if (!(error <= tolerance)) {
      return testing::AssertionFailure()
             << "element " << i << ": " << x << " and " << y << " differ by " << error
             << " (allowed " << tolerance << ")";
    }
  }
  return testing::AssertionSuccess();
}

#define CFAA_INSTANTIATE(A, B)                                                                     \
  template testing::AssertionResult close<A, B>(A, B, double);                                     \
  template testing::AssertionResult close<A, B>(const std::vector<A>&, const std::vector<B>&,      \
                                                double);                                           \
  template testing::AssertionResult close_each<A, B>(const std::vector<A>&, const std::vector<B>&, \
                                                     double, double);
CFAA_INSTANTIATE(float, float)
CFAA_INSTANTIATE(float, double)
CFAA_INSTANTIATE(double, float)
CFAA_INSTANTIATE(double, double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa::test
