#include "host/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "host/core/error.h"
#include "host/core/options.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
// Far above what models have. The header's JSON takes some thirty times its bytes in memory.
constexpr std::size_t kLargestHeader = std::size_t{32} << 20;
constexpr std::size_t kMostTensors = 100'000;

std::optional<DType> known_type(const std::string& type) {
  if (type == "F16") return DType::f16;
  if (type == "BF16") return DType::bf16;
  if (type == "F32") return DType::f32;
  if (type == "F64") return DType::f64;
  if (type == "I32") return DType::i32;
  if (type == "I64") return DType::i64;
  return std::nullopt;
}

std::string type_name(DType type) {
  switch (type) {
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
  }
  return "?";
}

std::size_t type_bytes(const std::string& type) {
  if (const auto known = known_type(type)) return size_of(*known);
  if (type == "BOOL" || type == "U8" || type == "I8" || type.starts_with("F8")) return 1;
  if (type == "I16" || type == "U16") return 2;
  if (type == "U32") return 4;
  if (type == "U64") return 8;
  return 0;
}

// The members of the outermost object of a JSON text, repeated names counted again.
std::size_t count_members(std::string_view text) {
  std::size_t depth = 0, members = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\';
      in_string = c != '"';
    } else {
      in_string = c == '"';
      depth += c == '{' || c == '[';
      depth -= (c == '}' || c == ']') && depth > 0;
      members += c == ':' && depth == 1;
    }
  }
  return members;
}

json parse_header_json(std::string_view text, const std::string& name) {
  const std::size_t members = count_members(text);
  if (members > kMostTensors) {
    throw Error(fmt::format("{}: its header names {} tensors; at most {} are read", name, members,
                            kMostTensors));
  }
  json header = parse_json(text);
  if (!header.is_object()) {
    throw Error(name + ": its header is not a JSON object of tensors; copy or save the file again");
  }
  // A repeated name would silently hide a tensor.
  if (header.size() != members) {
    throw Error(name + ": its header names a tensor twice; save the file again");
  }
  return header;
}

SafetensorsEntry parse_entry(const json& value, const std::string& tensor, std::size_t data_start,
                             std::size_t data_bytes, const std::string& name) {
  const auto fail = [&](const std::string& what) {
    throw Error(fmt::format("{}: tensor '{}' {}; copy or save the file again", name, tensor, what));
  };
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets") || !value["dtype"].is_string() ||
      !value["shape"].is_array() || !value["data_offsets"].is_array() ||
      value["data_offsets"].size() != 2) {
    fail("lacks 'dtype', 'shape' or 'data_offsets'");
  }
  SafetensorsEntry entry;
  entry.type = value["dtype"].get<std::string>();
  std::size_t bytes = type_bytes(entry.type);
  if (bytes == 0) fail("has the unknown type '" + entry.type + "'");
  for (const json& extent : value["shape"]) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > uint64_t{INT64_MAX}) {
      fail("has a shape that is not made of whole numbers");
    }
    entry.shape.push_back(extent.get<int64_t>());
    if (__builtin_mul_overflow(bytes, extent.get<std::size_t>(), &bytes)) {
      fail("has a shape that no memory can hold");
    }
  }
  const json& offsets = value["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    fail("has offsets that are not whole numbers");
  }
  const std::size_t begin = offsets[0].get<std::size_t>(), end = offsets[1].get<std::size_t>();
  if (begin > end || end > data_bytes) {
    fail(fmt::format("lies at bytes {} to {} of {} bytes of data: the file is cut off or damaged",
                     begin, end, data_bytes));
  }
  if (end - begin != bytes) {
    fail(fmt::format("has {} bytes where its shape and type need {}", end - begin, bytes));
  }
  entry.begin = data_start + begin;
  entry.end = data_start + end;
  return entry;
}

// The format allows no holes: every byte of the data belongs to one tensor.
void check_coverage(const SafetensorsHeader& header, std::size_t data_start, std::size_t file_bytes,
                    const std::string& name) {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (const auto& [_, entry] : header.tensors) parts.emplace_back(entry.begin, entry.end);
  std::sort(parts.begin(), parts.end());
  std::size_t at = data_start;
  for (const auto& [begin, end] : parts) {
    if (begin != at) {
      throw Error(name + ": its tensors leave holes or overlap; copy or save the file again");
    }
    at = end;
  }
  if (at != file_bytes) {
    throw Error(fmt::format("{}: has {} bytes that belong to no tensor; copy or save it again",
                            name, file_bytes - at));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> bytes,
                                           const std::string& name) {
  if (bytes.size() < kLengthBytes) {
    throw Error(name + ": is too short for a .safetensors file; copy or save it again");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes) {
    throw Error(name + ": is not a .safetensors file, or is cut off inside its header");
  }
  if (length > kLargestHeader) {
    throw Error(fmt::format("{}: has a header of {} MiB; one of more than {} MiB is not read", name,
                            length >> 20, kLargestHeader >> 20));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  const std::size_t data_start = kLengthBytes + length;

  SafetensorsHeader header;
  const json entries = parse_header_json(text, name);
  for (const auto& [key, value] : entries.items()) {
    if (key != "__metadata__") {
      header.tensors[key] = parse_entry(value, key, data_start, bytes.size() - data_start, name);
      continue;
    }
    if (!value.is_object()) throw Error(name + ": its __metadata__ is not an object of texts");
    for (const auto& [item, content] : value.items()) {
      if (!content.is_string()) throw Error(name + ": its __metadata__ is not an object of texts");
      header.metadata[item] = content.get<std::string>();
    }
  }
  check_coverage(header, data_start, bytes.size(), name);
  return header;
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(path), header_(parse_safetensors_header(file_.bytes(), path)) {}

const SafetensorsEntry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = header_.tensors.find(name);
  if (found != header_.tensors.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [key, _] : header_.tensors) known.push_back(key);
  const std::string near = nearest_name(name, known);
  throw Error(fmt::format("{}: has no tensor '{}'{}", path(), name,
                          near.empty() ? "" : fmt::format("; the nearest is '{}'", near)));
}

DType SafetensorsFile::dtype(const std::string& name) const {
  const SafetensorsEntry& found = entry(name);
  if (const auto type = known_type(found.type)) return *type;
  throw Error(fmt::format("{}: tensor '{}' is of type {}, which is not read here; save it as F32",
                          path(), name, found.type));
}

std::span<const std::byte> SafetensorsFile::bytes(const std::string& name) const {
  const SafetensorsEntry& found = entry(name);
  return file_.bytes().subspan(found.begin, found.end - found.begin);
}

template <class T>
std::vector<T> SafetensorsFile::read(const std::string& name) const {
  const DType type = dtype(name);
  const std::span<const std::byte> data = bytes(name);
  std::vector<T> values(data.size() / size_of(type));
  convert(type, data.data(), 1, static_cast<int64_t>(values.size()), values.data());
  return values;
}

template <class T>
void SafetensorsWriter::add(const std::string& name, const std::vector<int64_t>& shape,
                            const T* data) {
  add(name, dtype_of<T>(), shape, data);
}

void SafetensorsWriter::add(const std::string& name, DType type, const std::vector<int64_t>& shape,
                            const void* data) {
  std::size_t bytes = size_of(type);
  for (int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
  items_.push_back({name, type, shape, data, bytes});
}

std::string SafetensorsWriter::header() const {
  json header = json::object();
  if (!metadata_.empty()) header["__metadata__"] = metadata_;
  std::size_t at = 0;
  for (const Item& item : items_) {
    header[item.name] = {{"dtype", type_name(item.dtype)},
                         {"shape", item.shape},
                         {"data_offsets", {at, at + item.bytes}}};
    at += item.bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the data start aligned to 8 bytes
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

void SafetensorsWriter::write(const std::string& path) const {
  AtomicFile file(path);
  file.write(header());
  for (const Item& item : items_) file.write(item.data, item.bytes);
  file.commit();
}

#define CFAA_INSTANTIATE(T)                                                                \
  template std::vector<T> SafetensorsFile::read<T>(const std::string&) const;              \
  template void SafetensorsWriter::add<T>(const std::string&, const std::vector<int64_t>&, \
                                          const T*);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
CFAA_INSTANTIATE(int32_t)
CFAA_INSTANTIATE(int64_t)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
