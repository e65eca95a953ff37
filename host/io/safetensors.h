#pragma once

// Hugging Face's .safetensors files: named arrays behind a JSON header. Reading maps the file; any
// type may be present, those of DType can be read.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/core/dtype.h"
#include "host/io/mapped_file.h"

namespace cfaa {

struct SafetensorsEntry {
  std::string type;  // as in the file: "F32", "BF16", "I64", "U8", ...
  std::vector<int64_t> shape;
  std::size_t begin = 0, end = 0;  // bytes, from the start of the file
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// `bytes` is the whole file, `name` what to call it in messages. Throws Error unless the header is
// well formed and the arrays fill the file exactly, without holes or overlaps.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> bytes,
                                           const std::string& name);

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const SafetensorsHeader& header() const { return header_; }
  bool contains(const std::string& name) const { return header_.tensors.count(name) > 0; }

  // The entry; Error naming the file and the nearest name where there is none.
  const SafetensorsEntry& entry(const std::string& name) const;

  // The elements as T (float, double, int32_t, int64_t), converted.
  template <class T>
  std::vector<T> read(const std::string& name) const;

  // The element type of an entry; Error where it is none of DType.
  DType dtype(const std::string& name) const;

  // The mapped bytes of an entry.
  std::span<const std::byte> bytes(const std::string& name) const;

  void forget_pages() const { file_.forget_pages(); }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

// Collects arrays that the caller keeps alive, and writes them atomically. Whoever has them piece
// by piece adds them without data, and writes header() and then the arrays in that order.
class SafetensorsWriter {
 public:
  template <class T>
  void add(const std::string& name, const std::vector<int64_t>& shape, const T* data);
  // Elements of any type, as they are stored.
  void add(const std::string& name, DType type, const std::vector<int64_t>& shape,
           const void* data);
  void add_metadata(const std::string& key, const std::string& value) { metadata_[key] = value; }
  std::string header() const;
  void write(const std::string& path) const;

 private:
  struct Item {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    const void* data;
    std::size_t bytes;
  };
  std::vector<Item> items_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace cfaa
