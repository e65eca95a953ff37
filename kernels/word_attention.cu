// TDAR's text memory on the GPU (contract: host/ops/word_attention.h). A block of threads per row
// of the batch: its warps take the words in turn for the products with keys and values, then a
// thread owns columns of the result and walks through the words. The gradient of the keys has a
// warp per word, which walks through the rows that hold it.

#include "host/ops/word_attention.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / warp_threads;

template <class T>
struct WordTask {
  const T *query, *key, *value;  // (R, width), (V, width), (V, columns)
  int64_t query_stride, key_stride, value_stride;
  const int32_t *offset, *word;  // the bags
  T scale;
  int width, columns;

  template <class F>
  void for_each_pointer(F f) const {
    for (const T* pointer : {query, key, value}) f(pointer);
    for (const int32_t* pointer : {offset, word}) f(pointer);
  }
};

template <class T>
WordTask<T> task_of(MatrixView<const T> query, MatrixView<const T> key, MatrixView<const T> value,
                    double scale, const Bags<T>& bags) {
  return {query.data,
          key.data,
          value.data,
          query.stride[0],
          key.stride[0],
          value.stride[0],
          bags.offset.data,
          bags.index.data,
          static_cast<T>(scale),
          static_cast<int>(query.cols()),
          static_cast<int>(value.cols())};
}

// <a, b> by the calling warp.
template <class T>
__device__ __forceinline__ T warp_dot(const T* a, const T* b, int count) {
  T sum = 0;
  for (int c = lane_index(); c < count; c += warp_threads) sum += a[c] * b[c];
  return warp_sum(sum);
}

// to_c = sum_e factor_e rows[word_e]_c for e in [begin, end), by the calling block.
template <class T>
__device__ __forceinline__ void sum_words(const int32_t* word, const T* factor, int begin, int end,
                                          const T* rows, int64_t stride, int columns, T* to) {
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += kThreads) {
    T sum = 0;
    for (int e = begin; e < end; ++e) sum += factor[e] * rows[word[e] * stride + c];
    to[c] = sum;
  }
}

// report: word_attention_kernel threads=128 bytes=(2*E*C+R*C)*T flops=4*E*C exps=E
template <class T>
__global__ void __launch_bounds__(kThreads) word_attention_kernel(WordTask<T> task,
                                                                  T* out,  // (R, columns)
                                                                  int64_t out_stride,
                                                                  T* share)  // (E)
{
  const int64_t row = blockIdx.x;
  const int begin = task.offset[row], end = task.offset[row + 1];
  for (int e = begin + warp_index(); e < end; e += kWarps) {
    const T fit = warp_dot(task.query + row * task.query_stride,
                           task.key + task.word[e] * task.key_stride, task.width);
    if (lane_index() == 0) share[e] = task.scale * fit;
  }
  __syncthreads();
  T most = begin < end ? share[begin] : T(0);
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += kThreads) {
    most = Max{}(most, share[e]);
  }
  most = block_max(most);
  T sum = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += kThreads) {
    share[e] = exp(share[e] - most);
    sum += share[e];
  }
  sum = block_sum(sum);
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += kThreads) share[e] /= sum;
  __syncthreads();
  sum_words(task.word, share, begin, end, task.value, task.value_stride, task.columns,
            out + row * out_stride);
}

// report: word_attention_queries threads=128 bytes=(2*E*C+R*C)*T flops=4*E*C
template <class T>
__global__ void __launch_bounds__(kThreads) word_attention_queries(WordTask<T> task,
                                                                   const T* share,  // (E)
                                                                   const T* dout,   // (R, columns)
                                                                   int64_t dout_stride,
                                                                   T* dlogit,  // (E)
                                                                   T* dquery,  // (R, width)
                                                                   int64_t dquery_stride) {
  const int64_t row = blockIdx.x;
  const int begin = task.offset[row], end = task.offset[row + 1];
  for (int e = begin + warp_index(); e < end; e += kWarps) {
    const T fit = warp_dot(dout + row * dout_stride, task.value + task.word[e] * task.value_stride,
                           task.columns);
    if (lane_index() == 0) dlogit[e] = fit;
  }
  __syncthreads();
  T along = 0;  // <dout, out>
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += kThreads) {
    along += share[e] * dlogit[e];
  }
  along = block_sum(along);
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += kThreads) {
    dlogit[e] = task.scale * share[e] * (dlogit[e] - along);
  }
  __syncthreads();
  sum_words(task.word, static_cast<const T*>(dlogit), begin, end, task.key, task.key_stride,
            task.width, dquery + row * dquery_stride);
}

// The entry of [begin, end) that holds `wanted`.
__device__ __forceinline__ int entry_of(const int32_t* word, int begin, int end, int wanted) {
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    if (word[middle] < wanted) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// report: word_attention_keys threads=128 bytes=(E*C+R*C)*T flops=2*E*C
template <class T>
__global__ void __launch_bounds__(kThreads)
    word_attention_keys(WordTask<T> task,
                        const T* dlogit,       // (E)
                        const int32_t* count,  // (1), and the lists of TouchedRows
                        const int32_t* row, const int32_t* offset, const int32_t* bag,
                        T* gradient,  // (cap, width)
                        int64_t stride) {
  const int i = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  if (i >= count[0]) return;
  T* to = gradient + i * stride;
  for (int c = lane_index(); c < task.width; c += warp_threads) to[c] = 0;
  const int end = offset[i + 1];
  for (int listed = offset[i]; listed < end; ++listed) {
    const int64_t r = bag[listed];
    const T factor = dlogit[entry_of(task.word, task.offset[r], task.offset[r + 1], row[i])];
    const T* query = task.query + r * task.query_stride;
    for (int c = lane_index(); c < task.width; c += warp_threads) to[c] += factor * query[c];
  }
}

}  // namespace

template <class T>
void word_attention(Context& context, MatrixView<const T> query, MatrixView<const T> key,
                    MatrixView<const T> value, double scale, const Bags<T>& bags, MatrixView<T> out,
                    VectorView<T> share) {
  launch(device_of(context).stream(), word_attention_kernel<T>,
         dim3(static_cast<unsigned>(out.rows())), dim3(kThreads), 0,
         task_of(query, key, value, scale, bags), out.data, out.stride[0], share.data);
}

template <class T>
void word_attention_backward(Context& context, MatrixView<const T> query, MatrixView<const T> key,
                             MatrixView<const T> value, double scale, const Bags<T>& bags,
                             VectorView<const T> share, MatrixView<const T> dout,
                             const TouchedRows<T>& touched, MatrixView<T> dquery,
                             MatrixView<T> gradient) {
  const WordTask<T> task = task_of(query, key, value, scale, bags);
  const cudaStream_t stream = device_of(context).stream();
  const auto dlogit = context.scratch().template take<T, 1>({share.size()});
  launch(stream, word_attention_queries<T>, dim3(static_cast<unsigned>(dout.rows())),
         dim3(kThreads), 0, task, share.data, dout.data, dout.stride[0], dlogit.data, dquery.data,
         dquery.stride[0]);
  if (touched.row.size() == 0) return;
  launch(stream, word_attention_keys<T>,
         dim3(static_cast<unsigned>((touched.row.size() + kWarps - 1) / kWarps)), dim3(kThreads), 0,
         task, dlogit.data, touched.count.data, touched.row.data, touched.offset.data,
         touched.bag.data, gradient.data, gradient.stride[0]);
}

CFAA_FOR_FLOAT_AND_DOUBLE(word_attention);
CFAA_FOR_FLOAT_AND_DOUBLE(word_attention_backward);

}  // namespace cfaa::cuda
