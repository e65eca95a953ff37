#pragma once

// A file's bytes in order, decompressed on the way: plain, gzip (ISA-L; several members, zero
// padding after the last) or zstd (several frames), told apart by the first bytes and not by the
// name. Pipes, FIFOs and standard input ("-") work: nothing is read twice. Every failure is an
// Error that names the file and, in a damaged or truncated one, the byte. A file that swells to
// more than 200 times its size is refused once that is past 64 MiB.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cfaa {

class MappedInput;

enum class Compression { none, gzip, zstd };

// What was read of a file, for the record in prepare.json.
struct FileIdentity {
  std::string name;   // as given
  uint64_t size = 0;  // bytes on disk
  std::string xxh3_128;
  Compression compression = Compression::none;
};

// Bytes [begin, end) of a file.
struct ByteRange {
  uint64_t begin = 0, end = UINT64_MAX;
};

class InputStream {
 public:
  // An empty file is refused unless it may be one. `block_bytes`: how much of a compressed file is
  // read at a time. `range`: of a plain file that can be read from any place.
  explicit InputStream(const std::string& path, bool may_be_empty = false,
                       std::size_t block_bytes = std::size_t{1} << 20, ByteRange range = {});
  ~InputStream();
  InputStream(InputStream&&) noexcept;

  // Fills `out` and returns how many bytes came; fewer than `capacity` only at the end.
  std::size_t read(char* out, std::size_t capacity);

  Compression compression() const;
  uint64_t consumed() const;  // bytes of the file, or of the range, as they are on disk
  // Complete once read() has come to the end.
  FileIdentity identity() const;
  // A plain file's bytes in place, or null: of compressed files, pipes and standard input.
  std::shared_ptr<const MappedInput> map() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
