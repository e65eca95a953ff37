#include "host/ops/als.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/cpu/blas.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kBlockRows = 512;  // of H at a time; the sums of blocks are added in their order
constexpr int64_t kRowsAtOnce = 16;  // of W

// y = C'^-1 C^-1 y with C (n, n) lower triangular.
void solve_by_cholesky(int64_t n, const double* c, double* y) {
  for (int64_t i = 0; i < n; ++i) {
    double sum = y[i];
    for (int64_t j = 0; j < i; ++j) sum -= c[i * n + j] * y[j];
    y[i] = sum / c[i * n + i];
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    y[i] /= c[i * n + i];
    for (int64_t j = 0; j < i; ++j) y[j] -= c[i * n + j] * y[i];
  }
}

}  // namespace

template <class T>
void als_gram(Context& context, MatrixView<const T> h, MatrixView<T> gram) {
  use_one_blas_thread();
  const int64_t d = h.cols(), blocks = (h.rows() + kBlockRows - 1) / kBlockRows;
  const Arena::Scope scope(context.scratch());
  const auto parts = context.scratch().template take<T, 3>({blocks, d, d});
  context.threads().parallel_for(blocks, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * kBlockRows, count = std::min(kBlockRows, h.rows() - first);
      syrk(Triangle::lower, Transpose::yes, d, count, T(1), h.data + first * d, d, T(0),
           parts[b].data, d);
    }
  });
  std::fill_n(gram.data, d * d, T(0));
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t i = 0; i < d; ++i) {
      for (int64_t j = 0; j <= i; ++j) gram(i, j) += parts(b, i, j);
    }
  }
  mirror_lower(d, gram.data, d);
}

template <class T>
void als_turn(Context& context, MatrixView<const T> basis, MatrixView<T> h) {
  use_one_blas_thread();
  const int64_t d = h.cols(), blocks = (h.rows() + kBlockRows - 1) / kBlockRows;
  const Arena::Scope scope(context.scratch());
  const auto copies = context.scratch().template take<T, 2>(h.shape);
  context.threads().parallel_for(blocks, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * kBlockRows, count = std::min(kBlockRows, h.rows() - first);
      std::copy_n(h.data + first * d, count * d, copies.data + first * d);
      gemm(Transpose::no, Transpose::yes, count, d, d, T(1), copies.data + first * d, d, basis.data,
           d, T(0), h.data + first * d, d);
    }
  });
}

template <class T>
void als_solve(Context& context, const SparseView& rows, const AlsOptions& options,
               VectorView<const T> base, MatrixView<const T> h, MatrixView<T> w) {
  use_one_blas_thread();
  const int64_t d = h.cols();
  // Of a thread: a matrix, the entries' rows of H, the diagonal, the right side.
  struct Scratch {
    std::vector<double> matrix, gathered, diagonal, solution;
  };
  std::vector<Scratch> of_worker(static_cast<std::size_t>(context.threads().threads()));
  context.threads().parallel_for(
      rows.rows, kRowsAtOnce, [&](int64_t begin, int64_t end, int worker) {
        Scratch& scratch = of_worker[static_cast<std::size_t>(worker)];
        scratch.diagonal.resize(static_cast<std::size_t>(d));
        for (int64_t u = begin; u < end; ++u) {
          T* w_u = w.data + u * d;
          const int64_t count = rows.offset[u + 1] - rows.offset[u];
          const int32_t* entry = rows.column + rows.offset[u];
          const double c =
              options.lambda *
              std::pow(static_cast<double>(count) + options.alpha * static_cast<double>(h.rows()),
                       options.nu);
          for (int64_t q = 0; q < d; ++q) {
            scratch.diagonal[static_cast<std::size_t>(q)] = static_cast<double>(base.data[q]) + c;
          }
          const double* diagonal = scratch.diagonal.data();
          const int64_t order = std::min(count, d);
          scratch.matrix.resize(static_cast<std::size_t>(order * order));
          scratch.gathered.resize(static_cast<std::size_t>(count * d));
          scratch.solution.assign(static_cast<std::size_t>(order), 0.0);
          double *matrix = scratch.matrix.data(), *gathered = scratch.gathered.data();
          double* solution = scratch.solution.data();
          std::fill_n(w_u, d, T(0));
          if (count == 0) continue;
          if (count <= d) {
            // w = D^-1 H_u' (I + H_u D^-1 H_u')^-1 1, with G = H_u D^-1/2
            for (int64_t q = 0; q < d; ++q)
              scratch.diagonal[static_cast<std::size_t>(q)] = 1 / std::sqrt(diagonal[q]);
            for (int64_t e = 0; e < count; ++e) {
              const T* h_e = h.data + int64_t{entry[e]} * d;
              for (int64_t q = 0; q < d; ++q) {
                gathered[e * d + q] = static_cast<double>(h_e[q]) * diagonal[q];
              }
            }
            syrk(Triangle::lower, Transpose::no, order, d, 1.0, gathered, d, 0.0, matrix, order);
            for (int64_t e = 0; e < order; ++e) {
              matrix[e * order + e] += 1;
              solution[e] = 1;
            }
            cholesky(order, matrix, order);
            solve_by_cholesky(order, matrix, solution);
            for (int64_t q = 0; q < d; ++q) {
              double sum = 0;
              for (int64_t e = 0; e < count; ++e) sum += gathered[e * d + q] * solution[e];
              w_u[q] = static_cast<T>(sum * diagonal[q]);
            }
          } else {
            for (int64_t e = 0; e < count; ++e) {
              const T* h_e = h.data + int64_t{entry[e]} * d;
              for (int64_t q = 0; q < d; ++q) {
                gathered[e * d + q] = static_cast<double>(h_e[q]);
                solution[q] += gathered[e * d + q];
              }
            }
            syrk(Triangle::lower, Transpose::yes, order, count, 1.0, gathered, d, 0.0, matrix,
                 order);
            for (int64_t q = 0; q < d; ++q) matrix[q * order + q] += diagonal[q];
            cholesky(order, matrix, order);
            solve_by_cholesky(order, matrix, solution);
            std::copy_n(solution, d, w_u);
          }
        }
      });
}

CFAA_FOR_FLOAT_AND_DOUBLE(als_gram);
CFAA_FOR_FLOAT_AND_DOUBLE(als_turn);
CFAA_FOR_FLOAT_AND_DOUBLE(als_solve);

}  // namespace cfaa::cpu
