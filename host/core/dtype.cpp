#include "host/core/dtype.h"

#include <bit>
#include <cstring>

#include "host/core/error.h"

namespace cfaa {
namespace {

template <class Stored>
Stored load(const std::byte* bytes) {
  Stored value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class Stored, class T, class Decode>
void convert_as(const std::byte* bytes, int64_t stride, int64_t count, T* out, Decode decode) {
  const int64_t step = stride * static_cast<int64_t>(sizeof(Stored));
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<T>(decode(load<Stored>(bytes + i * step)));
  }
}

template <class Stored, class T>
void convert_as(const std::byte* bytes, int64_t stride, int64_t count, T* out) {
  convert_as<Stored>(bytes, stride, count, out, [](Stored value) { return value; });
}

}  // namespace

std::size_t size_of(DType type) {
  switch (type) {
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
  }
  return 0;
}

std::string name_of(DType type) {
  switch (type) {
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
  }
  return "?";
}

bool is_float(DType type) {
  return type != DType::i32 && type != DType::i64;
}

template <>
DType dtype_of<float>() {
  return DType::f32;
}
template <>
DType dtype_of<double>() {
  return DType::f64;
}
template <>
DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
DType dtype_of<int64_t>() {
  return DType::i64;
}

float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;             // NaN
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;            // rounds past 65504
  if (magnitude < 0x38800000u) {                                  // below 2^-14: subnormal
    const float scaled = std::bit_cast<float>(magnitude) + 0.5f;  // adds the rounding bits
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(scaled) - 0x3F000000u);
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return sign | static_cast<uint16_t>((magnitude - 0x38000000u + 0xFFFu + odd) >> 13);
}

template <class T>
void convert(DType type, const std::byte* bytes, int64_t stride, int64_t count, T* out) {
  switch (type) {
    case DType::f16:
      return convert_as<uint16_t>(bytes, stride, count, out, half_to_float);
    case DType::bf16:
      return convert_as<uint16_t>(bytes, stride, count, out, bfloat16_to_float);
    case DType::f32:
      return convert_as<float>(bytes, stride, count, out);
    case DType::f64:
      return convert_as<double>(bytes, stride, count, out);
    case DType::i32:
      return convert_as<int32_t>(bytes, stride, count, out);
    case DType::i64:
      return convert_as<int64_t>(bytes, stride, count, out);
  }
}

template void convert<float>(DType, const std::byte*, int64_t, int64_t, float*);
template void convert<double>(DType, const std::byte*, int64_t, int64_t, double*);
template void convert<int32_t>(DType, const std::byte*, int64_t, int64_t, int32_t*);
template void convert<int64_t>(DType, const std::byte*, int64_t, int64_t, int64_t*);

}  // namespace cfaa
