#pragma once

// The element types that files may hold, and reading them as float or double.

#include <cstddef>
#include <cstdint>
#include <string>

namespace cfaa {

enum class DType { f16, bf16, f32, f64, i32, i64 };

std::size_t size_of(DType type);
std::string name_of(DType type);  // "float32"
bool is_float(DType type);

template <class T>
DType dtype_of();

float half_to_float(uint16_t bits);      // IEEE binary16
float bfloat16_to_float(uint16_t bits);  // upper half of a binary32
uint16_t float_to_half(float value);     // round to nearest even; overflow becomes infinity

// Converts `count` elements of `type` that lie `stride` elements apart, starting at `bytes` (of any
// alignment), to consecutive T.
template <class T>
void convert(DType type, const std::byte* bytes, int64_t stride, int64_t count, T* out);

}  // namespace cfaa
