#include "host/cpu/inverse_sqrt.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "host/cpu/blas.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kBlock = 32;            // columns of F made at a time
constexpr double kSmallestRatio = 1e-13;  // of the spectrum that double can tell from round-off
constexpr double kRuleError = 1e-15;

}  // namespace

int64_t InverseSqrt::scratch_size(int64_t n) {
  return (3 + 3 * kMaxPoles) * n + kMaxPoles * kBlock + tridiagonal_work(n);
}

InverseSqrt::InverseSqrt(int64_t n, double* scratch) : n_(n) {
  const auto take = [&scratch](int64_t count) {
    double* at = scratch;
    scratch += count;
    return at;
  };
  diagonal_ = take(n);
  off_diagonal_ = take(n);
  tau_ = take(n);
  inverse_diagonal_ = take(kMaxPoles * n);
  ratio_ = take(kMaxPoles * n);
  steps_ = take(kMaxPoles * n);
  columns_ = take(kMaxPoles * kBlock);
  work_ = take(tridiagonal_work(n));
}

// With k^2 = low / high and u_q = (q + 1/2) K' / poles:  shift = low sc^2(u | k'), and as cn and dn
// follow from sc,  weight = 2 K' sqrt(low) / (pi poles) * sqrt((1 + s / low)(1 + s / high)).
void InverseSqrt::choose_poles(double low, double high) {
  const double ratio = std::min(low / high, 0.5);  // the rule holds on a wider interval too
  high = low / ratio;
  const double rate = 2 * std::numbers::pi * std::numbers::pi / (3 - std::log(ratio));
  poles_ = std::clamp(static_cast<int>(std::ceil(-std::log(kRuleError) / rate)), 2, kMaxPoles);

  // Bulirsch: the arithmetic-geometric mean down to K' = pi / (2 mean), then cn / sn back up by
  // rational steps, which lose no digits near the pole that k' ~ 1 brings close.
  constexpr int kLevels = 16;
  std::array<double, kLevels> arithmetic, geometric;
  double a = 1, b = std::sqrt(ratio), mean = (a + b) / 2;
  int levels = 0;
  while (levels < kLevels) {
    arithmetic[levels] = a;
    geometric[levels] = b;
    ++levels;
    mean = (a + b) / 2;
    if (a - b <= 1e-8 * a) break;  // the error squares at every level
    b = std::sqrt(a * b);
    a = mean;
  }
  const double factor = std::sqrt(low) / (mean * poles_);
  for (int q = 0; q < poles_; ++q) {
    const int mirrored = poles_ - 1 - q;
    if (q <= mirrored) {
      double cot = 1 / std::tan(std::numbers::pi * (q + 0.5) / (2 * poles_));
      double cs = mean * cot, dn = 1;  // cs: cn / sn
      for (int level = levels - 1; level >= 0; --level) {
        cot *= cs;
        cs *= dn;
        dn = (geometric[level] + cot) / (arithmetic[level] + cot);
        cot = cs / arithmetic[level];
      }
      shift_[q] = low / (cs * cs);
    } else {
      shift_[q] = low / shift_[mirrored] * high;  // sc(K' - u) sc(u) = 1 / k
    }
    weight_[q] = factor * std::sqrt((1 + shift_[q] / low) * (1 + shift_[q] / high));
  }
}

// T + s I factored from both ends: with p its pivots from the front and r from the back, the
// inverse has G_ii = 1 / (p_i + r_i - t_i - s) and, for j >= i, G_i,j+1 = -G_ij off_j / r_j+1.
int InverseSqrt::reduce(double* a, double low) {
  const int64_t n = n_;
  a_ = a;
  tridiagonal(n, a, n, diagonal_, off_diagonal_, tau_, work_);

  double high = 0;  // Gershgorin
  for (int64_t i = 0; i < n; ++i) {
    const double left = i > 0 ? std::abs(off_diagonal_[i - 1]) : 0;
    const double right = i + 1 < n ? std::abs(off_diagonal_[i]) : 0;
    const double bound = std::abs(diagonal_[i]) + left + right;
    if (!std::isfinite(bound)) return static_cast<int>(i) + 1;
    high = std::max(high, bound);
  }
  choose_poles(std::max(low, kSmallestRatio * high), high);

  for (int q = 0; q < poles_; ++q) {
    const double shift = shift_[q];
    double* inverse = inverse_diagonal_ + q * n;
    double* ratio = ratio_ + q * n;
    double back = diagonal_[n - 1] + shift;
    inverse[n - 1] = back;
    for (int64_t i = n - 1; i > 0; --i) {
      ratio[i - 1] = -off_diagonal_[i - 1] / back;
      back = diagonal_[i - 1] + shift + ratio[i - 1] * off_diagonal_[i - 1];
      inverse[i - 1] = back;
    }
    double front = 0;  // p_i - t_i - s
    for (int64_t i = 0; i < n; ++i) {
      const double pivot = inverse[i] + front;
      if (!(pivot > 0 && inverse[i] > 0)) return static_cast<int>(i) + 1;
      inverse[i] = weight_[q] / pivot;
      if (i + 1 < n) {
        front = -off_diagonal_[i] * off_diagonal_[i] / (diagonal_[i] + shift + front);
      }
    }
  }
  return 0;
}

// Tr(T F), from the elements of F on the diagonal and beside it.
double InverseSqrt::sqrt_trace() const {
  double trace = 0;
  for (int q = 0; q < poles_; ++q) {
    const double* inverse = inverse_diagonal_ + q * n_;
    const double* ratio = ratio_ + q * n_;
    for (int64_t i = 0; i < n_; ++i) {
      trace += diagonal_[i] * inverse[i];
      if (i + 1 < n_) trace += 2 * off_diagonal_[i] * ratio[i] * inverse[i];
    }
  }
  return trace;
}

// The lower triangle of F. In a block of columns the diagonal square goes row by row; all rows
// below are one product of rank `poles`: F_ji = sum_q steps_jq columns_qi.
void InverseSqrt::tridiagonal_inverse_sqrt(double* f) {
  const int64_t n = n_;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t width = std::min(kBlock, n - first), end = first + width;
    std::fill_n(columns_, poles_ * kBlock, 0.0);
    for (int64_t j = first; j < end; ++j) {
      double* row = f + j * n + first;
      std::fill_n(row, width, 0.0);
      for (int q = 0; q < poles_; ++q) {
        double* column = columns_ + q * kBlock;
        const double step = j > first ? ratio_[q * n + j - 1] : 0;
        for (int64_t i = 0; i < kBlock; ++i) column[i] *= step;
        column[j - first] = inverse_diagonal_[q * n + j];
        for (int64_t i = 0; i < width; ++i) row[i] += column[i];
      }
    }
    if (end == n) break;
    for (int q = 0; q < poles_; ++q) {
      double product = 1;
      for (int64_t j = end; j < n; ++j) {
        product *= ratio_[q * n + j - 1];
        // Far from the diagonal the products die out; denormals would only slow the next ones.
        if (std::abs(product) < 1e-100) product = 0;
        steps_[j * kMaxPoles + q] = product;
      }
    }
    gemm(Transpose::no, Transpose::no, n - end, width, poles_, 1.0, steps_ + end * kMaxPoles,
         kMaxPoles, columns_, kBlock, 0.0, f + end * n + first, n);
  }
}

// F = K K', then (Q K)' = K' Q' and its square. K' needs zeros below its diagonal.
int InverseSqrt::write(double factor, double* out) {
  const int64_t n = n_;
  tridiagonal_inverse_sqrt(out);
  if (const int info = cholesky(n, out, n)) return info;
  mirror_lower(n, out, n);
  for (int64_t i = 1; i < n; ++i) std::fill_n(out + i * n, i, 0.0);
  apply_tridiagonal_basis(n, a_, n, tau_, out, n, work_);
  std::copy_n(out, n * n, a_);
  syrk(Triangle::lower, Transpose::yes, n, n, factor, a_, n, 0.0, out, n);
  mirror_lower(n, out, n);
  return 0;
}

}  // namespace cfaa::cpu
