#pragma once

// Rows of vectors as they lie in a file: float32 or float16, .npy or .safetensors, behind a header
// of fixed size that is filled in when the number of rows is known.

#include <cstdint>
#include <string>
#include <vector>

#include "host/core/dtype.h"

namespace cfaa {

enum class VectorFormat { npy, safetensors };

// By the name's end. Error for any other.
VectorFormat vector_format(const std::string& path);

// The header of a (rows, width) array; its size depends on the format alone. In a .safetensors file
// the array is called "vectors".
std::string vector_header(VectorFormat format, DType dtype, int64_t rows, int64_t width);

// Appends `count` elements, rounded to the type. Error where float16 cannot hold one.
void append_elements(DType dtype, const double* values, int64_t count, std::vector<std::byte>& out);
void append_elements(DType dtype, const float* values, int64_t count, std::vector<std::byte>& out);

}  // namespace cfaa
