#include "cuda/sort.h"

#include "cuda/check.h"
#include "cuda/launch.h"
#include "host/core/error.h"
#include "host/core/instantiate.h"

#if !CFAA_EMULATED
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#endif

namespace cfaa::cuda {
namespace {

#if CFAA_EMULATED

constexpr int kThreads = 128;

// Each pair counts those that come before it.
__global__ void rank_pairs(const int32_t* keys, const int32_t* values, int n, int32_t* sorted_keys,
                           int32_t* sorted_values) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  int rank = 0;
  for (int j = 0; j < n; ++j) rank += keys[j] < keys[i] || (keys[j] == keys[i] && j < i);
  sorted_keys[rank] = keys[i];
  sorted_values[rank] = values[i];
}

__global__ void walk_runs(const int32_t* keys, int n, int32_t* key, int32_t* offset,
                          int32_t* count) {
  int runs = 0;
  for (int i = 0; i < n; ++i) {
    if (i > 0 && keys[i] == keys[i - 1]) continue;
    key[runs] = keys[i];
    offset[runs++] = i;
  }
  for (int i = runs; i <= n; ++i) offset[i] = n;
  *count = runs;
}

template <class T>
__global__ void sum_segments(const T* values, const int32_t* offset, int segments, T* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= segments) return;
  T sum = 0;
  for (int j = offset[i]; j < offset[i + 1]; ++j) sum += values[j];
  out[i] = sum;
}

dim3 blocks_for(int64_t count) {
  return dim3(static_cast<unsigned>((count + kThreads - 1) / kThreads));
}

#else

// CUB's two calls: how much storage, then the work.
template <class Call>
void with_storage(Context& context, Call call) {
  std::size_t bytes = 0;
  CFAA_CUDA_CHECK(call(nullptr, bytes));
  const Arena::Scope scope(context.scratch());
  void* storage = context.scratch().take_bytes(bytes);
  CFAA_CUDA_CHECK(call(storage, bytes));
}

#endif

}  // namespace

void sort_pairs(Context& context, VectorView<const int32_t> keys, VectorView<const int32_t> values,
                VectorView<int32_t> sorted_keys, VectorView<int32_t> sorted_values,
                [[maybe_unused]] int key_bits) {
  const int n = static_cast<int>(keys.size());
  CFAA_ASSERT(values.size() == n && sorted_keys.size() == n && sorted_values.size() == n);
  CFAA_ASSERT(key_bits >= 1 && key_bits <= 31);
  const cudaStream_t stream = device_of(context).stream();
  if (n == 0) return;
#if CFAA_EMULATED
  launch(stream, rank_pairs, blocks_for(n), dim3(kThreads), 0, keys.data, values.data, n,
         sorted_keys.data, sorted_values.data);
#else
  with_storage(context, [&](void* storage, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(storage, bytes, keys.data, sorted_keys.data, values.data,
                                           sorted_values.data, n, 0, key_bits, stream);
  });
#endif
}

Segments segments_of(Context& context, VectorView<const int32_t> sorted_keys) {
  const int n = static_cast<int>(sorted_keys.size());
  CFAA_ASSERT(n >= 1);
  Arena& arena = context.scratch();
  Segments result;
  result.key = arena.take<int32_t, 1>({n});
  result.offset = arena.take<int32_t, 1>({n + 1});
  result.count = arena.take<int32_t, 1>({1});
  Device& device = device_of(context);
  const cudaStream_t stream = device.stream();
#if CFAA_EMULATED
  launch(stream, walk_runs, dim3(1), dim3(1), 0, sorted_keys.data, n, result.key.data,
         result.offset.data, result.count.data);
#else
  // Lengths past the last run stay 0, so that the offsets there are n.
  const Arena::Scope scope(arena);
  const VectorView<int32_t> length = arena.take<int32_t, 1>({n + 1});
  device.fill_zero(length.data, static_cast<std::size_t>(n + 1) * sizeof(int32_t));
  with_storage(context, [&](void* storage, std::size_t& bytes) {
    return cub::DeviceRunLengthEncode::Encode(storage, bytes, sorted_keys.data, result.key.data,
                                              length.data, result.count.data, n, stream);
  });
  with_storage(context, [&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, length.data, result.offset.data, n + 1,
                                         stream);
  });
#endif
  return result;
}

template <class T>
void segmented_sum(Context& context, VectorView<const T> values, VectorView<const int32_t> offset,
                   VectorView<T> out) {
  const int segments = static_cast<int>(out.size());
  CFAA_ASSERT(offset.size() == segments + 1);
  const cudaStream_t stream = device_of(context).stream();
  if (segments == 0) return;
#if CFAA_EMULATED
  launch(stream, sum_segments<T>, blocks_for(segments), dim3(kThreads), 0, values.data, offset.data,
         segments, out.data);
#else
  with_storage(context, [&](void* storage, std::size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(storage, bytes, values.data, out.data, segments,
                                           offset.data, offset.data + 1, stream);
  });
#endif
}

CFAA_FOR_FLOAT_AND_DOUBLE(segmented_sum);

}  // namespace cfaa::cuda
