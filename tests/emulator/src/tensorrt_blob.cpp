// Engines as bytes.

#include <cstring>
#include <type_traits>

#include "settings.h"
#include "tensorrt_graph.h"

namespace emulator::tensorrt {
namespace {

struct Head {
  char magic[8];
  std::int32_t version;
  char architecture[12];
  std::uint64_t size;
  std::uint64_t checksum;
};
constexpr char magic[8] = {'e', 'm', 'u', 'l', 'a', 't', 'r', 't'};

// Writes or reads a graph, field by field, by the same code.
class Writer {
 public:
  std::vector<unsigned char> bytes;

  void raw(const void* from, std::size_t size) {
    const auto* first = static_cast<const unsigned char*>(from);
    bytes.insert(bytes.end(), first, first + size);
  }
};

class Reader {
 public:
  explicit Reader(std::span<const unsigned char> from) : from_(from) {}

  void raw(void* to, std::size_t size) {  // the checksum holds, so the bytes are all there
    std::memcpy(to, from_.data(), size);
    from_ = from_.subspan(size);
  }

 private:
  std::span<const unsigned char> from_;
};

template <class T>
void pass(Writer& archive, T& value) requires(std::is_trivially_copyable_v<T>) {
  archive.raw(&value, sizeof(value));
}
template <class T>
void pass(Reader& archive, T& value) requires(std::is_trivially_copyable_v<T>) {
  archive.raw(&value, sizeof(value));
}

template <class Archive, class Sequence>
void pass_size(Archive& archive, Sequence& sequence) {
  std::uint64_t size = sequence.size();
  pass(archive, size);
  sequence.resize(size);
}

template <class Archive>
void pass(Archive& archive, std::string& text) {
  pass_size(archive, text);
  archive.raw(text.data(), text.size());
}

template <class Archive, class T>
void pass(Archive& archive, std::vector<T>& items) {
  pass_size(archive, items);
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (!items.empty()) archive.raw(items.data(), items.size() * sizeof(T));
  } else {
    for (T& item : items) pass(archive, item);
  }
}

template <class Archive>
void pass(Archive& archive, Tensor& tensor) {
  pass(archive, tensor.name);
  pass(archive, tensor.type);
  pass(archive, tensor.dims);
  pass(archive, tensor.dimension_names);
}

template <class Archive>
void pass(Archive& archive, Layer& layer) {
  pass(archive, layer.kind);
  pass(archive, layer.name);
  pass(archive, layer.inputs);
  pass(archive, layer.output);
  pass(archive, layer.operation);
  pass(archive, layer.flag);
  pass(archive, layer.epsilon);
  pass(archive, layer.transposes);
  pass(archive, layer.permutations);
  pass(archive, layer.reshape);
  pass(archive, layer.weights);
}

template <class Archive>
void pass(Archive& archive, Profile& profile) {
  for (auto& shapes : profile.shapes) {
    std::vector<std::string> names;
    for (const auto& [name, dims] : shapes) names.push_back(name);
    pass(archive, names);
    for (const std::string& name : names) pass(archive, shapes[name]);
  }
}

template <class Archive>
void pass(Archive& archive, Graph& graph) {
  pass(archive, graph.tensors);
  pass(archive, graph.layers);
  pass(archive, graph.inputs);
  pass(archive, graph.outputs);
  pass(archive, graph.profiles);
  pass(archive, graph.tf32);
}

}  // namespace

std::uint64_t checksum(const void* bytes, std::size_t size) {  // FNV-1a, eight bytes at a time
  const auto* at = static_cast<const unsigned char*>(bytes);
  std::uint64_t hash = 14695981039346656037u;
  for (; size >= 8; at += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * 1099511628211u;
    hash ^= hash >> 32;
  }
  for (; size > 0; ++at, --size) hash = (hash ^ *at) * 1099511628211u;
  return hash;
}

std::vector<unsigned char> with_head(const std::vector<unsigned char>& body) {
  Head head{};
  std::memcpy(head.magic, magic, sizeof(magic));
  head.version = getInferLibVersion();
  std::strncpy(head.architecture, settings().limits.name, sizeof(head.architecture) - 1);
  head.size = body.size();
  head.checksum = checksum(body.data(), body.size());
  Writer writer;
  writer.raw(&head, sizeof(head));
  writer.raw(body.data(), body.size());
  return std::move(writer.bytes);
}

std::string check_head(const void* bytes, std::size_t size, std::span<const unsigned char>& body) {
  Head head;
  if (size < sizeof(head)) return "Serialization assertion failed: the data is too short";
  std::memcpy(&head, bytes, sizeof(head));
  if (std::memcmp(head.magic, magic, sizeof(magic)) != 0) {
    return "Serialization assertion failed: magic tag does not match";
  }
  if (head.version != getInferLibVersion()) {
    return "Version tag does not match: " + std::to_string(head.version) + " is not " +
           std::to_string(getInferLibVersion());
  }
  if (std::strcmp(head.architecture, settings().limits.name) != 0) {
    return std::string("the plan was made on ") + head.architecture + " and this is " +
           settings().limits.name;
  }
  body = {static_cast<const unsigned char*>(bytes) + sizeof(head), size - sizeof(head)};
  if (head.size != body.size() || head.checksum != checksum(body.data(), body.size())) {
    return "Serialization assertion failed: the data is damaged";
  }
  return "";
}

std::vector<unsigned char> write_engine(const Graph& graph) {
  Writer writer;
  Graph copy = graph;
  pass(writer, copy);
  return with_head(writer.bytes);
}

std::shared_ptr<const Graph> read_engine(const void* bytes, std::size_t size, std::string& why) {
  std::span<const unsigned char> body;
  why = check_head(bytes, size, body);
  if (!why.empty()) return nullptr;
  auto graph = std::make_shared<Graph>();
  Reader reader(body);
  pass(reader, *graph);
  return graph;
}

}  // namespace emulator::tensorrt
