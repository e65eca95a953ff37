// Maxima over bags on the GPU (contract: host/ops/bag_max.h): a thread per bag (or touched row, in
// the backward) and column, which walks through the list in its order.

#include "host/ops/bag_max.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

// report: bag_max_kernel threads=256 bytes=(E*C+R*C)*T+R*C*4 flops=E*C
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    bag_max_kernel(const T* x,  // (V, columns)
                   int64_t x_stride,
                   const int32_t* offset,  // (rows + 1)
                   const int32_t* index,   // (E)
                   T* out,                 // (rows, columns)
                   int64_t out_stride,
                   int32_t* from,  // (rows, columns)
                   int rows, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= rows) return;
  T most = 0;
  int giver = -1;
  const int end = offset[e.row + 1];
  for (int i = offset[e.row]; i < end; ++i) {
    const T value = x[index[i] * x_stride + e.column];
    if (!(value <= most)) {  // NaN stays NaN
      most = value;
      giver = index[i];
    }
  }
  out[e.row * out_stride + e.column] = most;
  from[static_cast<int64_t>(e.row) * columns + e.column] = giver;
}

// report: bag_max_gradient threads=256 bytes=(E*C+R*C)*T+R*C*4 flops=E*C
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    bag_max_gradient(const int32_t* count,  // (1)
                     const T* dout,         // (R, columns)
                     int64_t dout_stride,
                     const int32_t* from,    // (R, columns)
                     const int32_t* row,     // (rows)
                     const int32_t* offset,  // (rows + 1)
                     const int32_t* bag,     // (E)
                     T* dx,                  // (V, columns)
                     int64_t stride, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= count[0]) return;
  const int wanted = row[e.row], end = offset[e.row + 1];
  T sum = 0;
  for (int i = offset[e.row]; i < end; ++i) {
    const int64_t r = bag[i];
    if (from[r * columns + e.column] == wanted) sum += dout[r * dout_stride + e.column];
  }
  dx[wanted * stride + e.column] += sum;
}

}  // namespace

template <class T>
void bag_max(Context& context, MatrixView<const T> x, const Bags<T>& bags, MatrixView<T> out,
             MatrixView<int32_t> from) {
  launch(device_of(context).stream(), bag_max_kernel<T>, elements_grid(out.size()),
         dim3(kElementThreads), 0, x.data, x.stride[0], bags.offset.data, bags.index.data, out.data,
         out.stride[0], from.data, static_cast<int>(out.rows()), static_cast<int>(out.cols()));
}

template <class T>
void bag_max_backward(Context& context, MatrixView<const T> dout, MatrixView<const int32_t> from,
                      const TouchedRows<T>& touched, MatrixView<T> dx) {
  launch(device_of(context).stream(), bag_max_gradient<T>,
         elements_grid(touched.row.size() * dout.cols()), dim3(kElementThreads), 0,
         touched.count.data, dout.data, dout.stride[0], from.data, touched.row.data,
         touched.offset.data, touched.bag.data, dx.data, dx.stride[0],
         static_cast<int>(dout.cols()));
}

CFAA_FOR_FLOAT_AND_DOUBLE(bag_max);
CFAA_FOR_FLOAT_AND_DOUBLE(bag_max_backward);

}  // namespace cfaa::cuda
