#pragma once
// CUDA's vector types with their sizes and alignments, and make_*.

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

#define CFAA_EMULATOR_VECTORS(T, name, align2, align4)          \
  struct alignas(align2) name##2 {                              \
    T x, y;                                                     \
  };                                                            \
  struct name##3 {                                              \
    T x, y, z;                                                  \
  };                                                            \
  struct alignas(align4) name##4 {                              \
    T x, y, z, w;                                               \
  };                                                            \
  inline constexpr name##2 make_##name##2(T x, T y) {           \
    return {x, y};                                              \
  }                                                             \
  inline constexpr name##3 make_##name##3(T x, T y, T z) {      \
    return {x, y, z};                                           \
  }                                                             \
  inline constexpr name##4 make_##name##4(T x, T y, T z, T w) { \
    return {x, y, z, w};                                        \
  }

CFAA_EMULATOR_VECTORS(float, float, 8, 16)
CFAA_EMULATOR_VECTORS(double, double, 16, 16)
CFAA_EMULATOR_VECTORS(int, int, 8, 16)
CFAA_EMULATOR_VECTORS(short, short, 4, 8)
CFAA_EMULATOR_VECTORS(unsigned char, uchar, 2, 4)
CFAA_EMULATOR_VECTORS(long long, longlong, 16, 16)
#undef CFAA_EMULATOR_VECTORS

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline constexpr uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) {
  return {x, y, z};
}
inline constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
