// The MLP scorer on the GPU (contract: host/ops/pair_scores.h).
//
// One hidden layer: w relu(u + i) = w max(i, -u) + w u, and the sum of w u over the units is the
// user's own. So a pair costs one maximum and one multiply-add per unit, which run on different
// pipes. Tiles of 64 x 64 pairs, a block of 128 threads with 8 users x 4 items each; units pass
// through shared memory 16 at a time. The user's sum is made in the same order, so that a pair with
// every unit off scores the bias exactly; a maximum may lose a NaN, so items are looked at for it.
//
// Further layers: tiles of pairs are written out, go through the linear layers, and end in a dot
// product per pair.

#include "host/ops/pair_scores.h"

#include <algorithm>
#include <limits>

#include "cuda/device.h"
#include "cuda/launch.h"
#include "host/ops/grouped_linear.h"
#include "kernels/block.cuh"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kTile = 64;           // users and items of a block
constexpr int kStride = kTile + 1;  // of a unit in shared memory: spreads the stores over the banks
constexpr int kDepth = 16;          // units at a time
constexpr int kUserThreads = 8, kItemThreads = 16;
constexpr int kThreads = kUserThreads * kItemThreads;
constexpr int kUsers = kTile / kUserThreads, kItems = kTile / kItemThreads;  // of a thread
static_assert(kThreads == 2 * kTile);

__device__ __forceinline__ float larger(float a, float b) {
  return fmaxf(a, b);
}
__device__ __forceinline__ double larger(double a, double b) {
  return fmax(a, b);
}

// Units first .. first + kDepth of the tile's rows, transposed; 0 where there are none.
template <class T>
__device__ __forceinline__ void load_tile(const T* x, int64_t stride, int64_t first_row,
                                          int64_t rows, int first, int units, Shared<T> tile) {
  for (int e = static_cast<int>(threadIdx.x); e < kTile * kDepth; e += kThreads) {
    const int unit = e % kDepth, row = e / kDepth;
    const bool there = first_row + row < rows && first + unit < units;
    tile[unit * kStride + row] = there ? x[(first_row + row) * stride + first + unit] : T(0);
  }
}

// report: pair_scores_kernel threads=128 bytes=((U+W)*D+U*W)*T flops=3*U*W*D
template <class T>
__global__ void __launch_bounds__(kThreads)
    pair_scores_kernel(const T* users, int64_t user_stride, int64_t user_count,  // (R, units)
                       const T* items, int64_t item_stride, int64_t item_count,  // (C, units)
                       const T* weight, int units,                               // (units)
                       const T* bias,                                            // (1)
                       bool add, T* scores, int64_t score_stride)                // (R, C)
{
  CFAA_SHARED(T, user_tile, kDepth * kStride);
  CFAA_SHARED(T, item_tile, kDepth * kStride);
  CFAA_SHARED(T, weight_tile, kDepth);
  CFAA_SHARED(T, user_sums, kTile);
  CFAA_SHARED(T, spoilt, kTile);
  const int thread = static_cast<int>(threadIdx.x);
  const int of_item = thread % kItemThreads, of_user = thread / kItemThreads;
  const int64_t first_item = int64_t{blockIdx.x} * kTile, first_user = int64_t{blockIdx.y} * kTile;

  T sums[kUsers][kItems] = {};
  T own = 0;  // a user's sum in the first kTile threads, an item's NaN or 0 in the others
  for (int first = 0; first < units; first += kDepth) {
    load_tile(users, user_stride, first_user, user_count, first, units, user_tile);
    load_tile(items, item_stride, first_item, item_count, first, units, item_tile);
    if (thread < kDepth)
      weight_tile[thread] = first + thread < units ? weight[first + thread] : T(0);
    __syncthreads();
    for (int h = 0; h < kDepth; ++h) {
      const T w = weight_tile[h];
      T user[kUsers], item[kItems];
#pragma unroll
      for (int a = 0; a < kUsers; ++a) {
        user[a] = user_tile[h * kStride + of_user + a * kUserThreads];
      }
#pragma unroll
      for (int b = 0; b < kItems; ++b) {
        item[b] = item_tile[h * kStride + of_item + b * kItemThreads];
      }
#pragma unroll
      for (int a = 0; a < kUsers; ++a) {
#pragma unroll
        for (int b = 0; b < kItems; ++b) sums[a][b] += w * larger(item[b], -user[a]);
      }
    }
    for (int h = 0; h < kDepth; ++h) {
      if (thread < kTile) {
        const T w = weight_tile[h];
        const T user = user_tile[h * kStride + thread];
        own += w * user;
      } else {
        const T item = item_tile[h * kStride + thread - kTile];
        if (item != item) own = item;
      }
    }
    __syncthreads();
  }
  if (thread < kTile) {
    user_sums[thread] = own;
  } else {
    spoilt[thread - kTile] = own;
  }
  __syncthreads();

#pragma unroll
  for (int a = 0; a < kUsers; ++a) {
    const int row = of_user + a * kUserThreads;
    if (first_user + row >= user_count) continue;
    const T user_sum = user_sums[row];
#pragma unroll
    for (int b = 0; b < kItems; ++b) {
      const int column = of_item + b * kItemThreads;
      if (first_item + column >= item_count) continue;
      const T nan_or_0 = spoilt[column];
      const T value = sums[a][b] + user_sum + nan_or_0 + bias[0];
      T& score = scores[(first_user + row) * score_stride + first_item + column];
      score = add ? score + value : value;
    }
  }
}

constexpr int64_t kPairs = 16384;  // of a tile of the deeper kind: bounds the scratch
constexpr int kWarps = kElementThreads / warp_threads;

// x_p = relu(user + item) of pairs first .. first + pairs, counted along the rows of the scores.
// report: hidden_units threads=256 bytes=16384*D*T flops=2*16384*D
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    hidden_units(const T* users, int64_t user_stride,  // (R, units)
                 const T* items, int64_t item_stride,  // (C, units)
                 int64_t item_count, int64_t first, int pairs, int units,
                 T* x) {  // (pairs, units)
  const Element e = element_of_thread(units);
  if (e.row >= pairs) return;
  const int64_t pair = first + e.row;
  const T sum = users[pair / item_count * user_stride + e.column] +
                items[pair % item_count * item_stride + e.column];
  // Written so that NaN stays NaN.
  x[int64_t{e.row} * units + e.column] = sum < T(0) ? T(0) : sum;
}

// report: output_unit threads=256 bytes=16384*D*T flops=2*16384*D
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    output_unit(const T* x, int pairs, int units,  // (pairs, units)
                const T* weight, const T* bias,    // (units), (1)
                int64_t item_count, int64_t first, bool add, T* scores,
                int64_t score_stride) {  // (R, C)
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  if (row >= pairs) return;
  T sum = 0;
  for (int h = lane_index(); h < units; h += warp_threads) {
    sum += weight[h] * x[int64_t{row} * units + h];
  }
  sum = warp_sum(sum) + bias[0];
  if (lane_index() != 0) return;
  const int64_t pair = first + row;
  T& score = scores[pair / item_count * score_stride + pair % item_count];
  score = add ? score + sum : sum;
}

template <class T>
void further_layers(Context& context, MatrixView<const T> users, MatrixView<const T> items,
                    std::span<const PairLayer<T>> layers, bool add, MatrixView<T> scores) {
  const cudaStream_t stream = device_of(context).stream();
  const int64_t all = scores.size(), most = std::min(all, kPairs);
  int64_t widest = 0;
  for (const PairLayer<T>& layer : layers) widest = std::max(widest, layer.weight.cols());
  const auto tiles = context.scratch().template take<T, 2>({2, most * widest});

  for (int64_t first = 0; first < all; first += kPairs) {
    const int64_t pairs = std::min(kPairs, all - first);
    T *x = tiles[0].data, *y = tiles[1].data;
    launch(stream, hidden_units<T>, elements_grid(pairs * users.cols()), dim3(kElementThreads), 0,
           users.data, users.stride[0], items.data, items.stride[0], items.rows(), first,
           static_cast<int>(pairs), static_cast<int>(users.cols()), x);
    for (const PairLayer<T>& layer : layers.first(layers.size() - 1)) {
      const Arena::Scope scope(context.scratch());
      const LinearLayer<T> linear{MatrixView<const T>(x, {pairs, layer.weight.cols()}),
                                  layer.weight, layer.bias,
                                  MatrixView<T>(y, {pairs, layer.weight.rows()})};
      cuda::grouped_linear<T>(context, {&linear, 1}, Activation::relu, MathMode::fp32);
      std::swap(x, y);
    }
    const PairLayer<T>& last = layers.back();
    launch(stream, output_unit<T>, dim3(static_cast<unsigned>((pairs + kWarps - 1) / kWarps)),
           dim3(kElementThreads), 0, x, static_cast<int>(pairs),
           static_cast<int>(last.weight.cols()), last.weight.data, last.bias.data, items.rows(),
           first, add, scores.data, scores.stride[0]);
  }
}

}  // namespace

template <class T>
void pair_scores(Context& context, MatrixView<const T> users, MatrixView<const T> items,
                 std::span<const PairLayer<T>> layers, bool add, MatrixView<T> scores) {
  if (layers.size() > 1) {
    further_layers(context, users, items, layers, add, scores);
    return;
  }
  launch(device_of(context).stream(), pair_scores_kernel<T>,
         dim3(static_cast<unsigned>((items.rows() + kTile - 1) / kTile),
              static_cast<unsigned>((users.rows() + kTile - 1) / kTile)),
         dim3(kThreads), 0, users.data, users.stride[0], users.rows(), items.data, items.stride[0],
         items.rows(), layers[0].weight.data, static_cast<int>(users.cols()), layers[0].bias.data,
         add, scores.data, scores.stride[0]);
}

CFAA_FOR_FLOAT_AND_DOUBLE(pair_scores);

}  // namespace cfaa::cuda
