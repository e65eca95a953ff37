#pragma once

// Odd polynomials p(x) = a x + b x^3 + c x^5 that take singular values to one, a few in a row: each
// deviates least from 1 on the interval that those before it leave (Remez), so that n of them are
// the best polynomial of their form and degree 5^n. Once the interval is narrow all are
//
//   (15 x - 10 x^3 + 3 x^5) / 8
//
// which turns 1 - x^2 = e into at most e^3 for |e| <= 1. So does the last one of a row, whatever is
// left by then: who has seen e before it knows what it leaves.

#include <cstddef>
#include <vector>

namespace cfaa::cuda {

struct OddQuintic {
  double a, b, c;

  double operator()(double x) const { return x * (a + x * x * (b + x * x * c)); }
};

// `steps` polynomials for singular values in [least, 1], 0 < least <= 1.
std::vector<OddQuintic> polar_polynomials(double least, std::size_t steps);

}  // namespace cfaa::cuda
