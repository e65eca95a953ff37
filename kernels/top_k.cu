// The k best of each row on the GPU (host/ops/top_k.h has the order and the bound). One block of
// threads per row. A round reads 512 neighbouring scores and compares them with the row's
// threshold; those that reach it are appended to the row's candidates in shared memory, in whatever
// order the threads come, since the order is settled by sorting. When a round might not fit, the
// candidates are pruned: to those within the rounding bound of the k-th and, where that leaves more
// than half (many ties), to the k best by exact score. Half the room holds k and a round, so a
// round fits then.
//
// After the first blocks of items few rounds find anything: the kernel is bound by reading the
// scores, 4 bytes for the 2 D flops that the GEMM spent on each.

#include "host/ops/top_k.h"

#include <climits>
#include <cmath>

#include "cuda/blas.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kPerThread = 4;  // scores that a thread reads in a round
constexpr int kRound = kThreads * kPerThread;
constexpr int kLeastCapacity = 2 * kRound;
// Left to itself, nvcc spills for sm_100 so that two more fit.
constexpr int kBlocksPerProcessor = 8;

template <class T>
struct Dots {
  const T* users;  // (R, D), or nullptr: scores are exact
  const T* items;  // (I, D)
  int64_t user_stride, item_stride;
  int d;
  const int32_t* user_exponent;  // (R)
  const double* user_bound;      // (R)
  const float* item_norm;        // (I)
  double underflow;

  explicit Dots(const DotProducts<T>& dots)
      : users(dots.users.data),
        items(dots.items.data),
        user_stride(dots.users.stride[0]),
        item_stride(dots.items.stride[0]),
        d(static_cast<int>(dots.users.cols())),
        user_exponent(dots.user_exponent.data),
        user_bound(dots.user_bound.data),
        item_norm(dots.item_norm.data),
        underflow(dots.underflow) {}
};

struct State {
  float* score;       // (R, capacity)
  int32_t* item;      // (R, capacity)
  int32_t* count;     // (R)
  double* kth;        // (R)
  int32_t* nan_item;  // (R)
  int k, capacity;

  explicit State(const TopKCandidates& candidates)
      : score(candidates.score.data),
        item(candidates.item.data),
        count(candidates.count.data),
        kth(candidates.kth.data),
        nan_item(candidates.nan_item.data),
        k(static_cast<int>(candidates.k)),
        capacity(static_cast<int>(candidates.score.cols())) {}

  std::size_t shared_bytes() const {
    return cuda::shared_bytes<double>(capacity) + cuda::shared_bytes<int32_t>(capacity) +
           cuda::shared_bytes<float>(capacity);
  }
};

// The candidates of the block's row in shared memory. Every thread calls every function, and sees
// the same `count` and `kth`.
template <class T>
class Selection {
 public:
  __device__ Selection(const State& state, const Dots<T>& dots)
      : state_(state), dots_(dots), row_(blockIdx.x) {
    SharedArena arena;
    key_ = arena.take<double>(state.capacity);
    item_ = arena.take<int32_t>(state.capacity);
    score_ = arena.take<float>(state.capacity);
    count_ = state.count[row_];
    kth_ = state.kth[row_];
    for (int i = threadIdx.x; i < count_; i += kThreads) {
      score_[i] = state.score[row_ * state.capacity + i];
      item_[i] = state.item[row_ * state.capacity + i];
    }
    __syncthreads();
  }

  __device__ void store() const {
    for (int i = threadIdx.x; i < count_; i += kThreads) {
      state_.score[row_ * state_.capacity + i] = score_[i];
      state_.item[row_ * state_.capacity + i] = item_[i];
    }
    if (threadIdx.x != 0) return;
    state_.count[row_] = count_;
    state_.kth[row_] = kth_;
  }

  // What an item of a norm up to `largest_norm` must score to be looked at. Items come in ascending
  // order, so where scores are exact an equal one is too late.
  __device__ float threshold(float largest_norm) const {
    const double slack = error(largest_norm);
    if (kth_ == -HUGE_VAL || slack == HUGE_VAL) return -HUGE_VALF;
    if (slack == 0) return nextafterf(static_cast<float>(kth_), HUGE_VALF);
    return nextafterf(static_cast<float>(kth_ - slack), -HUGE_VALF);
  }

  // Appends those of the thread's scores whose bit in `found` is set.
  __device__ void append(unsigned found, const float (&scores)[kPerThread], int first_item) {
    CFAA_SHARED(int, next, 1);
    const int total = block_sum(__popc(found));
    if (count_ + total > state_.capacity) {
      prune_by_bound();
      if (count_ > state_.capacity / 2) keep_exact_best();
    }
    if (threadIdx.x == 0) next[0] = count_;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if ((found >> i & 1u) == 0) continue;
      const int slot = atomicAdd(&next[0], 1);
      score_[slot] = scores[i];
      item_[slot] = first_item + i * kThreads;
    }
    __syncthreads();
    count_ += total;
  }

  // Writes the k best by exact score, sorted.
  __device__ void finish(int32_t* item, double* score) {
    prune_by_bound();
    keep_exact_best();
    for (int i = threadIdx.x; i < state_.k; i += kThreads) {
      item[row_ * state_.k + i] = i < count_ ? static_cast<int32_t>(item_[i]) : -1;
      score[row_ * state_.k + i] = i < count_ ? static_cast<double>(key_[i]) : -HUGE_VAL;
    }
  }

 private:
  __device__ double error(float norm) const {
    return dots_.users == nullptr ? 0 : score_error(dots_.user_bound[row_], norm, dots_.underflow);
  }

  __device__ double exact(int32_t item) const {
    const T* u = dots_.users + row_ * dots_.user_stride;
    const T* v = dots_.items + item * dots_.item_stride;
    // Not contracted to fused multiply-adds, as on the CPU; for float the product is exact anyway.
    double sum = 0;
#pragma unroll 4
    for (int i = 0; i < dots_.d; ++i) {
      sum = __dadd_rn(sum, __dmul_rn(static_cast<double>(u[i]), static_cast<double>(v[i])));
    }
    return sum;
  }

  // Sorts all candidates by (key descending, item ascending); bitonic, one barrier a pass.
  __device__ void sort() {
    const int capacity = sort_capacity(count_);
    for (int i = count_ + threadIdx.x; i < capacity; i += kThreads) {
      key_[i] = -HUGE_VAL;
      item_[i] = INT_MAX;
      score_[i] = -HUGE_VALF;
    }
    __syncthreads();
    for (int run = 2; run <= capacity; run *= 2) {
      for (int distance = run / 2; distance > 0; distance /= 2) {
        for (int pair = threadIdx.x; pair < capacity / 2; pair += kThreads) {
          const int low = 2 * pair - (pair & (distance - 1));
          exchange(low, low + distance, (low & run) == 0);
        }
        __syncthreads();
      }
    }
  }

  __device__ void exchange(int a, int b, bool best_first) const {
    const double key_a = key_[a], key_b = key_[b];
    const int32_t item_a = item_[a], item_b = item_[b];
    const bool swapped = best_first ? ranks_before(key_b, item_b, key_a, item_a)
                                    : ranks_before(key_a, item_a, key_b, item_b);
    if (!swapped) return;
    const float score_a = score_[a], score_b = score_[b];
    key_[a] = key_b;
    key_[b] = key_a;
    item_[a] = item_b;
    item_[b] = item_a;
    score_[a] = score_b;
    score_[b] = score_a;
  }

  // Drops what cannot be among the k best: upper bound below the k-th largest lower bound. A few
  // such may stay, where they sort before one that must.
  __device__ void prune_by_bound() {
    if (dots_.users == nullptr || count_ <= state_.k) return;
    for (int i = threadIdx.x; i < count_; i += kThreads) {
      const float score = score_[i];
      const int32_t item = item_[i];
      key_[i] = static_cast<double>(score) - error(dots_.item_norm[item]);
    }
    sort();
    const double kth = key_[state_.k - 1];
    kth_ = kth > kth_ ? kth : kth_;
    int last = 0;
    for (int i = threadIdx.x; i < count_; i += kThreads) {
      const float score = score_[i];
      const int32_t item = item_[i];
      if (static_cast<double>(score) + error(dots_.item_norm[item]) >= kth_) last = i;
    }
    count_ = block_max(last) + 1;
  }

  __device__ void keep_exact_best() {
    int lowest_nan = INT_MAX;
    for (int i = threadIdx.x; i < count_; i += kThreads) {
      const int32_t item = item_[i];
      const float score = score_[i];
      double key = dots_.users == nullptr ? static_cast<double>(score) : exact(item);
      if (key != key) {  // NaN
        lowest_nan = min(lowest_nan, item);
        key = -HUGE_VAL;
      }
      key_[i] = key;
    }
    if (lowest_nan != INT_MAX) atomicMin(&state_.nan_item[row_], lowest_nan);
    sort();
    if (count_ < state_.k) return;
    count_ = state_.k;
    double last = key_[state_.k - 1];
    if (dots_.users != nullptr) last = ldexp(last, dots_.user_exponent[row_]);
    kth_ = last > kth_ ? last : kth_;
    __syncthreads();
  }

  const State& state_;
  const Dots<T>& dots_;
  const int64_t row_;
  Shared<double> key_;
  Shared<int32_t> item_;
  Shared<float> score_;
  int count_;
  double kth_;
};

__device__ bool contains(const int32_t* items, int64_t begin, int64_t end, int32_t wanted) {
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const int32_t item = items[middle];
    if (item == wanted) return true;
    if (item < wanted) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return false;
}

// report: top_k_update_kernel threads=128 shared=16*1024 bytes=4*U*W flops=U*W
template <class T>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    top_k_update_kernel(const float* scores, int64_t columns, int first_item, float largest_norm,
                        const int64_t* masked_offset, const int32_t* masked, const Dots<T> dots,
                        const State state) {
  Selection<T> selection(state, dots);
  const int64_t row = blockIdx.x;
  const float* row_scores = scores + row * columns;
  float threshold = selection.threshold(largest_norm);
  for (int64_t base = 0; base < columns; base += kRound) {
    float score[kPerThread];
    unsigned found = 0;
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const int64_t column = base + threadIdx.x + i * kThreads;
      if (column >= columns) continue;
      score[i] = row_scores[column];
      if (score[i] < threshold) continue;
      const int item = first_item + static_cast<int>(column);
      if (score[i] != score[i]) {  // NaN
        atomicMin(&state.nan_item[row], item);
      } else if (!contains(masked, masked_offset[row], masked_offset[row + 1], item)) {
        found |= 1u << i;
      }
    }
    if (__syncthreads_or(found != 0) == 0) continue;
    selection.append(found, score, first_item + static_cast<int>(base) + threadIdx.x);
    threshold = selection.threshold(largest_norm);
  }
  selection.store();
}

// report: top_k_finish_kernel threads=128 shared=16*1024 bytes=8*1024*U
template <class T>
__global__ void __launch_bounds__(kThreads)
    top_k_finish_kernel(const Dots<T> dots, const State state, int32_t* item, double* score) {
  Selection<T> selection(state, dots);
  selection.finish(item, score);
}

// report: top_k_clear_kernel threads=128 bytes=16*U
__global__ void __launch_bounds__(kThreads) top_k_clear_kernel(const State state, int64_t rows) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  state.count[row] = 0;
  state.kth[row] = -HUGE_VAL;
  state.nan_item[row] = INT_MAX;
}

}  // namespace

int64_t top_k_capacity(int64_t k) {
  const int twice = sort_capacity(2 * static_cast<int>(k));
  return twice > kLeastCapacity ? twice : kLeastCapacity;
}

void top_k_clear(Context& context, const TopKCandidates& candidates) {
  const int64_t rows = candidates.count.size();
  launch(device_of(context).stream(), top_k_clear_kernel,
         dim3(static_cast<unsigned>((rows + kThreads - 1) / kThreads)), dim3(kThreads), 0,
         State(candidates), rows);
}

void dot_scores(Context& context, MatrixView<const float> users, MatrixView<const float> items,
                MatrixView<float> scores) {
  gemm<float>(device_of(context), Transpose::no, Transpose::yes, 1.0, users, items, 0.0, scores);
}

template <class T>
void top_k_update(Context& context, MatrixView<const float> scores, int64_t first_item,
                  float largest_norm, const RowItems& masked, const DotProducts<T>& dots,
                  const TopKCandidates& candidates) {
  const State state(candidates);
  launch(device_of(context).stream(), top_k_update_kernel<T>,
         dim3(static_cast<unsigned>(scores.rows())), dim3(kThreads), state.shared_bytes(),
         scores.data, scores.cols(), static_cast<int>(first_item), largest_norm, masked.offset.data,
         masked.item.data, Dots<T>(dots), state);
}

template <class T>
void top_k_finish(Context& context, const DotProducts<T>& dots, const TopKCandidates& candidates,
                  MatrixView<int32_t> item, MatrixView<double> score) {
  const State state(candidates);
  launch(device_of(context).stream(), top_k_finish_kernel<T>,
         dim3(static_cast<unsigned>(item.rows())), dim3(kThreads), state.shared_bytes(),
         Dots<T>(dots), state, item.data, score.data);
}

CFAA_FOR_FLOAT_AND_DOUBLE(top_k_update);
CFAA_FOR_FLOAT_AND_DOUBLE(top_k_finish);

}  // namespace cfaa::cuda
