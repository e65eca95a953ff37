#include "host/ops/slim.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "host/core/error.h"
#include "host/cpu/blas.h"
#include "host/cpu/inverse_sqrt.h"
#include "host/cpu/problems.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kRows = 256;  // rows of Z made double at a time

// What one thread works in.
struct Scratch {
  double *gram, *square, *rows;  // (D, D), (D, D), (kRows, D)
  double* inverse_sqrt;
};

int64_t scratch_size(int64_t d) {
  return 2 * d * d + kRows * d + InverseSqrt::scratch_size(d);
}

Scratch scratch_of(double* memory, int64_t d) {
  return {memory, memory + d * d, memory + 2 * d * d, memory + 2 * d * d + kRows * d};
}

// rows (count, d) = rows first .. first + count of z.
template <class T>
void widen(MatrixView<const T> z, int64_t first, int64_t count, double* rows) {
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(z.data + (first + i) * z.stride[0], z.cols(), rows + i * z.cols());
  }
}

// The lower triangle of Z'Z, in double.
template <class T>
void gram_of(MatrixView<const T> z, const Scratch& scratch) {
  const int64_t n = z.rows(), d = z.cols();
  for (int64_t first = 0; first < n; first += kRows) {
    const int64_t rows = std::min(kRows, n - first);
    widen(z, first, rows, scratch.rows);
    syrk(Triangle::lower, Transpose::yes, d, rows, 1.0, scratch.rows, d, first > 0 ? 1.0 : 0.0,
         scratch.gram, d);
  }
}

// A set of zeros has no scale of its own: it keeps nu as given, and B = 0 whatever nu is.
double penalty(const SlimOptions& options, const double* gram, int64_t d) {
  if (options.nu_scale == NuScale::absolute) return options.nu;
  double trace = 0;
  for (int64_t i = 0; i < d; ++i) trace += gram[i * d + i];
  return trace > 0 ? options.nu * (trace / static_cast<double>(d)) : options.nu;
}

// One set. Xi is 2 I, and not stored, in the first round.
struct Round {
  int64_t d;
  double nu;
  SlimStep step;
  bool identity;  // Xi = 2 I
  double *b, *theta, *xi, *gamma;
};

// Theta = (Z'Z + nu Xi)^-1
int invert(const Round& r, const double* gram) {
  const int64_t d = r.d;
  for (int64_t i = 0; i < d; ++i) {
    double* row = r.theta + i * d;
    const double* g = gram + i * d;
    if (r.identity) {
      std::copy_n(g, i + 1, row);
      row[i] += 2 * r.nu;
    } else {
      for (int64_t j = 0; j <= i; ++j) row[j] = g[j] + r.nu * r.xi[i * d + j];
    }
  }
  if (const int info = cholesky(d, r.theta, d)) return info;
  return inverse_from_cholesky(d, r.theta, d);
}

// B = I - nu Theta Xi - Theta diag(gamma), gamma_j = (1 - nu (Theta Xi)_jj) / Theta_jj.
void exact_step(const Round& r) {
  const int64_t d = r.d;
  if (r.identity) {
    for (int64_t i = 0; i < d * d; ++i) r.b[i] = -2 * r.nu * r.theta[i];
  } else {
    gemm(Transpose::no, Transpose::no, d, d, d, -r.nu, r.theta, d, r.xi, d, 0.0, r.b, d);
  }
  for (int64_t j = 0; j < d; ++j) r.gamma[j] = (1 + r.b[j * d + j]) / r.theta[j * d + j];
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) r.b[i * d + j] -= r.theta[i * d + j] * r.gamma[j];
    r.b[i * d + i] = 0;
  }
}

// B_ij = -Theta_ij / Theta_jj; gamma takes 1 / Theta_jj, which plays its part in what follows.
void paper_step(const Round& r) {
  const int64_t d = r.d;
  for (int64_t j = 0; j < d; ++j) r.gamma[j] = 1 / r.theta[j * d + j];
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) r.b[i * d + j] = -r.theta[i * d + j] * r.gamma[j];
    r.b[i * d + i] = 0;
  }
}

// |Z - ZB|^2 = Tr((I - B)' Gram (I - B)) with no further product and no cancellation against a
// large Gram. As Theta^-1 = Gram + nu Xi, Gram (I - B) is diag(gamma) + nu Xi B after the exact
// step and diag(gamma) - nu Xi (I - B) after the paper's; diag(B) = 0, and BB' is `square`'s upper
// triangle.
double residual(const Round& r, const double* square) {
  const int64_t d = r.d;
  double gammas = 0, xi_b = 0, xi_square = 0, xi_trace = 2.0 * static_cast<double>(d);
  for (int64_t j = 0; j < d; ++j) gammas += r.gamma[j];
  if (r.identity) {
    for (int64_t i = 0; i < d; ++i) xi_square += 2 * square[i * d + i];
  } else {
    xi_trace = 0;
    for (int64_t i = 0; i < d; ++i) {
      const double* xi = r.xi + i * d;
      xi_trace += xi[i];
      xi_b += dot(d, xi, r.b + i * d);
      xi_square +=
          xi[i] * square[i * d + i] + 2 * dot(d - i - 1, xi + i + 1, square + i * d + i + 1);
    }
  }
  if (r.step == SlimStep::exact) return gammas + r.nu * (xi_b - xi_square);
  return gammas - r.nu * (xi_trace - 2 * xi_b + xi_square);
}

template <class T>
Fault solve(MatrixView<const T> z, const SlimOptions& options, const Slim& result, int64_t set,
            const Scratch& scratch) {
  const int64_t d = z.cols();
  gram_of(z, scratch);
  Round r{.d = d,
          .nu = penalty(options, scratch.gram, d),
          .step = options.step,
          .identity = true,
          .b = result.b[set].data,
          .theta = result.theta[set].data,
          .xi = options.iterations > 1 ? result.xi[set].data : nullptr,
          .gamma = result.gamma[set].data};
  InverseSqrt phi(d, scratch.inverse_sqrt);
  double* objective = result.objective[set].data;
  result.nu.data[set] = r.nu;
  result.rounds.data[set] = 0;
  std::fill_n(objective, options.iterations, std::numeric_limits<double>::quiet_NaN());

  for (int64_t round = 0;; ++round) {
    if (const int minor = invert(r, scratch.gram)) {
      return fault_of(FaultCode::not_positive_definite, FaultSite::slim, set, minor);
    }
    if (options.step == SlimStep::exact) {
      exact_step(r);
    } else {
      paper_step(r);
    }

    if (round + 1 == options.iterations && !options.last_objective) {
      result.rounds.data[set] = static_cast<int32_t>(round + 1);
      const double gammas = std::accumulate(r.gamma, r.gamma + d, 0.0);
      return std::isfinite(gammas) ? Fault{}
                                   : fault_of(FaultCode::not_finite, FaultSite::slim, set, -1);
    }

    // BB' + delta I, in tridiagonal form, gives this round's objective; the next round's Xi too.
    syrk(Triangle::upper, Transpose::no, d, d, 1.0, r.b, d, 0.0, scratch.square, d);
    const double misfit = residual(r, scratch.square);
    for (int64_t i = 0; i < d; ++i) scratch.square[i * d + i] += options.delta;
    if (const int minor = phi.reduce(scratch.square, options.delta)) {
      return fault_of(FaultCode::not_positive_definite, FaultSite::slim_penalty, set, minor);
    }
    objective[round] = misfit / 2 + 2 * r.nu * phi.sqrt_trace();
    result.rounds.data[set] = static_cast<int32_t>(round + 1);
    if (!std::isfinite(objective[round])) {
      return fault_of(FaultCode::not_finite, FaultSite::slim, set, -1);
    }

    // Xi must stay the one that made this Theta if this round is the last.
    if (round + 1 == options.iterations) break;
    if (round > 0 && options.tolerance > 0 &&
        objective[round - 1] - objective[round] < options.tolerance * objective[round - 1]) {
      break;
    }
    if (const int minor = phi.write(2.0, r.xi)) {
      return fault_of(FaultCode::not_positive_definite, FaultSite::slim_penalty, set, minor);
    }
    r.identity = false;
  }
  return {};
}

// G with its diagonal replaced by h_j = -sum_i G_ij Theta_ij / Theta_jj.
void gradient_of_constraint(int64_t d, const double* b_gradient, const double* theta, double* g) {
  double* h = g + d * d;
  std::fill_n(h, d, 0.0);
  for (int64_t i = 0; i < d; ++i) {
    std::copy_n(b_gradient + i * d, d, g + i * d);
    g[i * d + i] = 0;
    for (int64_t j = 0; j < d; ++j) h[j] -= g[i * d + j] * theta[i * d + j];
  }
  for (int64_t j = 0; j < d; ++j) g[j * d + j] = h[j] / theta[j * d + j];
}

// s (d, d) = p + p'.
void add_transpose(int64_t d, const double* p, double* s) {
  constexpr int64_t kTile = 32;
  for (int64_t i0 = 0; i0 < d; i0 += kTile) {
    for (int64_t j0 = 0; j0 < d; j0 += kTile) {
      for (int64_t i = i0; i < std::min(i0 + kTile, d); ++i) {
        for (int64_t j = j0; j < std::min(j0 + kTile, d); ++j) {
          s[i * d + j] = p[i * d + j] + p[j * d + i];
        }
      }
    }
  }
}

// Both steps are I - B = Theta W, with W = nu Xi + diag(gamma) or diag(1 / Theta_jj), and in both
// dTheta = -H W, where H is G with h on its diagonal. So Xi and gamma drop out of
//   dGram = -Theta dTheta Theta = Theta H W Theta = (Theta H)(I - B)'.
// The last product is in double as well: with a small nu dGram leaves float's range, dZ does not.
template <class T>
void backward(MatrixView<const T> z, const Slim& forward, int64_t set, const double* b_gradient,
              double scale, MatrixView<T> gradient, double* scratch) {
  const int64_t n = z.rows(), d = z.cols();
  const double* theta = forward.theta[set].data;
  double *h = scratch, *gram_gradient = h + d * (d + 1);
  double *rows = gram_gradient + d * d, *products = rows + kRows * d;
  gradient_of_constraint(d, b_gradient, theta, h);
  gemm(Transpose::no, Transpose::no, d, d, d, 1.0, theta, d, h, d, 0.0, gram_gradient, d);
  std::copy_n(gram_gradient, d * d, h);
  gemm(Transpose::no, Transpose::yes, d, d, d, -1.0, h, d, forward.b[set].data, d, 1.0,
       gram_gradient, d);
  add_transpose(d, gram_gradient, h);

  for (int64_t first = 0; first < n; first += kRows) {
    const int64_t count = std::min(kRows, n - first);
    widen(z, first, count, rows);
    gemm(Transpose::no, Transpose::no, count, d, d, scale, rows, d, h, d, 0.0, products, d);
    for (int64_t i = 0; i < count; ++i) {
      T* row = gradient.data + (first + i) * gradient.stride[0];
      for (int64_t j = 0; j < d; ++j) row[j] = static_cast<T>(row[j] + products[i * d + j]);
    }
  }
}

}  // namespace

template <class T>
void slim(Context& context, std::span<const MatrixView<const T>> sets, const SlimOptions& options,
          const Slim& result) {
  const int64_t s = static_cast<int64_t>(sets.size()), d = sets[0].cols();
  const Slots slots(context, s);
  const auto memory = slots.take<double>(context.scratch(), scratch_size(d));
  const auto faults = context.scratch().take<Fault, 1>({s});

  slots.for_each([&](int64_t set, int64_t slot) {
    faults.data[set] = solve<T>(sets[set], options, result, set, scratch_of(memory[slot].data, d));
  });
  latch_first(context, faults);
}

template <class T>
void slim_backward(Context& context, std::span<const MatrixView<const T>> sets, const SlimOptions&,
                   const Slim& forward, View<const double, 3> b_gradient, double scale,
                   std::span<const MatrixView<T>> gradients) {
  const int64_t s = static_cast<int64_t>(sets.size()), d = sets[0].cols();
  const Slots slots(context, s);
  const auto memory = slots.take<double>(context.scratch(), d * (2 * d + 1) + 2 * kRows * d);

  slots.for_each([&](int64_t set, int64_t slot) {
    backward<T>(sets[set], forward, set, b_gradient[set].data, scale, gradients[set],
                memory[slot].data);
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(slim);
CFAA_FOR_FLOAT_AND_DOUBLE(slim_backward);

}  // namespace cfaa::cpu
