// relu on the GPU (contract: host/ops/relu.h): a thread per element.

#include "host/ops/relu.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

// report: relu_kernel threads=256 bytes=2*R*C*T flops=R*C
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    relu_kernel(T* x,  // (rows, columns)
                int64_t stride, int rows, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= rows) return;
  T& value = x[e.row * stride + e.column];
  if (value < T(0)) value = 0;
}

// report: relu_gradient threads=256 bytes=3*R*C*T flops=R*C
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    relu_gradient(const T* y,  // (rows, columns)
                  int64_t y_stride,
                  T* dx,  // (rows, columns)
                  int64_t dx_stride, int rows, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= rows) return;
  if (!(y[e.row * y_stride + e.column] > T(0))) dx[e.row * dx_stride + e.column] = 0;
}

}  // namespace

template <class T>
void relu(Context& context, MatrixView<T> x) {
  launch(device_of(context).stream(), relu_kernel<T>, elements_grid(x.size()),
         dim3(kElementThreads), 0, x.data, x.stride[0], static_cast<int>(x.rows()),
         static_cast<int>(x.cols()));
}

template <class T>
void relu_backward(Context& context, MatrixView<const T> y, MatrixView<T> dx) {
  launch(device_of(context).stream(), relu_gradient<T>, elements_grid(y.size()),
         dim3(kElementThreads), 0, y.data, y.stride[0], dx.data, dx.stride[0],
         static_cast<int>(y.rows()), static_cast<int>(y.cols()));
}

CFAA_FOR_FLOAT_AND_DOUBLE(relu);
CFAA_FOR_FLOAT_AND_DOUBLE(relu_backward);

}  // namespace cfaa::cuda
