// The parts of a half-sweep of alternating least squares on the GPU (contract: host/ops/als.h).
//
// One block of threads per row of W, in turns: with m the smaller of its number of entries and d,
// an (m, m) system is built, factored by Cholesky column by column and solved, in global memory
// that belongs to the block (at d = 64 it stays in the first-level cache; at d = 256 shared memory
// would not hold it). Sums run over entries in their order: the same bits on every run.

#include "host/ops/als.h"

#include <algorithm>

#include "cuda/blas.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kMostBlocks = 512;  // each has its matrix

// y = (C C')^-1 y with a (m, m) = C C' symmetric positive definite, its lower triangle given;
// C overwrites it. Every thread of the block takes part.
template <class T>
__device__ void solve_in_block(T* a, T* y, int m) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int j = 0; j < m; ++j) {
    __syncthreads();
    const T pivot = sqrt(a[j * m + j]);
    __syncthreads();
    if (thread == 0) a[j * m + j] = pivot;
    for (int i = j + 1 + thread; i < m; i += kThreads) a[i * m + j] /= pivot;
    __syncthreads();
    const int rest = m - j - 1;
    for (int64_t e = thread; e < static_cast<int64_t>(rest) * rest; e += kThreads) {
      const int i = j + 1 + static_cast<int>(e / rest), k = j + 1 + static_cast<int>(e % rest);
      if (k <= i) a[i * m + k] -= a[i * m + j] * a[k * m + j];
    }
  }
  for (int j = 0; j < m; ++j) {  // C y = y
    __syncthreads();
    const T y_j = y[j] / a[j * m + j];
    __syncthreads();
    if (thread == 0) y[j] = y_j;
    for (int i = j + 1 + thread; i < m; i += kThreads) y[i] -= a[i * m + j] * y_j;
  }
  for (int j = m - 1; j >= 0; --j) {  // C' y = y
    __syncthreads();
    const T y_j = y[j] / a[j * m + j];
    __syncthreads();
    if (thread == 0) y[j] = y_j;
    for (int i = thread; i < j; i += kThreads) y[i] -= a[j * m + i] * y_j;
  }
  __syncthreads();
}

// report: als_solve_kernel threads=128 bytes=R*D*T
template <class T>
__global__ void __launch_bounds__(kThreads) als_solve_kernel(SparseView rows, AlsOptions options,
                                                             const T* base,  // (d)
                                                             const T* h,     // (n, d)
                                                             int64_t n, int d,
                                                             T* matrices,  // (blocks, d * d)
                                                             T* vectors,   // (blocks, d)
                                                             T* w)         // (rows, d)
{
  const int thread = static_cast<int>(threadIdx.x);
  T* a = matrices + static_cast<int64_t>(blockIdx.x) * d * d;
  T* y = vectors + static_cast<int64_t>(blockIdx.x) * d;
  for (int64_t u = blockIdx.x; u < rows.rows; u += gridDim.x) {
    const int64_t count = rows.offset[u + 1] - rows.offset[u];
    const int32_t* entry = rows.column + rows.offset[u];
    const T c = static_cast<T>(
        options.lambda *
        pow(static_cast<double>(count) + options.alpha * static_cast<double>(n), options.nu));
    const bool few = count <= d;
    const int m = few ? static_cast<int>(count) : d;
    __syncthreads();
    // few: I + H_u D^-1 H_u' and 1; otherwise D + H_u' H_u and H_u' 1
    for (int e = thread; e < m * m; e += kThreads) {
      const int i = e / m, k = e % m;
      if (k > i) continue;
      T sum = 0;
      if (few) {
        const T *h_i = h + int64_t{entry[i]} * d, *h_k = h + int64_t{entry[k]} * d;
        for (int q = 0; q < d; ++q) sum += h_i[q] * h_k[q] / (base[q] + c);
        if (i == k) sum += T(1);
      } else {
        for (int64_t s = 0; s < count; ++s) {
          const T* h_s = h + int64_t{entry[s]} * d;
          sum += h_s[i] * h_s[k];
        }
        if (i == k) sum += base[i] + c;
      }
      a[e] = sum;
    }
    for (int i = thread; i < m; i += kThreads) {
      T sum = few ? T(1) : T(0);
      if (!few) {
        for (int64_t s = 0; s < count; ++s) sum += h[int64_t{entry[s]} * d + i];
      }
      y[i] = sum;
    }
    solve_in_block(a, y, m);
    for (int q = thread; q < d; q += kThreads) {
      T sum = 0;
      if (few) {
        for (int s = 0; s < m; ++s) sum += h[int64_t{entry[s]} * d + q] * y[s];
        sum /= base[q] + c;
      } else {
        sum = y[q];
      }
      w[u * d + q] = sum;
    }
  }
}

}  // namespace

template <class T>
void als_gram(Context& context, MatrixView<const T> h, MatrixView<T> gram) {
  gemm<T>(device_of(context), Transpose::yes, Transpose::no, 1, h, h, 0, gram);
}

template <class T>
void als_turn(Context& context, MatrixView<const T> basis, MatrixView<T> h) {
  const Arena::Scope scope(context.scratch());
  const auto copy = context.scratch().template take<T, 2>(h.shape);
  Device& device = device_of(context);
  device.copy(copy.data, h.data, static_cast<std::size_t>(h.size()) * sizeof(T));
  gemm<T>(device, Transpose::no, Transpose::yes, 1, copy, basis, 0, h);
}

template <class T>
void als_solve(Context& context, const SparseView& rows, const AlsOptions& options,
               VectorView<const T> base, MatrixView<const T> h, MatrixView<T> w) {
  const int64_t d = h.cols(), blocks = std::min(rows.rows, kMostBlocks);
  const Arena::Scope scope(context.scratch());
  T* matrices = context.scratch().template take<T, 3>({blocks, d, d}).data;
  T* vectors = context.scratch().template take<T, 2>({blocks, d}).data;
  launch(device_of(context).stream(), als_solve_kernel<T>, dim3(static_cast<unsigned>(blocks)),
         dim3(kThreads), 0, rows, options, base.data, h.data, h.rows(), static_cast<int>(d),
         matrices, vectors, w.data);
}

CFAA_FOR_FLOAT_AND_DOUBLE(als_gram);
CFAA_FOR_FLOAT_AND_DOUBLE(als_turn);
CFAA_FOR_FLOAT_AND_DOUBLE(als_solve);

}  // namespace cfaa::cuda
