// The text convolution on the GPU (contract: host/ops/text_convolution.h): a thread per text and
// filter, whose neighbours read adjacent products of the same words; in the backward a thread per
// word and product, which walks through the word's occurrences in order.

#include "host/ops/text_convolution.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kColumns = 32, kWarps = 8;

// report: text_convolution_kernel threads=256 bytes=(E*4+R*C)*T flops=4*E*C
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    text_convolution_kernel(const T* product,  // (W, width * filters)
                            int64_t product_stride,
                            const T* bias,  // (filters)
                            int width,
                            const int32_t* offset,  // (texts + 1)
                            const int32_t* word,    // (L)
                            T* out,                 // (texts, filters)
                            int64_t out_stride,
                            int32_t* position,  // (texts, filters)
                            int texts, int filters) {
  const Element e = element_of_thread(filters);
  if (e.row >= texts) return;
  const int from = offset[e.row], length = offset[e.row + 1] - from;
  const int windows = length == 0 ? 0 : max(length - width, 0) + 1;
  T most = 0;
  int at = -1;
  for (int p = 0; p < windows; ++p) {
    T sum = bias[e.column];
    const int end = min(width, length - p);
    for (int j = 0; j < end; ++j) {
      sum += product[word[from + p + j] * product_stride + j * filters + e.column];
    }
    if (!(sum <= most)) {  // NaN stays NaN
      most = sum;
      at = p;
    }
  }
  out[e.row * out_stride + e.column] = most;
  position[static_cast<int64_t>(e.row) * filters + e.column] = at;
}

// report: text_convolution_words threads=256 bytes=(E*4+R*C)*T flops=3*E*C
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    text_convolution_words(const T* dout,  // (texts, filters)
                           int64_t dout_stride,
                           const int32_t* position,  // (texts, filters)
                           int filters,
                           const int32_t* offset,  // (words + 1)
                           const int32_t* text,    // (L)
                           const int32_t* place,   // (L)
                           T* dproduct,            // (words, width * filters)
                           int64_t stride, int words, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= words) return;
  const int j = e.column / filters, f = e.column % filters;
  T sum = 0;
  const int end = offset[e.row + 1];
  for (int i = offset[e.row]; i < end; ++i) {
    const int wanted = place[i] - j;
    if (wanted < 0) continue;
    const int64_t from = text[i];
    if (position[from * filters + f] == wanted) sum += dout[from * dout_stride + f];
  }
  dproduct[e.row * stride + e.column] = sum;
}

// db, a block per 32 filters, a warp for every 8th text, in an order that depends on nothing else.
// report: text_convolution_bias threads=256 bytes=R*C*(T+4) flops=R*C
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads)
    text_convolution_bias(const T* dout,  // (texts, filters)
                          int64_t stride,
                          const int32_t* position,  // (texts, filters)
                          int texts, int filters,
                          T* dbias)  // (filters)
{
  CFAA_SHARED(T, parts, kColumns * kWarps);
  const int lane = lane_index(), warp = warp_index();
  const int f = static_cast<int>(blockIdx.x) * kColumns + lane;
  T sum = 0;
  if (f < filters) {
    for (int64_t e = warp; e < texts; e += kWarps) {
      if (position[e * filters + f] >= 0) sum += dout[e * stride + f];
    }
  }
  parts[warp * kColumns + lane] = sum;
  __syncthreads();
  if (warp != 0 || f >= filters) return;
  T total = 0;
  for (int part = 0; part < kWarps; ++part) {
    const T next = parts[part * kColumns + lane];
    total += next;
  }
  dbias[f] += total;
}

}  // namespace

template <class T>
void text_convolution(Context& context, MatrixView<const T> product, VectorView<const T> bias,
                      int64_t width, const TextLists& texts, MatrixView<T> out,
                      MatrixView<int32_t> position) {
  launch(device_of(context).stream(), text_convolution_kernel<T>, elements_grid(out.size()),
         dim3(kElementThreads), 0, product.data, product.stride[0], bias.data,
         static_cast<int>(width), texts.offset.data, texts.word.data, out.data, out.stride[0],
         position.data, static_cast<int>(out.rows()), static_cast<int>(out.cols()));
}

template <class T>
void text_convolution_backward(Context& context, MatrixView<const T> dout,
                               MatrixView<const int32_t> position, int64_t,
                               const WordOccurrences& words, MatrixView<T> dproduct,
                               VectorView<T> dbias) {
  const cudaStream_t stream = device_of(context).stream();
  const int texts = static_cast<int>(dout.rows()), filters = static_cast<int>(dout.cols());
  if (dproduct.size() > 0) {
    launch(stream, text_convolution_words<T>, elements_grid(dproduct.size()), dim3(kElementThreads),
           0, dout.data, dout.stride[0], position.data, filters, words.offset.data, words.text.data,
           words.place.data, dproduct.data, dproduct.stride[0], static_cast<int>(dproduct.rows()),
           static_cast<int>(dproduct.cols()));
  }
  launch(stream, text_convolution_bias<T>,
         dim3(static_cast<unsigned>((filters + kColumns - 1) / kColumns)),
         dim3(kWarps * warp_threads), 0, dout.data, dout.stride[0], position.data, texts, filters,
         dbias.data);
}

CFAA_FOR_FLOAT_AND_DOUBLE(text_convolution);
CFAA_FOR_FLOAT_AND_DOUBLE(text_convolution_backward);

}  // namespace cfaa::cuda
