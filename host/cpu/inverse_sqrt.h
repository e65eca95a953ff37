#pragma once

// A^(-1/2) of a symmetric positive definite matrix, without its eigenvectors.
//
//   A = Q T Q'                                      T tridiagonal (Householder, LAPACK's dsytrd)
//   x^(-1/2) ~ sum_q w_q / (x + s_q)  on [low, high]  the trapezoid rule in Jacobi's elliptic sine
//   F = T^(-1/2) = sum_q w_q (T + s_q I)^-1         the inverse of a tridiagonal is semiseparable:
//                                                   O(n^2) for all its elements
//   F = K K',  A^(-1/2) = (Q K)(Q K)'
//
// The rule (Hale, Higham, Trefethen 2008, method 3) has relative error exp(-2 pi^2 poles /
// (log(high / low) + 3)) on the whole interval: 27 poles give 1e-15 at high / low = 2e5, so nothing
// iterates and nothing can fail to converge. It takes 0.6 of the time of dsyevd and a product at n
// = 300, and Tr(A^(1/2)) = Tr(T F) needs the reduction alone.

#include <array>
#include <cstdint>

namespace cfaa::cpu {

class InverseSqrt {
 public:
  // `scratch` holds scratch_size(n) doubles.
  static int64_t scratch_size(int64_t n);
  InverseSqrt(int64_t n, double* scratch);

  // Takes `a` (n, n), its upper triangle given, and works in it until `write`. `low` > 0 bounds the
  // eigenvalues from below; one below 1e-13 times the largest, where round-off rules, counts as
  // that. Returns 0, or the leading minor that is not positive (NaN and infinity end there too).
  int reduce(double* a, double low);

  // After `reduce`: Tr(a^(1/2)), at a third of the cost of the whole.
  double sqrt_trace() const;

  // After `reduce`: out (n, n) = factor * a^(-1/2), both triangles. Destroys `a`. Returns as above.
  int write(double factor, double* out);

 private:
  static constexpr int kMaxPoles = 64;

  void choose_poles(double low, double high);
  void tridiagonal_inverse_sqrt(double* f);

  int64_t n_;
  double* a_ = nullptr;
  double *diagonal_, *off_diagonal_, *tau_;  // (n)
  double* inverse_diagonal_;                 // (poles, n)  of w_q (T + s_q I)^-1
  double* ratio_;    // (poles, n)  element (i, j + 1) of that inverse over element (i, j), j >= i
  double* steps_;    // (n, kMaxPoles)  products of ratios from the last column of a block
  double* columns_;  // (poles, block)
  double* work_;

  int poles_ = 0;
  std::array<double, kMaxPoles> shift_, weight_;
};

}  // namespace cfaa::cpu
