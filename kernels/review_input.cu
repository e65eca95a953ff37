// Review vectors in a tower's input on the GPU (contract: host/ops/review_input.h): a thread per
// element.

#include "host/ops/review_input.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

// report: review_input_kernel threads=256 bytes=R*X*(4+T)
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    review_input_kernel(const float* review,    // (R, C)
                        int64_t review_stride,  //
                        T* out,                 // (R, C)
                        int64_t out_stride, int rows, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= rows) return;
  out[e.row * out_stride + e.column] = static_cast<T>(review[e.row * review_stride + e.column]);
}

}  // namespace

template <class T>
void review_input(Context& context, MatrixView<const float> review, MatrixView<T> out) {
  launch(device_of(context).stream(), review_input_kernel<T>, elements_grid(out.size()),
         dim3(kElementThreads), 0, review.data, review.stride[0], out.data, out.stride[0],
         static_cast<int>(out.rows()), static_cast<int>(out.cols()));
}

CFAA_FOR_FLOAT_AND_DOUBLE(review_input);

}  // namespace cfaa::cuda
