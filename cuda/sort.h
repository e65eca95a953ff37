#pragma once

// Sorting by key and sums over segments, by CUB on the Context's stream. Storage comes from the
// arena and depends on the sizes alone, so a step allocates nothing, and no call waits for the
// host: how many segments there are stays on the device. Sums are made segment by segment in a
// fixed order: the same bits every time (CUB's reduce-by-key does not promise that).
//
// The emulated device takes plain kernels with the same results.

#include <cstdint>

#include "cuda/device.h"
#include "host/core/view.h"

namespace cfaa::cuda {

// `sorted_keys` ascending and `sorted_values` with them; equal keys keep their order. All (n),
// contiguous, no two the same memory. Keys are below 2^key_bits and not negative: fewer bits, fewer
// passes.
void sort_pairs(Context& context, VectorView<const int32_t> keys, VectorView<const int32_t> values,
                VectorView<int32_t> sorted_keys, VectorView<int32_t> sorted_values,
                int key_bits = 31);

// The runs of equal keys. Views into the arena.
struct Segments {
  VectorView<int32_t> key;     // (n)      of each segment; the first count() are set
  VectorView<int32_t> offset;  // (n + 1)  segment i is [offset_i, offset_i+1); n from count() on
  VectorView<int32_t> count;   // (1)      in device memory
};

// `sorted_keys` is (n), n >= 1. Takes the result's memory from context.scratch().
Segments segments_of(Context& context, VectorView<const int32_t> sorted_keys);

// out_i = sum of values[offset_i .. offset_i+1); 0 for an empty segment. offset (s + 1), out (s).
template <class T>
void segmented_sum(Context& context, VectorView<const T> values, VectorView<const int32_t> offset,
                   VectorView<T> out);

}  // namespace cfaa::cuda
