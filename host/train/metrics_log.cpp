#include "host/train/metrics_log.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// TensorBoard's record: length, its masked CRC-32C, the bytes, theirs.
uint32_t masked_crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0u);
      made[i] = value;
    }
    return made;
  }();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

void write_record(std::ofstream& out, const std::string& record) {
  const std::string length = raw<uint64_t>(record.size());
  out << length << raw(masked_crc32c(length)) << record << raw(masked_crc32c(record));
}

// Protocol buffers, as far as an Event needs them.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string field_bytes(int number, const std::string& content) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}
std::string field_varint(int number, uint64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(value);
}
std::string field_float(int number, float value) {
  return varint(static_cast<uint64_t>(number) << 3 | 5) + raw(value);
}
std::string field_double(int number, double value) {
  return varint(static_cast<uint64_t>(number) << 3 | 1) + raw(value);
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<std::string> kept_lines(const fs::path& path, int64_t step) {
  std::vector<std::string> kept;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const json fields = parse_json(line);
    if (!fields.is_object()) break;
    const json at = fields.value("step", json(0));
    if (!at.is_number_integer() || at.get<int64_t>() < 0 || at.get<int64_t>() > step) break;
    kept.push_back(line);
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const fs::path& lines, const fs::path& events, int64_t step, Taker taker)
    : taker_(std::move(taker)) {
  const std::vector<std::string> kept = kept_lines(lines, step);
  std::string text;
  for (const std::string& line : kept) text += line + "\n";
  write_file(lines.string(), text);
  lines_.open(lines, std::ios::app);

  fs::create_directories(events);
  events_.open(events / "events.out.tfevents.0000000000.cfaa_gpu", std::ios::binary);
  if (!lines_ || !events_) {
    throw Error(lines.string() + ": the log cannot be written; check the folder's permissions");
  }
  write_record(events_, field_double(1, now()) + field_bytes(3, "brain.Event:2"));
  for (const std::string& line : kept) add_event(json::parse(line));
}

void MetricsLog::add_event(const json& fields) {
  std::string summary;
  for (const auto& [key, value] : fields.items()) {
    if (key == "step" || !value.is_number()) continue;
    summary += field_bytes(1, field_bytes(1, key) + field_float(2, value.get<float>()));
  }
  write_record(events_, field_double(1, now()) +
                            field_varint(2, fields.value("step", uint64_t{0})) +
                            field_bytes(5, summary));
  events_.flush();
}

void MetricsLog::add(const json& fields) {
  const std::string line = fields.dump();
  lines_ << line << '\n' << std::flush;
  if (!lines_) throw Error("metrics.jsonl cannot be written; is the disk full?");
  add_event(fields);
  if (taker_) taker_(line);
}

}  // namespace cfaa
