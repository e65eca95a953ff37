#pragma once

// Engines on disk. Building one takes minutes; loading it a second. A file is named by what its
// engine depends on, holds that as text again, and a checksum:
//
//   <content>-<precision>-<identity>.engine   content: of weights and configuration; identity: a
//                                             hash of all the rest too
//   timings-<identity>.cache                  what TensorRT measured on this GPU: the next build,
//                                             of whichever model, is faster
//
// A file that is damaged, or is another engine's under this name, counts as missing and the log
// says so. A file that cannot be written costs the next run a build, and no more.

#if CFAA_HAS_TENSORRT

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/encoder/network.h"
#include "host/io/mapped_file.h"

namespace cfaa::cuda {

// Batches of one padded length run with one number of rows.
struct LengthBucket {
  int64_t length = 0;
  int64_t rows = 0;
};

// All that an engine depends on.
struct EngineIdentity {
  std::string content;   // of weights and configuration: NetworkOptions::content_hash
  std::string graph;     // the operations and their parameters, as text
  std::string tensorrt;  // version
  std::string gpu;       // name and compute capability: "NVIDIA A100-SXM4-80GB sm_80"
  NetworkPrecision precision = NetworkPrecision::f32;
  std::vector<LengthBucket> buckets;

  std::string text() const;
};

// A file of the cache: the mapping and what it holds.
class CachedBytes {
 public:
  CachedBytes(MappedFile file, std::span<const std::byte> payload)
      : file_(std::move(file)), payload_(payload) {}
  std::span<const std::byte> payload() const { return payload_; }
  const std::string& path() const { return file_.path(); }

 private:
  MappedFile file_;
  std::span<const std::byte> payload_;
};

class EngineCache {
 public:
  // "": nothing is found and nothing is kept.
  EngineCache(std::string directory, EngineIdentity identity);

  std::optional<CachedBytes> load_engine() const;
  // The path, or "" where it could not be kept.
  std::string keep_engine(std::span<const std::byte> bytes) const;

  std::optional<CachedBytes> load_timings() const;
  void keep_timings(std::span<const std::byte> bytes) const;

 private:
  std::string engine_path() const;
  std::string timings_path() const;
  std::string timings_identity() const;
  std::optional<CachedBytes> load(const std::string& path, std::string_view identity) const;
  bool keep(const std::string& path, std::string_view identity,
            std::span<const std::byte> bytes) const;

  std::string directory_;
  EngineIdentity identity_;
  std::string text_;
};

}  // namespace cfaa::cuda

#endif
