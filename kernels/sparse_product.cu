// A block of the product of two sparse matrices on the GPU (contract: host/ops/sparse_product.h).
//
// One block of threads per row of the result walks through the row of A; the entries of a row of B
// lie in different columns, so its threads add them without atomics, and a barrier between two rows
// of B keeps the order of every sum: the same bits on every run. A row of B is short (the 200
// neighbours of an item, the items of a user), hence no more threads than that.

#include "host/ops/sparse_product.h"

#include "cuda/device.h"
#include "cuda/launch.h"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 128;

// The first entry of [from, to) whose column is not below `bound`.
__device__ int64_t first_not_below(const int32_t* column, int64_t from, int64_t to, int64_t bound) {
  while (from < to) {
    const int64_t middle = from + (to - from) / 2;
    if (column[middle] < bound) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

// report: sparse_product_kernel threads=128 bytes=R*D*T
template <class T>
__global__ void __launch_bounds__(kThreads)
    sparse_product_kernel(SparseView a, const int32_t* rows,  // (R), or null
                          SparseView b, double alpha, int64_t first, int64_t columns, bool add,
                          T* out,  // (R, columns)
                          int64_t stride) {
  T* sums = out + static_cast<int64_t>(blockIdx.x) * stride;
  if (!add) {
    for (int64_t c = threadIdx.x; c < columns; c += kThreads) sums[c] = T(0);
  }
  const int64_t row = rows == nullptr ? static_cast<int64_t>(blockIdx.x) : rows[blockIdx.x];
  for (int64_t e = a.offset[row]; e < a.offset[row + 1]; ++e) {
    __syncthreads();
    const T factor = static_cast<T>(alpha * a.value[e]);
    const int64_t k = a.column[e];
    int64_t from = b.offset[k], to = b.offset[k + 1];
    if (first > 0 || columns < b.columns) {
      from = first_not_below(b.column, from, to, first);
      to = first_not_below(b.column, from, to, first + columns);
    }
    for (int64_t i = from + threadIdx.x; i < to; i += kThreads) {
      sums[b.column[i] - first] += factor * static_cast<T>(b.value[i]);
    }
  }
}

}  // namespace

template <class T>
void sparse_product(Context& context, const SparseView& a, VectorView<const int32_t> rows,
                    const SparseView& b, double alpha, int64_t first, bool add, MatrixView<T> out) {
  launch(device_of(context).stream(), sparse_product_kernel<T>,
         dim3(static_cast<unsigned>(out.rows())), dim3(kThreads), 0, a, rows.data, b, alpha, first,
         out.cols(), add, out.data, out.stride[0]);
}

CFAA_FOR_FLOAT_AND_DOUBLE(sparse_product);

}  // namespace cfaa::cuda
