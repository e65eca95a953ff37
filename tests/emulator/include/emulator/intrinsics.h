#pragma once
// CUDA's device functions that are plain arithmetic or atomics. The fast-math ones give the exact
// function's value: what they promise on a GPU is an error bound, and zero error is within it.

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "vector_types.h"

inline int min(int a, int b) {
  return b < a ? b : a;
}
inline unsigned min(unsigned a, unsigned b) {
  return b < a ? b : a;
}
inline long min(long a, long b) {
  return b < a ? b : a;
}
inline unsigned long min(unsigned long a, unsigned long b) {
  return b < a ? b : a;
}
inline long long min(long long a, long long b) {
  return b < a ? b : a;
}
inline unsigned long long min(unsigned long long a, unsigned long long b) {
  return b < a ? b : a;
}
inline float min(float a, float b) {
  return std::fmin(a, b);
}
inline double min(double a, double b) {
  return std::fmin(a, b);
}
inline int max(int a, int b) {
  return a < b ? b : a;
}
inline unsigned max(unsigned a, unsigned b) {
  return a < b ? b : a;
}
inline long max(long a, long b) {
  return a < b ? b : a;
}
inline unsigned long max(unsigned long a, unsigned long b) {
  return a < b ? b : a;
}
inline long long max(long long a, long long b) {
  return a < b ? b : a;
}
inline unsigned long long max(unsigned long long a, unsigned long long b) {
  return a < b ? b : a;
}
inline float max(float a, float b) {
  return std::fmax(a, b);
}
inline double max(double a, double b) {
  return std::fmax(a, b);
}

inline float __expf(float x) {
  return std::exp(x);
}
inline float __exp10f(float x) {
  return std::pow(10.0f, x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float __log2f(float x) {
  return std::log2(x);
}
inline float __sinf(float x) {
  return std::sin(x);
}
inline float __cosf(float x) {
  return std::cos(x);
}
inline float __tanf(float x) {
  return std::tan(x);
}
inline float __powf(float x, float y) {
  return std::pow(x, y);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __fadd_rn(float x, float y) {
  return x + y;
}
inline float __fmul_rn(float x, float y) {
  return x * y;
}
inline float __fdiv_rn(float x, float y) {
  return x / y;
}
inline float __frcp_rn(float x) {
  return 1.0f / x;
}
inline float __fsqrt_rn(float x) {
  return std::sqrt(x);
}
inline float __frsqrt_rn(float x) {
  return 1.0f / std::sqrt(x);
}
inline float __fmaf_rn(float x, float y, float z) {
  return std::fma(x, y, z);
}
inline double __dadd_rn(double x, double y) {
  return x + y;
}
inline double __dmul_rn(double x, double y) {
  return x * y;
}
inline double __ddiv_rn(double x, double y) {
  return x / y;
}
inline double __drcp_rn(double x) {
  return 1.0 / x;
}
inline double __dsqrt_rn(double x) {
  return std::sqrt(x);
}
inline double __fma_rn(double x, double y, double z) {
  return std::fma(x, y, z);
}
inline float __saturatef(float x) {
  return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}
inline float rsqrtf(float x) {
  return 1.0f / std::sqrt(x);
}
inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}
inline float rsqrt(float x) {
  return rsqrtf(x);
}

inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return std::bit_cast<double>(x);
}
inline int __float2int_rn(float x) {
  return static_cast<int>(std::lrint(x));
}
inline int __float2int_rd(float x) {
  return static_cast<int>(std::floor(x));
}
inline float __int2float_rn(int x) {
  return static_cast<float>(x);
}
inline float __uint2float_rn(unsigned x) {
  return static_cast<float>(x);
}
inline float __double2float_rn(double x) {
  return static_cast<float>(x);
}

inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
inline int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}

template <typename T>
T __ldg(const T* p) {
  return *p;
}
template <typename T>
T __ldcs(const T* p) {
  return *p;
}
template <typename T>
T __ldcg(const T* p) {
  return *p;
}
template <typename T>
void __stcs(T* p, T value) {
  *p = value;
}
template <typename T>
void __stcg(T* p, T value) {
  *p = value;
}

inline long long clock64() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

namespace emulator {

// Blocks run on several host threads, so an atomic of a kernel is an atomic of the host.
template <typename T, typename Change>
T atomic_change(T* address, Change change) {
  std::atomic_ref<T> target(*address);
  T old = target.load();
  while (!target.compare_exchange_weak(old, change(old))) {
  }
  return old;
}

}  // namespace emulator

#define CFAA_EMULATOR_ATOMICS(T)                                                       \
  inline T atomicAdd(T* p, T v) {                                                      \
    return emulator::atomic_change(p, [v](T old) { return static_cast<T>(old + v); }); \
  }                                                                                    \
  inline T atomicExch(T* p, T v) {                                                     \
    return emulator::atomic_change(p, [v](T) { return v; });                           \
  }
#define CFAA_EMULATOR_INTEGER_ATOMICS(T)                                                 \
  inline T atomicMax(T* p, T v) {                                                        \
    return emulator::atomic_change(p, [v](T old) { return old < v ? v : old; });         \
  }                                                                                      \
  inline T atomicMin(T* p, T v) {                                                        \
    return emulator::atomic_change(p, [v](T old) { return v < old ? v : old; });         \
  }                                                                                      \
  inline T atomicOr(T* p, T v) {                                                         \
    return emulator::atomic_change(p, [v](T old) { return old | v; });                   \
  }                                                                                      \
  inline T atomicAnd(T* p, T v) {                                                        \
    return emulator::atomic_change(p, [v](T old) { return old & v; });                   \
  }                                                                                      \
  inline T atomicCAS(T* p, T expected, T v) {                                            \
    return emulator::atomic_change(p, [=](T old) { return old == expected ? v : old; }); \
  }
CFAA_EMULATOR_ATOMICS(int)
CFAA_EMULATOR_ATOMICS(unsigned)
CFAA_EMULATOR_ATOMICS(unsigned long long)
CFAA_EMULATOR_ATOMICS(float)
inline double atomicAdd(double* p, double v) {
  return emulator::atomic_change(p, [v](double old) { return old + v; });
}
CFAA_EMULATOR_INTEGER_ATOMICS(int)
CFAA_EMULATOR_INTEGER_ATOMICS(unsigned)
CFAA_EMULATOR_INTEGER_ATOMICS(unsigned long long)
#undef CFAA_EMULATOR_ATOMICS
#undef CFAA_EMULATOR_INTEGER_ATOMICS
