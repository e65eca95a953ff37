#pragma once

// NumPy's .npy files, versions 1 and 2 (and 3, which differs in the header's encoding only).
// Reading maps the file; float16, float32, float64, int32 and int64, little-endian, C and Fortran
// order.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/core/dtype.h"
#include "host/core/view.h"
#include "host/io/mapped_file.h"

namespace cfaa {

struct NpyHeader {
  DType dtype;
  bool fortran_order;
  std::vector<int64_t> shape;
  std::size_t data_offset;  // in bytes, from the start of the file
};

// `bytes` is the whole file, `name` what to call it in messages. Throws Error for anything that is
// not a well-formed array of a known type that fills the file exactly.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& name);

class NpyFile {
 public:
  explicit NpyFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  DType dtype() const { return header_.dtype; }
  const std::vector<int64_t>& shape() const { return header_.shape; }
  int64_t size() const;

  // The elements in row-major order, converted. T: float, double, int32_t, int64_t.
  template <class T>
  std::vector<T> read() const;

  // The mapped elements themselves: nullptr unless the type is T, the order C and the data aligned.
  template <class T>
  const T* mapped() const;

  // The elements' bytes as they are in the file, of dtype() and in its order.
  std::span<const std::byte> bytes() const { return file_.bytes().subspan(header_.data_offset); }

  void forget_pages() const { file_.forget_pages(); }

 private:
  MappedFile file_;
  NpyHeader header_;
};

// The header of a C-order array, padded so that the data start at a multiple of 64 bytes.
std::string npy_header(DType dtype, const std::vector<int64_t>& shape);

// Row-major elements of T (float, double, int32_t or int64_t), written atomically.
template <class T>
void write_npy(const std::string& path, const std::vector<int64_t>& shape, const T* data);

}  // namespace cfaa
