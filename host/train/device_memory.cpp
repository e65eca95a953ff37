#include "host/train/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "host/core/error.h"

namespace cfaa {
namespace {

std::string megabytes(std::size_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

template <class T>
std::vector<MemoryPart> memory_parts(const ModelOptions& model, const BatchShape& shape,
                                     const MeasuredParts& measured) {
  int64_t elements = 0;
  for (std::size_t d = 0; d < 2; ++d) {
    if (!shape.used[d]) continue;
    for (std::size_t s = 0; s < 2; ++s) {
      elements += shape.id_rows[d][s] * model.id_columns() +
                  shape.history_rows[d][s] * model.history_columns();
    }
  }
  const std::size_t tables = static_cast<std::size_t>(elements) * sizeof(T);
  const std::string columns = "model.id_dim, model.history_dim or model.dim";
  return {{"tables", tables, columns},
          {"moments of the tables", 2 * tables, columns},
          {"layers with gradients and moments", measured.layers, "model.layers or model.dim"},
          {"scratch of a step", measured.scratch, "train.batch_size or model.dim"},
          {"batch and the next", 2 * BatchLayout<T>(shape).bytes(),
           "model.history.max or train.batch_size"},
          {"review vectors", measured.reviews, ""}};  // the host's where there is no room
}

std::vector<std::string> memory_table(const std::vector<MemoryPart>& parts,
                                      const DeviceRoom& room) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& name, std::size_t bytes) {
    lines.push_back(fmt::format("  {:<36}{:>12}", name, megabytes(bytes)));
  };
  lines.push_back(fmt::format("device memory, {} in all", megabytes(room.total)));
  std::size_t ours = 0;
  for (const MemoryPart& part : parts) {
    add(part.name, part.bytes);
    ours += part.bytes;
  }
  const std::size_t used = room.total - room.free;
  add("solvers, CUDA and other programs", used > ours ? used - ours : 0);
  add("free", room.free);
  return lines;
}

std::string explain_shortage(const std::string& shortage, const std::vector<MemoryPart>& parts) {
  CFAA_ASSERT(!parts.empty());
  const auto largest =
      std::max_element(parts.begin(), parts.end(), [](const MemoryPart& a, const MemoryPart& b) {
        const auto counted = [](const MemoryPart& part) {
          return part.smaller_by.empty() ? 0 : part.bytes;
        };
        return counted(a) < counted(b);
      });
  return fmt::format("{}; the largest part is the {} with {}: lower {}", shortage, largest->name,
                     megabytes(largest->bytes), largest->smaller_by);
}

template std::vector<MemoryPart> memory_parts<float>(const ModelOptions&, const BatchShape&,
                                                     const MeasuredParts&);
template std::vector<MemoryPart> memory_parts<double>(const ModelOptions&, const BatchShape&,
                                                      const MeasuredParts&);

}  // namespace cfaa
