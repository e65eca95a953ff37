// Peak rates on the CPU: eight independent chains a thread, which is what the latency of a fused
// multiply-add times two units asks for.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peaks/peak_rates_cpu.cpp"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"

#include <cstdint>
#include <vector>

#include "bench/peaks/peak_rates.h"
#include "host/cpu/exp2-inl.h"
#include "host/cpu/vector_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {

constexpr int kChains = 8;

// Rounds of kChains vectors of multiply-adds; returns one number that depends on all.
template <class T>
T multiply_adds(int64_t rounds) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, T(0.999)), offset = hn::Set(d, T(1e-3));
  auto a = hn::Set(d, T(0)), b = hn::Set(d, T(1)), c = hn::Set(d, T(2)), e = hn::Set(d, T(3));
  auto f = hn::Set(d, T(4)), g = hn::Set(d, T(5)), h = hn::Set(d, T(6)), i = hn::Set(d, T(7));
  for (int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, offset);
    b = hn::MulAdd(b, factor, offset);
    c = hn::MulAdd(c, factor, offset);
    e = hn::MulAdd(e, factor, offset);
    f = hn::MulAdd(f, factor, offset);
    g = hn::MulAdd(g, factor, offset);
    h = hn::MulAdd(h, factor, offset);
    i = hn::MulAdd(i, factor, offset);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
T exponentials(int64_t rounds) {
  const hn::ScalableTag<T> d;
  const auto step = hn::Set(d, T(-1));
  auto a = hn::Set(d, T(0.1)), b = hn::Set(d, T(0.2)), c = hn::Set(d, T(0.3));
  auto e = hn::Set(d, T(0.4)), f = hn::Set(d, T(0.5)), g = hn::Set(d, T(0.6));
  auto h = hn::Set(d, T(0.7)), i = hn::Set(d, T(0.8));
  for (int64_t round = 0; round < rounds; ++round) {
    a = exp2(d, hn::Add(a, step));
    b = exp2(d, hn::Add(b, step));
    c = exp2(d, hn::Add(c, step));
    e = exp2(d, hn::Add(e, step));
    f = exp2(d, hn::Add(f, step));
    g = exp2(d, hn::Add(g, step));
    h = exp2(d, hn::Add(h, step));
    i = exp2(d, hn::Add(i, step));
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// Elements that a round touches.
int64_t round_bytes() {
  return kChains * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint8_t>()));
}

}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cfaa::cpu {
namespace {

HWY_EXPORT(round_bytes);

template <class T, class Run>
double run_on_all_threads(Context& context, double count, VectorView<T> sink, Run run) {
  const int threads = context.threads().threads();
  const double per_round = static_cast<double>(HWY_DYNAMIC_DISPATCH(round_bytes)()) / sizeof(T);
  const auto rounds = static_cast<int64_t>(count / threads / per_round) + 1;
  std::vector<T> results(static_cast<std::size_t>(threads));
  context.threads().parallel_for(threads, 1, [&](int64_t begin, int64_t, int) {
    results[static_cast<std::size_t>(begin)] = run(rounds);
  });
  T total = 0;
  for (const T result : results) total += result;
  sink.data[0] = total;
  return per_round * static_cast<double>(rounds) * threads;
}

}  // namespace

template <class T>
double run_multiply_adds(Context& context, double count, VectorView<T> sink) {
  return run_on_all_threads(context, count, sink, CFAA_VECTOR_DISPATCH(multiply_adds<T>));
}

template <class T>
double run_exponentials(Context& context, double count, VectorView<T> sink) {
  return run_on_all_threads(context, count, sink, CFAA_VECTOR_DISPATCH(exponentials<T>));
}

CFAA_FOR_FLOAT_AND_DOUBLE(run_multiply_adds);
CFAA_FOR_FLOAT_AND_DOUBLE(run_exponentials);

}  // namespace cfaa::cpu
#endif  // HWY_ONCE
