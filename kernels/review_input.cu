// Review vectors in a tower's input on the GPU (contract: host/ops/review_input.h): a thread per
// element; backward a block per 32 columns, whose warps take every 32nd row each and are joined in
// order.

#include "host/ops/review_input.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kColumns = 32, kRowsAtOnce = 32;

// report: review_input_kernel threads=256 bytes=R*X*(4+T)
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    review_input_kernel(const float* review,     // (R, C)
                        int64_t review_stride,   //
                        const int32_t* present,  // (R)
                        const T* absent,         // (C)
                        T* out,                  // (R, C)
                        int64_t out_stride, int rows, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= rows) return;
  out[e.row * out_stride + e.column] =
      present[e.row] != 0 ? static_cast<T>(review[e.row * review_stride + e.column])
                          : absent[e.column];
}

// report: absent_gradient threads=1024 bytes=(R*X+X)*T flops=R*X
template <class T>
__global__ void __launch_bounds__(kColumns* kRowsAtOnce)
    absent_gradient(const T* dout,           // (R, C)
                    int64_t stride,          //
                    const int32_t* present,  // (R)
                    T* dabsent,              // (C)
                    int rows, int columns) {
  CFAA_SHARED(T, parts, kColumns * kRowsAtOnce);
  const int lane = lane_index(), warp = warp_index();
  const int column = static_cast<int>(blockIdx.x) * kColumns + lane;
  T sum = 0;
  if (column < columns) {
    for (int row = warp; row < rows; row += kRowsAtOnce) {
      if (present[row] == 0) sum += dout[row * stride + column];
    }
  }
  parts[warp * kColumns + lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  T total = 0;
  for (int part = 0; part < kRowsAtOnce; ++part) {
    const T next = parts[part * kColumns + lane];
    total += next;
  }
  dabsent[column] += total;
}

}  // namespace

template <class T>
void review_input(Context& context, MatrixView<const float> review,
                  VectorView<const int32_t> present, VectorView<const T> absent,
                  MatrixView<T> out) {
  launch(device_of(context).stream(), review_input_kernel<T>, elements_grid(out.size()),
         dim3(kElementThreads), 0, review.data, review.stride[0], present.data, absent.data,
         out.data, out.stride[0], static_cast<int>(out.rows()), static_cast<int>(out.cols()));
}

template <class T>
void review_input_backward(Context& context, MatrixView<const T> dout,
                           VectorView<const int32_t> present, VectorView<T> dabsent) {
  launch(device_of(context).stream(), absent_gradient<T>,
         dim3(static_cast<unsigned>((dout.cols() + kColumns - 1) / kColumns)),
         dim3(kColumns * kRowsAtOnce), 0, dout.data, dout.stride[0], present.data, dabsent.data,
         static_cast<int>(dout.rows()), static_cast<int>(dout.cols()));
}

#define CFAA_INSTANTIATE(T)                                                                        \
  template void review_input<T>(Context&, MatrixView<const float>, VectorView<const int32_t>,      \
                                VectorView<const T>, MatrixView<T>);                               \
  template void review_input_backward<T>(Context&, MatrixView<const T>, VectorView<const int32_t>, \
                                         VectorView<T>);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa::cuda
