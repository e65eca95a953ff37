#if CFAA_HAS_TENSORRT

#include "cuda/tensorrt/cache.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/io/atomic_file.h"

namespace cfaa::cuda {
namespace {

// Ahead of the payload. The payload starts at a multiple of 64 bytes.
struct Header {
  std::array<char, 8> magic;
  uint64_t identity_bytes;
  uint64_t payload_bytes;
  std::array<uint64_t, 2> checksum;  // of identity and payload
};
constexpr std::array<char, 8> kMagic = {'C', 'F', 'A', 'A', 'T', 'R', 'T', '1'};

std::size_t payload_offset(std::size_t identity_bytes) {
  return (sizeof(Header) + identity_bytes + 63) / 64 * 64;
}

std::array<uint64_t, 2> checksum_of(std::string_view identity, std::span<const std::byte> bytes) {
  const uint64_t seed = XXH3_64bits(identity.data(), identity.size());
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {hash.low64, hash.high64};
}

std::string short_hash(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace

std::string EngineIdentity::text() const {
  std::string lengths;
  for (const LengthBucket& bucket : buckets) {
    lengths += fmt::format(" {}x{}", bucket.rows, bucket.length);
  }
  return fmt::format("TensorRT {}\ngpu {}\nprecision {}\nbuckets{}\ncontent {}\n{}", tensorrt, gpu,
                     name_of(precision), lengths, content, graph);
}

EngineCache::EngineCache(std::string directory, EngineIdentity identity)
    : directory_(std::move(directory)), identity_(std::move(identity)), text_(identity_.text()) {}

std::string EngineCache::engine_path() const {
  return fmt::format("{}/{}-{}-{}.engine", directory_, short_hash(identity_.content),
                     name_of(identity_.precision), short_hash(text_));
}

std::string EngineCache::timings_identity() const {
  return "timings of TensorRT " + identity_.tensorrt + " on " + identity_.gpu;
}

std::string EngineCache::timings_path() const {
  return fmt::format("{}/timings-{}.cache", directory_, short_hash(timings_identity()));
}

std::optional<CachedBytes> EngineCache::load(const std::string& path,
                                             std::string_view identity) const {
  if (directory_.empty() || !std::filesystem::exists(path)) return std::nullopt;
  const auto ignore = [&](const std::string& why) {
    log_info(path + " " + why + "; it is made anew");
    return std::nullopt;
  };
  MappedFile file;
  try {
    file = MappedFile(path);
  } catch (const Error& error) {
    return ignore(std::string("cannot be read (") + error.what() + ")");
  }
  const std::span<const std::byte> bytes = file.bytes();
  Header header;
  if (bytes.size() < sizeof(header)) return ignore("is damaged (it is cut short)");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return ignore("is damaged (it does not begin as an engine)");
  if (header.identity_bytes > bytes.size() || header.payload_bytes > bytes.size() ||
      payload_offset(header.identity_bytes) + header.payload_bytes != bytes.size()) {
    return ignore("is damaged (it is cut short)");
  }
  const std::string_view found(reinterpret_cast<const char*>(bytes.data()) + sizeof(header),
                               header.identity_bytes);
  const std::span<const std::byte> payload = bytes.subspan(payload_offset(header.identity_bytes));
  if (checksum_of(found, payload) != header.checksum) {
    return ignore("is damaged (its checksum is another)");
  }
  if (found != identity) {
    return ignore("was made for another model, GPU or version of TensorRT");
  }
  return CachedBytes(std::move(file), payload);
}

bool EngineCache::keep(const std::string& path, std::string_view identity,
                       std::span<const std::byte> bytes) const {
  if (directory_.empty()) return false;
  try {
    std::filesystem::create_directories(directory_);
    const Header header{kMagic, identity.size(), bytes.size(), checksum_of(identity, bytes)};
    const std::string gap(payload_offset(identity.size()) - sizeof(header) - identity.size(), '\0');
    AtomicFile file(path);
    file.write(&header, sizeof(header));
    file.write(identity);
    file.write(gap);
    file.write(bytes.data(), bytes.size());
    file.commit();
    return true;
  } catch (const std::exception& error) {
    log_warning(path + " could not be kept, so the next run builds again: " + error.what());
    return false;
  }
}

std::optional<CachedBytes> EngineCache::load_engine() const {
  return load(engine_path(), text_);
}

std::string EngineCache::keep_engine(std::span<const std::byte> bytes) const {
  return keep(engine_path(), text_, bytes) ? engine_path() : "";
}

std::optional<CachedBytes> EngineCache::load_timings() const {
  return load(timings_path(), timings_identity());
}

void EngineCache::keep_timings(std::span<const std::byte> bytes) const {
  keep(timings_path(), timings_identity(), bytes);
}

}  // namespace cfaa::cuda

#endif
