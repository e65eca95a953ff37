// y += factor * x on the GPU (contract: host/ops/add_scaled.h): a thread per element.

#include "host/ops/add_scaled.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

// report: add_scaled_kernel threads=256 bytes=3*N*D*T flops=2*N*D
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    add_scaled_kernel(const double* factor,          // (1) or null
                      const T* x, int64_t x_stride,  // (rows, columns)
                      T* y, int64_t y_stride,        // (rows, columns)
                      int rows, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= rows) return;
  const T scale = factor == nullptr ? T(1) : static_cast<T>(factor[0]);
  y[e.row * y_stride + e.column] += scale * x[e.row * x_stride + e.column];
}

}  // namespace

template <class T>
void add_scaled(Context& context, const double* factor, MatrixView<const T> x, MatrixView<T> y) {
  launch(device_of(context).stream(), add_scaled_kernel<T>, elements_grid(x.size()),
         dim3(kElementThreads), 0, factor, x.data, x.stride[0], y.data, y.stride[0],
         static_cast<int>(x.rows()), static_cast<int>(x.cols()));
}

CFAA_FOR_FLOAT_AND_DOUBLE(add_scaled);

}  // namespace cfaa::cuda
