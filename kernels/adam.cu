// Adam on the GPU (contract: host/ops/adam.h): a thread per element, one pass over w, m, v and the
// gradient. Grids have room for all the rows a batch may touch; threads beyond this batch's count,
// and every thread once the latch is set, return at once.
//
// The gradient's norm: blocks add up kPart elements each, one block joins them in order.

#include "host/ops/adam.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/latch.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kPart = 4096;

template <class T>
__device__ __forceinline__ void update(const StepState& s, double rate, double decay, T gradient,
                                       T* w, T* m, T* v) {
  const T g = static_cast<T>(s.clip) * gradient;
  const T mean = static_cast<T>(s.beta1) * *m + static_cast<T>(1 - s.beta1) * g;
  const T square = static_cast<T>(s.beta2) * *v + static_cast<T>(1 - s.beta2) * (g * g);
  const T scale = sqrt(static_cast<T>(s.correction2) * square) + static_cast<T>(s.epsilon);
  *m = mean;
  *v = square;
  *w -= static_cast<T>(rate * s.correction1) * mean / scale + static_cast<T>(rate * decay) * *w;
}

__device__ __forceinline__ bool latched(const Fault* latch) {
  return latch->code != static_cast<int32_t>(FaultCode::none);
}

// report: adam_kernel threads=256 bytes=7*G*D*X*T flops=14*G*D*X
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    adam_kernel(const StepState* state, const Fault* latch, int size,
                const T* gradient,   // (size)
                T* w, T* m, T* v) {  // (size)
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size || latched(latch)) return;
  update(*state, state->learning_rate, state->weight_decay, gradient[i], w + i, m + i, v + i);
}

// report: adam_rows_kernel threads=256 bytes=7*E*C*T flops=14*E*C
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    adam_rows_kernel(const StepState* state, const Fault* latch,
                     const int32_t* count,               // (1)
                     const int32_t* row, int capacity,   // (capacity)
                     const T* gradient, int64_t stride,  // (capacity, columns)
                     T* w, T* m, T* v, int columns) {    // (rows of the table, columns)
  const Element e = element_of_thread(columns);
  if (e.row >= capacity || e.row >= count[0] || latched(latch)) return;
  const int64_t at = int64_t{row[e.row]} * columns + e.column;
  update(*state, state->embedding_rate, state->embedding_decay, gradient[e.row * stride + e.column],
         w + at, m + at, v + at);
}

// report: sum_squares threads=256 bytes=G*D*X*T flops=2*G*D*X fp64
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    sum_squares(const T* gradient, int64_t stride, int columns, int rows,
                const int32_t* count,  // (1) or null
                double* parts) {       // (gridDim.x)
  const int used = count == nullptr ? rows : min(count[0], rows);
  const int64_t size = int64_t{used} * columns, first = int64_t{blockIdx.x} * kPart;
  const int64_t end = first + kPart < size ? first + kPart : size;
  double sum = 0;
  for (int64_t i = first + threadIdx.x; i < end; i += kElementThreads) {
    const int at = static_cast<int>(i);
    const double g = gradient[at / columns * stride + at % columns];
    sum += g * g;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// report: join_squares threads=256 bytes=8*G*D*X/4096 flops=G*D*X/4096 fp64
__global__ void __launch_bounds__(kElementThreads)
    join_squares(const double* parts, int count, double* squared_norm) {
  const int stretch = (count + kElementThreads - 1) / kElementThreads;
  const int first = static_cast<int>(threadIdx.x) * stretch;
  double sum = 0;
  for (int i = first; i < min(first + stretch, count); ++i) sum += parts[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) squared_norm[0] += sum;
}

// report: clip_kernel threads=1 bytes=40
__global__ void clip_kernel(StepState* state, Fault* latch) {
  const double squared = state->squared_norm, norm = sqrt(squared);
  state->clip = state->max_norm > 0 && norm > state->max_norm ? state->max_norm / norm : 1;
  if (!(fabs(squared) <= 1.7976931348623157e308)) {
    latch_fault(latch, FaultCode::not_finite, FaultSite::gradient, 0, -1);
  }
  if (latched(latch) && latch->step == 0) latch->step = static_cast<int64_t>(state->step) + 1;
}

}  // namespace

template <class T>
void gradient_norm(Context& context, MatrixView<const T> gradient, const int32_t* count,
                   double* squared_norm) {
  CFAA_ASSERT(gradient.size() <= INT32_MAX - kPart);
  const cudaStream_t stream = device_of(context).stream();
  const int64_t blocks = (gradient.size() + kPart - 1) / kPart;
  const VectorView<double> parts = context.scratch().take<double, 1>({blocks});
  launch(stream, sum_squares<T>, dim3(static_cast<unsigned>(blocks)), dim3(kElementThreads), 0,
         gradient.data, gradient.stride[0], static_cast<int>(gradient.cols()),
         static_cast<int>(gradient.rows()), count, parts.data);
  launch(stream, join_squares, dim3(1), dim3(kElementThreads), 0, parts.data,
         static_cast<int>(blocks), squared_norm);
}

void clip_gradient(Context& context, StepState* state) {
  launch(device_of(context).stream(), clip_kernel, dim3(1), dim3(1), 0, state,
         context.fault_latch());
}

template <class T>
void adam(Context& context, const StepState* state, VectorView<const T> gradient, VectorView<T> w,
          VectorView<T> m, VectorView<T> v) {
  launch(device_of(context).stream(), adam_kernel<T>, elements_grid(w.size()),
         dim3(kElementThreads), 0, state, context.fault_latch(), static_cast<int>(w.size()),
         gradient.data, w.data, m.data, v.data);
}

template <class T>
void adam_rows(Context& context, const StepState* state, const TouchedRows<T>& touched,
               MatrixView<const T> gradient, MatrixView<T> w, MatrixView<T> m, MatrixView<T> v) {
  const int64_t capacity = touched.row.size(), columns = w.cols();
  launch(device_of(context).stream(), adam_rows_kernel<T>, elements_grid(capacity * columns),
         dim3(kElementThreads), 0, state, context.fault_latch(), touched.count.data,
         touched.row.data, static_cast<int>(capacity), gradient.data, gradient.stride[0], w.data,
         m.data, v.data, static_cast<int>(columns));
}

CFAA_FOR_FLOAT_AND_DOUBLE(gradient_norm);
CFAA_FOR_FLOAT_AND_DOUBLE(adam);
CFAA_FOR_FLOAT_AND_DOUBLE(adam_rows);

}  // namespace cfaa::cuda
