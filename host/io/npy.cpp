#include "host/io/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "host/core/error.h"
#include "host/io/atomic_file.h"

namespace cfaa {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// Parses the header's text, a Python dictionary such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void parse(NpyHeader& header) {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        header.dtype = element_type(quoted());
        descr = true;
      } else if (key == "fortran_order" && !order) {
        header.fortran_order = boolean();
        order = true;
      } else if (key == "shape" && !shape) {
        header.shape = tuple();
        shape = true;
      } else {
        fail("has an unknown or repeated key '" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("has text after its dictionary");
    if (!descr || !order || !shape) fail("lacks 'descr', 'fortran_order' or 'shape'");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(name_ + ": its .npy header " + what + "; save the array again with numpy.save");
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("lacks a '{}' at byte {}", wanted, at_));
  }

  std::string quoted() {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) {
      fail(fmt::format("lacks a quoted name at byte {}", at_));
    }
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("has an unclosed quote");
    const std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::strlen(word);
        return value;
      }
    }
    fail("has a 'fortran_order' that is neither True nor False");
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> extents;
    expect('(');
    while (!accept(')')) {
      skip_space();
      const std::size_t start = at_;
      int64_t extent = 0;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        if (at_ - start > 17) fail("has a dimension that is too large");
        extent = extent * 10 + (text_[at_++] - '0');
      }
      if (at_ == start) fail("has a 'shape' that is not a tuple of whole numbers");
      extents.push_back(extent);
      if (extents.size() > 32) fail("has more than 32 dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  DType element_type(const std::string& descr) const {
    if (descr == "<f2") return DType::f16;
    if (descr == "<f4") return DType::f32;
    if (descr == "<f8") return DType::f64;
    if (descr == "<i4") return DType::i32;
    if (descr == "<i8") return DType::i64;
    throw Error(
        fmt::format("{}: elements of type '{}' are not read here; convert with array.astype('<f4')",
                    name_, descr));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  const std::string& name_;
};

std::string descr_of(DType type) {
  switch (type) {
    case DType::f16:
      return "<f2";
    case DType::f32:
      return "<f4";
    case DType::f64:
      return "<f8";
    case DType::i32:
      return "<i4";
    case DType::i64:
      return "<i8";
    case DType::bf16:
      break;
  }
  throw Error("bfloat16 has no .npy type; write float32 or a .safetensors file");
}

// Row-major copy of a Fortran-order array: walks the output in order, with the input's strides.
template <class T>
void read_fortran(const NpyHeader& header, const std::byte* data, T* out, int64_t count) {
  const std::vector<int64_t>& shape = header.shape;
  const std::size_t rank = shape.size();
  std::vector<int64_t> stride(rank, 1), index(rank, 0);
  for (std::size_t d = 1; d < rank; ++d) stride[d] = stride[d - 1] * shape[d - 1];
  const int64_t row = shape[rank - 1];
  for (int64_t done = 0; done < count; done += row) {
    int64_t offset = 0;
    for (std::size_t d = 0; d + 1 < rank; ++d) offset += index[d] * stride[d];
    convert(header.dtype, data + offset * static_cast<int64_t>(size_of(header.dtype)),
            stride[rank - 1], row, out + done);
    for (std::size_t d = rank - 1; d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, kMagic.size()) != kMagic || text.size() < 10) {
    throw Error(name + ": is not a .npy file; save the array with numpy.save");
  }
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) {
    throw Error(fmt::format("{}: .npy version {} is not known; save it again with numpy.save", name,
                            version));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t text_start = 8 + length_bytes;
  std::size_t length = 0;
  if (text.size() >= text_start) {
    for (std::size_t b = length_bytes; b-- > 0;) {
      length = length << 8 | static_cast<unsigned char>(text[8 + b]);
    }
  }
  if (text.size() < text_start || length > text.size() - text_start) {
    throw Error(name + ": is cut off inside its .npy header; copy or save it again");
  }

  NpyHeader header{};
  HeaderText(text.substr(text_start, length), name).parse(header);
  header.data_offset = text_start + length;

  std::size_t expected = size_of(header.dtype);
  for (int64_t extent : header.shape) {
    if (__builtin_mul_overflow(expected, static_cast<std::size_t>(extent), &expected)) {
      throw Error(name + ": its .npy header states a shape that no memory can hold");
    }
  }
  const std::size_t present = bytes.size() - header.data_offset;
  if (present != expected) {
    throw Error(fmt::format(
        "{}: holds {} bytes of data where its header states {}; it is {}: copy "
        "or save it again",
        name, present, expected, present < expected ? "cut off" : "followed by something else"));
  }
  return header;
}

NpyFile::NpyFile(const std::string& path)
    : file_(path), header_(parse_npy_header(file_.bytes(), path)) {}

int64_t NpyFile::size() const {
  return element_count(header_.shape);
}

template <class T>
std::vector<T> NpyFile::read() const {
  std::vector<T> values(static_cast<std::size_t>(size()));
  const std::byte* data = file_.bytes().data() + header_.data_offset;
  if (header_.fortran_order && header_.shape.size() > 1 && !values.empty()) {
    read_fortran(header_, data, values.data(), size());
  } else {
    convert(header_.dtype, data, 1, size(), values.data());
  }
  return values;
}

template <class T>
const T* NpyFile::mapped() const {
  const std::byte* data = file_.bytes().data() + header_.data_offset;
  const bool in_order = !header_.fortran_order || header_.shape.size() < 2;
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0;
  if (header_.dtype != dtype_of<T>() || !in_order || !aligned) return nullptr;
  return reinterpret_cast<const T*>(data);
}

std::string npy_header(DType dtype, const std::vector<int64_t>& shape) {
  std::string extents;
  for (int64_t extent : shape) extents += fmt::format("{}, ", extent);
  if (shape.size() > 1) extents.resize(extents.size() - 2);
  if (shape.size() == 1) extents.pop_back();
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 descr_of(dtype), extents);
  // Version 1 has two bytes for the length, version 2 four; only very many dimensions need them.
  const std::size_t prefix = text.size() + 1 + 10 < 65536 ? 10 : 12;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';
  std::string header(kMagic);
  header += static_cast<char>(prefix == 10 ? 1 : 2);
  header += '\0';
  for (std::size_t b = 0; b < prefix - 8; ++b) {
    header += static_cast<char>(text.size() >> (8 * b) & 0xFF);
  }
  return header + text;
}

template <class T>
void write_npy(const std::string& path, const std::vector<int64_t>& shape, const T* data) {
  AtomicFile file(path);
  file.write(npy_header(dtype_of<T>(), shape));
  file.write(data, static_cast<std::size_t>(element_count(shape)) * sizeof(T));
  file.commit();
}

#define CFAA_INSTANTIATE(T)                         \
  template std::vector<T> NpyFile::read<T>() const; \
  template const T* NpyFile::mapped<T>() const;     \
  template void write_npy<T>(const std::string&, const std::vector<int64_t>&, const T*);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
CFAA_INSTANTIATE(int32_t)
CFAA_INSTANTIATE(int64_t)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
