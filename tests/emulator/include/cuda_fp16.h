#pragma once
// __half of CUDA: IEEE binary16, arithmetic rounded after each operation.

#include <bit>
#include <cstdint>

struct alignas(2) __half {
  _Float16 bits;

  __half() = default;
  constexpr __half(float x) : bits(static_cast<_Float16>(x)) {}
  constexpr __half(double x) : bits(static_cast<_Float16>(x)) {}
  constexpr __half(int x) : bits(static_cast<_Float16>(x)) {}
  constexpr operator float() const { return static_cast<float>(bits); }
};
typedef __half half;

struct alignas(4) __half2 {
  __half x, y;
};
typedef __half2 half2;

inline __half __float2half(float x) {
  return __half(x);
}
inline __half __float2half_rn(float x) {
  return __half(x);
}
inline __half __double2half(double x) {
  return __half(x);
}
inline float __half2float(__half x) {
  return static_cast<float>(x);
}
inline __half2 __floats2half2_rn(float x, float y) {
  return {__half(x), __half(y)};
}
inline float __low2float(__half2 v) {
  return v.x;
}
inline float __high2float(__half2 v) {
  return v.y;
}
inline __half __ushort_as_half(unsigned short x) {
  return std::bit_cast<__half>(x);
}
inline unsigned short __half_as_ushort(__half x) {
  return std::bit_cast<unsigned short>(x);
}

inline __half operator+(__half a, __half b) {
  return __half(static_cast<float>(a) + static_cast<float>(b));
}
inline __half operator-(__half a, __half b) {
  return __half(static_cast<float>(a) - static_cast<float>(b));
}
inline __half operator*(__half a, __half b) {
  return __half(static_cast<float>(a) * static_cast<float>(b));
}
inline __half operator/(__half a, __half b) {
  return __half(static_cast<float>(a) / static_cast<float>(b));
}
inline __half operator-(__half a) {
  return __half(-static_cast<float>(a));
}
inline bool operator<(__half a, __half b) {
  return static_cast<float>(a) < static_cast<float>(b);
}
inline bool operator>(__half a, __half b) {
  return static_cast<float>(a) > static_cast<float>(b);
}
inline bool operator==(__half a, __half b) {
  return static_cast<float>(a) == static_cast<float>(b);
}
inline bool operator!=(__half a, __half b) {
  return static_cast<float>(a) != static_cast<float>(b);
}
inline __half __hadd(__half a, __half b) {
  return a + b;
}
inline __half __hmul(__half a, __half b) {
  return a * b;
}
