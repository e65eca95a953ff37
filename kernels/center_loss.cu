// The centre loss on the GPU (contract: host/ops/center_loss.h): a block of threads per query. A
// thread owns columns: it sums the centres and their gradients over the query's few rows in order,
// and the block adds up norms and distances. Rows are read a few times over, from the cache.

#include "host/ops/center_loss.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "host/ops/sum.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 128;

template <class T>
struct CenterTask {
  const T* v;  // (queries (1 + negatives), columns)
  int64_t v_stride;
  const T *label, *weight;  // (queries (1 + negatives))
  int queries, negatives, columns;
  T inner, outer, factor;
  T* memory;   // (queries, 4, columns): the centres, then their gradients
  T* inverse;  // (queries (1 + negatives)): 1 / |v_j|, or 0
  T* outside;  // (queries (1 + negatives)): 2 beyond the inner margin, else 0
  T* loss;     // (queries)
  T* dv;       // as v
  int64_t dv_stride;

  template <class F>
  void for_each_pointer(F f) const {
    for (const T* pointer :
         {v, label, weight, static_cast<const T*>(memory), static_cast<const T*>(inverse),
          static_cast<const T*>(outside), static_cast<const T*>(loss), static_cast<const T*>(dv)}) {
      f(pointer);
    }
  }
};

// report: center_loss_kernel threads=128 bytes=3*R*D*T flops=20*R*D
template <class T>
__global__ void __launch_bounds__(kThreads) center_loss_kernel(CenterTask<T> task) {
  const int query = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int size = 1 + task.negatives, columns = task.columns;
  T* const memory = task.memory + static_cast<int64_t>(query) * 4 * columns;
  const auto row = [&](int j) {
    return j == 0 ? query : task.queries + query * task.negatives + j - 1;
  };
  const auto label = [&](int j) { return task.label[row(j)] > T(0.5) ? 1 : 0; };
  const auto x = [&](int j, int c) {
    return task.v[row(j) * task.v_stride + c] * task.inverse[row(j)];
  };

  int count[2] = {0, 0};
  for (int j = 0; j < size; ++j) {
    if (task.weight[row(j)] == T(0)) continue;
    ++count[label(j)];
    T squares = 0;
    for (int c = thread; c < columns; c += kThreads) {
      const T value = task.v[row(j) * task.v_stride + c];
      squares += value * value;
    }
    squares = block_sum(squares);
    if (thread == 0) task.inverse[row(j)] = squares > T(0) ? T(1) / sqrt(squares) : T(0);
  }
  __syncthreads();

  T between = 0;
  for (int c = thread; c < columns; c += kThreads) {
    T centre[2] = {0, 0};
    for (int j = 0; j < size; ++j) {
      if (task.weight[row(j)] != T(0)) centre[label(j)] += x(j, c);
    }
    for (int k = 0; k < 2; ++k) {
      if (count[k] > 0) centre[k] /= static_cast<T>(count[k]);
      memory[k * columns + c] = centre[k];
    }
    between += (centre[0] - centre[1]) * (centre[0] - centre[1]);
  }
  between = block_sum(between);
  const bool close = count[0] > 0 && count[1] > 0 && between < task.outer;
  T loss = close ? task.outer - between : T(0);

  for (int j = 0; j < size; ++j) {
    if (task.weight[row(j)] == T(0)) continue;
    T spread = 0;
    for (int c = thread; c < columns; c += kThreads) {
      const T difference = x(j, c) - memory[label(j) * columns + c];
      spread += difference * difference;
    }
    spread = block_sum(spread);
    if (spread > task.inner) loss += spread - task.inner;
    if (thread == 0) task.outside[row(j)] = spread > task.inner ? T(2) : T(0);
  }
  if (thread == 0) task.loss[query] = loss;
  __syncthreads();

  // dc_k, by the owner of each column
  for (int c = thread; c < columns; c += kThreads) {
    const T apart = close ? T(2) * (memory[c] - memory[columns + c]) : T(0);
    T gradient[2] = {-apart, apart};
    for (int j = 0; j < size; ++j) {
      if (task.weight[row(j)] == T(0)) continue;
      const int k = label(j);
      gradient[k] -= task.outside[row(j)] * (x(j, c) - memory[k * columns + c]);
    }
    memory[2 * columns + c] = gradient[0];
    memory[3 * columns + c] = gradient[1];
  }

  for (int j = 0; j < size; ++j) {
    if (task.weight[row(j)] == T(0)) continue;
    const int k = label(j);
    const T share = T(1) / static_cast<T>(count[k]), outside = task.outside[row(j)];
    const auto dx = [&](int c) {
      return outside * (x(j, c) - memory[k * columns + c]) + share * memory[(2 + k) * columns + c];
    };
    T along = 0;
    for (int c = thread; c < columns; c += kThreads) along += x(j, c) * dx(c);
    along = block_sum(along);
    const T scale = task.factor * task.inverse[row(j)];
    for (int c = thread; c < columns; c += kThreads) {
      task.dv[row(j) * task.dv_stride + c] += scale * (dx(c) - along * x(j, c));
    }
  }
}

}  // namespace

template <class T>
void center_loss(Context& context, MatrixView<const T> v, int64_t negatives,
                 VectorView<const T> label, VectorView<const T> weight,
                 const CenterMargins& margins, double scale, VectorView<T> loss, MatrixView<T> dv) {
  const int64_t queries = v.rows() / (1 + negatives);
  const double share = 1 / static_cast<double>(queries);
  Arena& scratch = context.scratch();
  const auto of_query = scratch.take<T, 1>({queries});
  const CenterTask<T> task{.v = v.data,
                           .v_stride = v.stride[0],
                           .label = label.data,
                           .weight = weight.data,
                           .queries = static_cast<int>(queries),
                           .negatives = static_cast<int>(negatives),
                           .columns = static_cast<int>(v.cols()),
                           .inner = static_cast<T>(margins.inner),
                           .outer = static_cast<T>(margins.outer),
                           .factor = static_cast<T>(scale * share),
                           .memory = scratch.take<T, 3>({queries, 4, v.cols()}).data,
                           .inverse = scratch.take<T, 1>({v.rows()}).data,
                           .outside = scratch.take<T, 1>({v.rows()}).data,
                           .loss = of_query.data,
                           .dv = dv.data,
                           .dv_stride = dv.stride[0]};
  launch(device_of(context).stream(), center_loss_kernel<T>, dim3(static_cast<unsigned>(queries)),
         dim3(kThreads), 0, task);
  cuda::sum<T>(context, of_query, share, loss);
}

CFAA_FOR_FLOAT_AND_DOUBLE(center_loss);

}  // namespace cfaa::cuda
