#include "host/embed/vectors.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "host/core/error.h"
#include "host/io/npy.h"

namespace cfaa {
namespace {

constexpr std::size_t kNpyHeader = 128, kSafetensorsHeader = 256;

template <class T>
void append_rounded(DType dtype, const T* values, int64_t count, std::vector<std::byte>& out) {
  const std::size_t at = out.size();
  out.resize(at + static_cast<std::size_t>(count) * size_of(dtype));
  std::byte* to = out.data() + at;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(values[i]);
    if (dtype == DType::f32) {
      std::memcpy(to + i * 4, &value, 4);
      continue;
    }
    const uint16_t half = float_to_half(value);
    if ((half & 0x7C00) == 0x7C00) {
      throw Error(fmt::format("the value {} is too large for float16; use --dtype float32", value));
    }
    std::memcpy(to + i * 2, &half, 2);
  }
}

}  // namespace

VectorFormat vector_format(const std::string& path) {
  if (path.ends_with(".npy")) return VectorFormat::npy;
  if (path.ends_with(".safetensors")) return VectorFormat::safetensors;
  throw Error(
      fmt::format("--out {}: the name must end in .npy or .safetensors, which says how vectors are "
                  "written",
                  path));
}

std::string vector_header(VectorFormat format, DType dtype, int64_t rows, int64_t width) {
  CFAA_ASSERT(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::i32);
  if (format == VectorFormat::npy) {
    const std::string header =
        width > 0 ? npy_header(dtype, {rows, width}) : npy_header(dtype, {rows});
    CFAA_ASSERT(header.size() == kNpyHeader);
    return header;
  }
  std::string text =
      fmt::format(R"({{"vectors":{{"dtype":"{}","shape":[{},{}],"data_offsets":[0,{}]}}}})",
                  dtype == DType::f32 ? "F32" : "F16", rows, width,
                  static_cast<uint64_t>(rows) * static_cast<uint64_t>(width) * size_of(dtype));
  text.resize(kSafetensorsHeader - 8, ' ');
  std::string header(8, '\0');
  for (std::size_t b = 0; b < 8; ++b) {
    header[b] = static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * b) & 0xFF);
  }
  return header + text;
}

void append_elements(DType dtype, const double* values, int64_t count,
                     std::vector<std::byte>& out) {
  append_rounded(dtype, values, count, out);
}

void append_elements(DType dtype, const float* values, int64_t count, std::vector<std::byte>& out) {
  append_rounded(dtype, values, count, out);
}

}  // namespace cfaa
