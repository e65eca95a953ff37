// Sorting by key and segmented sums; they exist on the GPU alone.

#if CFAA_HAS_CUDA

#include "cuda/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "host/core/tensor.h"
#include "tests/compare.h"
#include "tests/on_cuda.h"

namespace cfaa::test {
namespace {

class Sort : public OnCuda {};

std::vector<int32_t> random_keys(int64_t count, uint64_t below, uint64_t seed) {
  const Philox random{seed};
  std::vector<int32_t> keys(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    keys[static_cast<std::size_t>(i)] =
        static_cast<int32_t>(random.below(below, static_cast<uint64_t>(i), 1));
  }
  return keys;
}

TEST_F(Sort, OrdersKeysAndKeepsTheOrderOfEqualOnes) {
  for (const int64_t n : {1, 31, 33, 257, 1000}) {
    const std::vector<int32_t> keys = random_keys(n, 40, 3);
    std::vector<int32_t> positions(keys.size());
    std::iota(positions.begin(), positions.end(), 0);
    const Tensor<int32_t, 1> keys_in(context(), {n}, keys.data());
    const Tensor<int32_t, 1> values_in(context(), {n}, positions.data());
    const Tensor<int32_t, 1> keys_out(context(), {n}), values_out(context(), {n});

    const Arena::Scope scope(context().scratch());
    cuda::sort_pairs(context(), keys_in, values_in, keys_out, values_out, /*key_bits=*/6);

    std::stable_sort(positions.begin(), positions.end(), [&](int32_t a, int32_t b) {
      return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
    });
    std::vector<int32_t> sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(keys_out.to_host(), sorted) << n;
    EXPECT_EQ(values_out.to_host(), positions) << n;
  }
}

TEST_F(Sort, FindsTheSegmentsOfEqualKeys) {
  const std::vector<int32_t> keys = {2, 2, 2, 5, 9, 9};
  const Tensor<int32_t, 1> sorted(context(), {6}, keys.data());

  const Arena::Scope scope(context().scratch());
  const cuda::Segments segments = cuda::segments_of(context(), sorted);

  const std::vector<int32_t> key = to_host(context(), segments.key);
  EXPECT_EQ(to_host(context(), segments.count)[0], 3);
  EXPECT_EQ(std::vector<int32_t>(key.begin(), key.begin() + 3), (std::vector<int32_t>{2, 5, 9}));
  EXPECT_EQ(to_host(context(), segments.offset), (std::vector<int32_t>{0, 3, 4, 6, 6, 6, 6}));
}

TEST_F(Sort, SumsEachSegmentAndGivesZeroForAnEmptyOne) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> offsets = {0, 3, 3, 4, 6};
  const Tensor<double, 1> in(context(), {6}, values.data()), out(context(), {4});
  const Tensor<int32_t, 1> offset(context(), {5}, offsets.data());

  const Arena::Scope scope(context().scratch());
  cuda::segmented_sum<double>(context(), in, offset, out);

  EXPECT_EQ(out.to_host(), (std::vector<double>{6, 0, 4, 11}));
}

TEST_F(Sort, AllocatesNothingTheSecondTime) {
  const int64_t n = 500;
  const Tensor<int32_t, 1> keys(context(), {n}, random_keys(n, 1000, 5).data());
  const Tensor<int32_t, 1> sorted(context(), {n}), values(context(), {n});
  const auto step = [&] {
    const Arena::Scope scope(context().scratch());
    cuda::sort_pairs(context(), keys, keys, sorted, values);
    cuda::segments_of(context(), sorted);
  };
  step();
  const int64_t before = context().scratch().allocations();

  step();

  EXPECT_EQ(context().scratch().allocations(), before);
}

}  // namespace
}  // namespace cfaa::test

#endif
