// Kernels on the emulated device: indices, warps, reductions, atomics, shared memory.

#include <algorithm>
#include <numeric>
#include <random>

#include "cuda/launch.h"
#include "device_buffer.h"
#include "emulator/control.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

__global__ void write_indices(int* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  out[i] = i;
}

TEST(Execution, EveryThreadOfEveryBlockRunsOnce) {
  DeviceBuffer<int> out(37 * 96);

  launch(nullptr, write_indices, 37, 96, 0, out.data());

  std::vector<int> expected(37 * 96);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(out.values(), expected);
}

__global__ void write_3d(int* out) {
  const unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[b * blockDim.x * blockDim.y * blockDim.z + t] = static_cast<int>(100 * b + t);
}

TEST(Execution, IndicesHaveThreeDimensions) {
  DeviceBuffer<int> out(24 * 24);

  launch(nullptr, write_3d, dim3(2, 3, 4), dim3(4, 3, 2), 0, out.data());

  const std::vector<int> values = out.values();
  for (int b = 0; b < 24; ++b) {
    for (int t = 0; t < 24; ++t) EXPECT_EQ(values[b * 24 + t], 100 * b + t);
  }
}

__global__ void shuffle_kinds(int* out) {
  const int lane = lane_index();
  out[lane] = __shfl_sync(full_warp, lane, 5);
  out[32 + lane] = __shfl_up_sync(full_warp, lane, 3);
  out[64 + lane] = __shfl_down_sync(full_warp, lane, 3);
  out[96 + lane] = __shfl_xor_sync(full_warp, lane, 9);
  out[128 + lane] = __shfl_down_sync(full_warp, lane, 2, 8);
  out[160 + lane] = static_cast<int>(__ballot_sync(full_warp, lane % 3 == 0));
  out[192 + lane] = __any_sync(full_warp, lane == 31) * 2 + __all_sync(full_warp, lane < 31);
}

TEST(Execution, ShufflesAndVotesFollowTheLanes) {
  DeviceBuffer<int> out(7 * 32);

  launch(nullptr, shuffle_kinds, 1, 32, 0, out.data());

  const std::vector<int> values = out.values();
  int ballot = 0;
  for (int lane = 0; lane < 32; lane += 3) ballot |= static_cast<int>(1u << lane);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(values[lane], 5);
    EXPECT_EQ(values[32 + lane], lane < 3 ? lane : lane - 3);
    EXPECT_EQ(values[64 + lane], lane + 3 < 32 ? lane + 3 : lane);
    EXPECT_EQ(values[96 + lane], lane ^ 9);
    EXPECT_EQ(values[128 + lane], lane % 8 + 2 < 8 ? lane + 2 : lane);
    EXPECT_EQ(values[160 + lane], ballot);
    EXPECT_EQ(values[192 + lane], 2);
  }
}

// Two halves of a warp, each among themselves.
__global__ void halves(int* out) {
  const int lane = lane_index();
  const unsigned mask = lane < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  int sum = lane;
  if (lane < 16) {
    for (int offset = 8; offset > 0; offset /= 2) sum += __shfl_xor_sync(mask, sum, offset);
  } else {
    for (int offset = 8; offset > 0; offset /= 2) sum += __shfl_xor_sync(mask, sum, offset);
    sum = -sum;
  }
  out[lane] = sum;
}

TEST(Execution, PartsOfAWarpShuffleAmongThemselves) {
  DeviceBuffer<int> out(32);

  launch(nullptr, halves, 1, 32, 0, out.data());

  const std::vector<int> values = out.values();
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(values[lane], lane < 16 ? 120 : -376);
}

template <typename T>
__global__ void reduce_rows(const T* z, int n, T* out) {  // z: (rows, n), out: (3, rows)
  const T* row = z + static_cast<long long>(blockIdx.x) * n;
  T sum = 0, high = row[0], low = row[0];
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    sum += row[i];
    high = max(high, row[i]);
    low = min(low, row[i]);
  }
  sum = block_sum(sum);
  high = block_max(high);
  low = block_min(low);
  if (threadIdx.x == blockDim.x - 1) {
    out[blockIdx.x] = sum;
    out[gridDim.x + blockIdx.x] = high;
    out[2 * gridDim.x + blockIdx.x] = low;
  }
}

template <typename T>
void check_reductions() {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> whole(-1000, 1000);
  for (int n : {1, 31, 32, 33, 257}) {
    for (int threads : {32, 96, 256, 1024}) {
      std::vector<T> z(static_cast<std::size_t>(5 * n));
      for (T& value : z) value = static_cast<T>(whole(random));
      DeviceBuffer<T> in(z), out(15);

      launch(nullptr, reduce_rows<T>, 5, threads, 0, in.data(), n, out.data());

      const std::vector<T> values = out.values();
      for (int row = 0; row < 5; ++row) {
        const auto first = z.begin() + row * n, last = first + n;
        EXPECT_EQ(values[row], std::accumulate(first, last, T{0}));
        EXPECT_EQ(values[5 + row], *std::max_element(first, last));
        EXPECT_EQ(values[10 + row], *std::min_element(first, last));
      }
    }
  }
}

TEST(Execution, BlockReductionsEqualPlainLoopsInFloat) {
  check_reductions<float>();
}
TEST(Execution, BlockReductionsEqualPlainLoopsInDouble) {
  check_reductions<double>();
}

template <typename T>
__global__ void sort_column(const T* in, int n, T* out) {
  SharedArena arena;
  const Shared<T> column = arena.take<T>(sort_capacity(n));
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    column[i] = in[i];
  }
  block_sort(column, n);
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    out[i] = column[i];
  }
}

TEST(Execution, BlockSortOrdersColumnsOfAnyLength) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (int n : {1, 2, 31, 32, 33, 256, 257, 1000}) {
    for (unsigned seed : {1u, 2u, 3u}) {
      emulator::set_seed(seed);
      std::vector<double> column(static_cast<std::size_t>(n));
      for (double& value : column) value = normal(random);
      DeviceBuffer<double> in(column), out(column.size());

      launch(nullptr, sort_column<double>, 1, 128, shared_bytes<double>(sort_capacity(n)),
             in.data(), n, out.data());

      std::sort(column.begin(), column.end());
      EXPECT_EQ(out.values(), column);
    }
  }
}

__global__ void count_all(int* integers, double* doubles, unsigned long long* longs) {
  atomicAdd(integers, 1);
  atomicMax(integers + 1, static_cast<int>(blockIdx.x * 1000 + threadIdx.x));
  atomicMin(integers + 2, -static_cast<int>(threadIdx.x));
  atomicAdd(doubles, 0.5);
  atomicAdd(longs, 3ull);
  CFAA_SHARED(int, counter, 1);
  if (threadIdx.x == 0) counter[0] = 0;
  __syncthreads();
  atomicAdd(&counter[0], 2);
  __syncthreads();
  if (threadIdx.x == 1) {
    const int total = counter[0];
    atomicAdd(integers + 3, total);
  }
}

TEST(Execution, AtomicsOfManyBlocksAreNotLost) {
  DeviceBuffer<int> integers(std::vector<int>(4, 0));
  DeviceBuffer<double> doubles(std::vector<double>(1, 0.0));
  DeviceBuffer<unsigned long long> longs(std::vector<unsigned long long>(1, 0));

  launch(nullptr, count_all, 200, 128, 0, integers.data(), doubles.data(), longs.data());

  EXPECT_EQ(integers.values(), (std::vector<int>{25600, 199127, -127, 200 * 256}));
  EXPECT_EQ(doubles.values()[0], 12800.0);
  EXPECT_EQ(longs.values()[0], 76800u);
}

// Each warp reverses 32 numbers through shared memory; only __syncwarp orders the lanes.
__global__ void reverse_in_warp(const float* in, float* out) {
  CFAA_SHARED(float, slots, 128);
  const int first = warp_index() * 32;
  for (int round = 0; round < 3; ++round) {
    slots[first + lane_index()] = in[first + lane_index()] + static_cast<float>(round);
    __syncwarp();
    const float other = slots[first + 31 - lane_index()];
    __syncwarp();
    out[first + lane_index()] = other;
  }
}

TEST(Execution, SyncwarpOrdersSharedMemoryWithinAWarp) {
  std::vector<float> numbers(128);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  DeviceBuffer<float> in(numbers), out(128);

  launch(nullptr, reverse_in_warp, 1, 128, 0, in.data(), out.data());

  const std::vector<float> values = out.values();
  for (int i = 0; i < 128; ++i) EXPECT_EQ(values[i], i / 32 * 32 + 31 - i % 32 + 2.0f);
}

__global__ void record_order(int* order, int* next) {
  order[atomicAdd(next, 1)] = static_cast<int>(threadIdx.x);
}

TEST(Execution, ThreadsRunInAnOrderGivenByTheSeed) {
  std::vector<std::vector<int>> orders;
  for (unsigned seed : {1u, 2u}) {
    emulator::set_seed(seed);
    DeviceBuffer<int> order(256), next(std::vector<int>(1, 0));
    launch(nullptr, record_order, 1, 256, 0, order.data(), next.data());
    orders.push_back(order.values());
  }

  EXPECT_NE(orders[0], orders[1]);
  EXPECT_FALSE(std::is_sorted(orders[0].begin(), orders[0].end()));
  std::sort(orders[0].begin(), orders[0].end());
  std::vector<int> all(256);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(orders[0], all);
}

}  // namespace
}  // namespace cfaa::cuda
