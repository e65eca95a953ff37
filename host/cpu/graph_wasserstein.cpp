#include "host/ops/graph_wasserstein.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/core/error.h"
#include "host/cpu/blas.h"
#include "host/cpu/inverse_sqrt.h"
#include "host/cpu/problems.h"

// L + J = K K' and C = K^-T, upper triangular, so that every product with a factor is half a
// product. d_W and its gradients by E = C_T - C_S Q (see the header): the difference of traces
// loses log10(Tr Sigma / d_W) digits, |E|^2 none, and an error of Q, which
// minimises |C_T - C_S Q|, enters it squared.

namespace cfaa::cpu {
namespace {

constexpr int64_t kTile = 32;

// A, L and K^-1 of one set; returns cholesky's info. `norm` becomes |L + J|_1.
template <class T>
int factor_graph(int64_t d, const double* b, double graph_floor, T* laplacian, T* factor,
                 double* norm) {
  for (int64_t i0 = 0; i0 < d; i0 += kTile) {
    for (int64_t j0 = 0; j0 <= i0; j0 += kTile) {
      for (int64_t i = i0; i < std::min(i0 + kTile, d); ++i) {
        for (int64_t j = j0; j < std::min(j0 + kTile, i); ++j) {
          const double weight = (std::abs(b[i * d + j]) + std::abs(b[j * d + i])) / 2 + graph_floor;
          laplacian[i * d + j] = laplacian[j * d + i] = static_cast<T>(-weight);
        }
      }
    }
  }
  const double j_element = 1 / static_cast<double>(d);
  *norm = 0;
  for (int64_t i = 0; i < d; ++i) {
    T* row = laplacian + i * d;
    row[i] = 0;
    double degree = 0;
    for (int64_t j = 0; j < d; ++j) degree -= row[j];
    row[i] = static_cast<T>(degree);
    *norm = std::max(*norm, 2 * degree + 1);
    for (int64_t j = 0; j <= i; ++j) factor[i * d + j] = static_cast<T>(row[j] + j_element);
  }
  if (const int info = cholesky(d, factor, d)) return info;
  return inverse_of_lower(d, factor, d);
}

// b (d, d) = the upper triangular C = K^-T, from the lower triangular K^-1; zeros below.
template <class T>
void transpose_lower(int64_t d, const T* factor, T* b) {
  for (int64_t i = 0; i < d; ++i) std::copy_n(factor + i * d, i + 1, b + i * d);
  mirror_lower(d, b, d);
  for (int64_t i = 1; i < d; ++i) std::fill_n(b + i * d, i, T(0));
}

template <class T>
struct Pair {
  int64_t d;
  const T *source, *target;  // (D, D)  K_S^-1 and K_T^-1, lower triangular
  double source_norm, target_norm;
  T* turned;    // (D, D)  C_S Q
  T* residual;  // (D, D)  E
};

// Q, E and d_W of a pair. `square` and `root` are (D, D); `r` and `q` too.
template <class T>
Fault align(const Pair<T>& pair, int64_t problem, T* r, T* q, double* square, double* root,
            double* inverse_sqrt, T* distance) {
  const int64_t d = pair.d;
  // R = K_S^-1 C_T
  transpose_lower(d, pair.target, r);
  trmm(Side::left, Triangle::lower, Transpose::no, d, d, T(1), pair.source, d, r, d);

  // (RR')^(-1/2), in double: it squares R's condition. The singular values of R are at least
  // 1 / sqrt(|L_S + J| |L_T + J|).
  std::copy_n(r, d * d, root);
  syrk(Triangle::upper, Transpose::no, d, d, 1.0, root, d, 0.0, square, d);
  InverseSqrt polar(d, inverse_sqrt);
  int minor = polar.reduce(square, 1 / (pair.source_norm * pair.target_norm));
  if (minor == 0) minor = polar.write(1.0, root);
  if (minor != 0) {
    return fault_of(FaultCode::not_positive_definite, FaultSite::wasserstein, problem, minor);
  }
  T* p = pair.residual;
  std::copy_n(root, d * d, p);
  gemm(Transpose::no, Transpose::no, d, d, d, T(1), p, d, r, d, T(0), q, d);

  // C_S Q = K_S^-T Q
  std::copy_n(q, d * d, pair.turned);
  trmm(Side::left, Triangle::lower, Transpose::yes, d, d, T(1), pair.source, d, pair.turned, d);
  transpose_lower(d, pair.target, pair.residual);
  for (int64_t i = 0; i < d * d; ++i) pair.residual[i] -= pair.turned[i];
  *distance = static_cast<T>(dot(d * d, pair.residual, pair.residual));
  if (!std::isfinite(*distance)) {
    return fault_of(FaultCode::not_finite, FaultSite::wasserstein, problem, -1);
  }
  return {};
}

// dL_S = C_S (C_S' E) (C_S Q)', in `gradient`.
template <class T>
void source_gradient(const Pair<T>& pair, T* product, T* gradient) {
  const int64_t d = pair.d;
  std::copy_n(pair.residual, d * d, product);
  trmm(Side::left, Triangle::lower, Transpose::no, d, d, T(1), pair.source, d, product, d);
  gemm(Transpose::no, Transpose::yes, d, d, d, T(1), product, d, pair.turned, d, T(0), gradient, d);
  trmm(Side::left, Triangle::lower, Transpose::yes, d, d, T(1), pair.source, d, gradient, d);
}

// dL_T = -Sigma_T E C_T' (the transpose of the above; only the symmetric part is used).
template <class T>
void target_gradient(const Pair<T>& pair, T* gradient) {
  const int64_t d = pair.d;
  std::copy_n(pair.residual, d * d, gradient);
  trmm(Side::left, Triangle::lower, Transpose::no, d, d, T(-1), pair.target, d, gradient, d);
  trmm(Side::left, Triangle::lower, Transpose::yes, d, d, T(1), pair.target, d, gradient, d);
  trmm(Side::right, Triangle::lower, Transpose::no, d, d, T(1), pair.target, d, gradient, d);
}

double sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

// dB = sign(B) o (dA + dA')/2,  dA_ij = dL_ii - dL_ij.
template <class T>
void write_b_gradient(int64_t d, const double* b, const T* gradient, double* b_gradient) {
  for (int64_t i0 = 0; i0 < d; i0 += kTile) {
    for (int64_t j0 = 0; j0 < d; j0 += kTile) {
      for (int64_t i = i0; i < std::min(i0 + kTile, d); ++i) {
        for (int64_t j = j0; j < std::min(j0 + kTile, d); ++j) {
          const double diagonal = static_cast<double>(gradient[i * d + i]) + gradient[j * d + j];
          const double across = static_cast<double>(gradient[i * d + j]) + gradient[j * d + i];
          b_gradient[i * d + j] = sign(b[i * d + j]) * (diagonal - across) / 2;
        }
      }
    }
  }
}

}  // namespace

template <class T>
void graph_wasserstein(Context& context, View<const double, 3> b, double graph_floor, Solver,
                       const GraphWasserstein<T>& result) {
  const int64_t sets = b.shape[0], d = b.shape[1], pairs = sets / 2;
  Arena& arena = context.scratch();
  const auto factor = arena.take<T, 3>({sets, d, d});
  const auto norm = arena.take<double, 1>({sets});
  const auto turned = arena.take<T, 3>({pairs, d, d});
  const auto residual = arena.take<T, 3>({pairs, d, d});
  const auto faults = arena.take<Fault, 1>({sets});
  const Slots slots(context, sets), pair_slots(context, pairs);
  const auto first = slots.take<T>(arena, d * d), second = slots.take<T>(arena, d * d);
  const auto square = pair_slots.take<double>(arena, d * d);
  const auto root = pair_slots.take<double>(arena, d * d);
  const auto inverse_sqrt = pair_slots.take<double>(arena, InverseSqrt::scratch_size(d));

  slots.for_each([&](int64_t set, int64_t) {
    const int minor = factor_graph<T>(d, b[set].data, graph_floor, result.laplacian[set].data,
                                      factor[set].data, &norm.data[set]);
    faults.data[set] = {};
    if (minor != 0) {
      faults.data[set] = fault_of(FaultCode::not_positive_definite, FaultSite::graph, set, minor);
    }
  });
  latch_first(context, faults);
  if (latched(context)) {
    std::fill_n(result.distance.data, pairs, std::numeric_limits<T>::quiet_NaN());
    return;
  }

  const auto pair_of = [&](int64_t p) {
    return Pair<T>{d,
                   factor[p].data,
                   factor[pairs + p].data,
                   norm.data[p],
                   norm.data[pairs + p],
                   turned[p].data,
                   residual[p].data};
  };
  pair_slots.for_each([&](int64_t p, int64_t slot) {
    faults.data[p] = align(pair_of(p), p, first[slot].data, second[slot].data, square[slot].data,
                           root[slot].data, inverse_sqrt[slot].data, &result.distance.data[p]);
  });
  latch_first(context, faults);

  slots.for_each([&](int64_t set, int64_t slot) {
    T* gradient = first[slot].data;
    if (set < pairs) {
      source_gradient(pair_of(set), second[slot].data, gradient);
    } else {
      target_gradient(pair_of(set - pairs), gradient);
    }
    write_b_gradient(d, b[set].data, gradient, result.b_gradient[set].data);
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(graph_wasserstein);

}  // namespace cfaa::cpu
