// Dropout on the CPU: a vector of Philox counters at a time, since drawing costs far more than
// scaling.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "host/cpu/dropout.cpp"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"

#include <algorithm>
#include <cstdint>

#include "host/cpu/vector_dispatch.h"
#include "host/ops/dropout.h"

#ifndef CFAA_HOST_CPU_DROPOUT_ONCE
#define CFAA_HOST_CPU_DROPOUT_ONCE
namespace cfaa::cpu {
namespace {

constexpr int64_t kElementsAtOnce = 4096;

template <class T>
struct DropoutTask {
  Philox random;
  uint64_t stream;
  uint32_t threshold;  // an element is kept where the upper 24 bits of its word reach it
  T scale;
  MatrixView<T> x;
};

}  // namespace
}  // namespace cfaa::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The upper halves of a * b.
template <class D, class V>
HWY_INLINE V upper_product(D d, V a, V b) {
  const auto even = hn::MulEven(a, b);
#if HWY_TARGET == HWY_SCALAR
  return hn::BitCast(d, hn::ShiftRight<32>(even));
#else
  const hn::RepartitionToWide<D> wide;
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), b);
  return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
#endif
}

// Philox::operator() for adjacent counters: words[4 i + j] is word j of counter first + i. `count`
// is rounded up to whole vectors.
void draw_words(const Philox& random, uint32_t first, int64_t count, uint64_t stream,
                uint32_t* words) {
  const hn::ScalableTag<uint32_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  for (int64_t i = 0; i < count; i += lanes) {
    auto c0 = hn::Iota(d, first + static_cast<uint32_t>(i));
    auto c1 = hn::Zero(d);
    auto c2 = hn::Set(d, static_cast<uint32_t>(stream));
    auto c3 = hn::Set(d, static_cast<uint32_t>(stream >> 32));
    uint32_t k0 = static_cast<uint32_t>(random.seed);
    uint32_t k1 = static_cast<uint32_t>(random.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto p0_high = upper_product(d, c0, m0), p0_low = hn::Mul(c0, m0);
      const auto p1_high = upper_product(d, c2, m1), p1_low = hn::Mul(c2, m1);
      c0 = hn::Xor(p1_high, hn::Xor(c1, hn::Set(d, k0)));
      c1 = p1_low;
      c2 = hn::Xor(p0_high, hn::Xor(c3, hn::Set(d, k1)));
      c3 = p0_low;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, d, words + 4 * i);
  }
}

// Elements begin .. end, counted along the rows; begin is a multiple of 4.
template <class T>
void drop(const DropoutTask<T>& task, int64_t begin, int64_t end) {
  // Room for a last vector that is only partly used.
  HWY_ALIGN uint32_t words[kElementsAtOnce + 4 * HWY_MAX_BYTES / 4];
  draw_words(task.random, static_cast<uint32_t>(begin / 4), (end - begin + 3) / 4, task.stream,
             words);
  const int64_t columns = task.x.cols();
  const uint32_t threshold = task.threshold;
  const T scale = task.scale;
  for (int64_t i = begin; i < end;) {
    const int64_t row = i / columns, stop = std::min(end, (row + 1) * columns);
    T* HWY_RESTRICT x = task.x.data + row * task.x.stride[0] + i % columns;
    const uint32_t* HWY_RESTRICT word = words + (i - begin);
    for (int64_t j = 0; j < stop - i; ++j) {
      const T scaled = x[j] * scale;
      x[j] = (word[j] >> 8) >= threshold ? scaled : T(0);
    }
    i = stop;
  }
}

}  // namespace
}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cfaa::cpu {
template <class T>
void dropout(Context& context, double p, const StepState* state, uint64_t layer, MatrixView<T> x) {
  const DropoutTask<T> task{context.random(), (state->draw << 16) + layer, dropout_threshold(p),
                            static_cast<T>(1 / (1 - p)), x};
  const auto run = CFAA_VECTOR_DISPATCH(drop<T>);
  context.threads().parallel_for(x.size(), kElementsAtOnce,
                                 [&](int64_t begin, int64_t end, int) { run(task, begin, end); });
}

CFAA_FOR_FLOAT_AND_DOUBLE(dropout);

}  // namespace cfaa::cpu
#endif  // HWY_ONCE
