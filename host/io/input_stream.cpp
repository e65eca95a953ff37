#include "host/io/input_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "host/core/error.h"
#include "host/io/content_hash.h"
#include "host/io/mapped_input.h"

namespace cfaa {
namespace {

constexpr std::size_t kSniffed = 8;  // bytes that tell the kind of file

// Formats people may hand over that are not read here, by their first bytes.
const char* foreign_format(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("PK\x03\x04"sv)) return "a zip archive";
  if (head.starts_with("BZh"sv)) return "compressed with bzip2";
  if (head.starts_with("\xFD"
                       "7zXZ\0"sv)) {
    return "compressed with xz";
  }
  if (head.starts_with("PAR1"sv)) return "a Parquet file";
  if (head.starts_with("\xFF\xFE"sv) || head.starts_with("\xFE\xFF"sv)) return "UTF-16 text";
  return nullptr;
}

Compression detect(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("\x1F\x8B"sv)) return Compression::gzip;
  if (head.starts_with("\x28\xB5\x2F\xFD"sv)) return Compression::zstd;
  const bool skippable = head.size() >= 4 && (static_cast<uint8_t>(head[0]) & 0xF0) == 0x50 &&
                         head.substr(1, 3) == "\x2A\x4D\x18"sv;
  return skippable ? Compression::zstd : Compression::none;
}

}  // namespace

struct InputStream::State {
  std::string path;
  bool standard_input = false;
  int fd = -1;
  struct stat opened {};
  std::size_t block_bytes = 0;
  std::unique_ptr<char[]> block;
  std::size_t begin = 0, end = 0;  // unread bytes of block
  uint64_t consumed = 0;           // bytes of the file before block[begin]
  uint64_t left = UINT64_MAX;      // bytes of the range that were not read yet
  uint64_t produced = 0;           // decompressed bytes handed out
  bool file_ended = false;
  Compression compression = Compression::none;
  ContentHash hash;
  std::unique_ptr<inflate_state> gzip;
  bool inside_member = false;  // a gzip member or zstd frame is open
  bool ended = false;
  ZSTD_DStream* zstd = nullptr;

  ~State() {
    if (fd >= 0) ::close(fd);
    ZSTD_freeDStream(zstd);
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(fmt::format("{}: {}", path, reason));
  }

  // Reads until `wanted` bytes are there or the file ends.
  void fill(std::size_t wanted) {
    if (end - begin >= wanted || file_ended) return;
    std::memmove(block.get(), block.get() + begin, end - begin);
    end -= begin;
    begin = 0;
    while (end < wanted && !file_ended) {
      end += read_some(block.get() + end, block_bytes - end);
    }
  }

  void take(std::size_t count) {
    begin += count;
    consumed += count;
  }

  // Texts shrink to a third or a tenth. What shrinks to a two-hundredth is made to fill the memory.
  void refuse_bomb() const {
    constexpr uint64_t kHarmless = uint64_t{64} << 20, kMostRatio = 200;
    if (compression == Compression::none || produced <= kHarmless) return;
    if (produced / kMostRatio <= consumed) return;
    fail(
        fmt::format("its first {} bytes already hold {} MiB of text, more than {} times as much; "
                    "if that is meant, decompress it and give the plain file",
                    consumed, produced >> 20, kMostRatio));
  }

  // One read(2) into `to`, hashed on the way.
  std::size_t read_some(char* to, std::size_t room) {
    for (;;) {
      const ssize_t got = ::read(fd, to, std::min<uint64_t>(room, left));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
      if (got == 0) file_ended = true;
      left -= static_cast<uint64_t>(got);
      hash.add(to, static_cast<std::size_t>(got));
      return static_cast<std::size_t>(got);
    }
  }

  // Past the sniffed head, plain bytes go straight to the caller: a copy less.
  std::size_t read_plain(char* out, std::size_t capacity) {
    if (begin < end) {
      const std::size_t count = std::min(capacity, end - begin);
      std::memcpy(out, block.get() + begin, count);
      take(count);
      return count;
    }
    const std::size_t count = file_ended ? 0 : read_some(out, capacity);
    consumed += count;
    ended = count == 0;
    return count;
  }

  uint8_t next_byte() {
    fill(1);
    if (begin == end) {
      fail(
          fmt::format("ends at byte {} in the middle of its gzip data: it is truncated", consumed));
    }
    const auto byte = static_cast<uint8_t>(block[begin]);
    take(1);
    return byte;
  }

  // A member's header (RFC 1952). ISA-L's own reader loses a byte where a block ends before a name.
  void skip_header() {
    constexpr int kCrc = 2, kExtra = 4, kName = 8, kComment = 16, kReserved = 0xE0;
    uint8_t fixed[10];
    for (uint8_t& byte : fixed) byte = next_byte();
    const int flags = fixed[3];
    if (fixed[2] != 8 || (flags & kReserved) != 0) {
      fail(fmt::format("the gzip data is damaged at or before byte {}", consumed));
    }
    if (flags & kExtra) {
      int length = next_byte();
      for (length += 256 * next_byte(); length > 0; --length) next_byte();
    }
    for (const int text : {kName, kComment}) {
      while ((flags & text) != 0 && next_byte() != 0) {
      }
    }
    if (flags & kCrc) next_byte(), next_byte();
  }

  // Between members: more members, zero padding up to the end, or an error.
  bool start_member() {
    fill(2);
    if (end - begin >= 2 && block[begin] == '\x1F' && block[begin + 1] == '\x8B') {
      skip_header();
      isal_inflate_init(gzip.get());
      gzip->crc_flag = ISAL_GZIP_NO_HDR_VER;
      inside_member = true;
      return true;
    }
    while (begin < end) {
      if (block[begin] != 0) {
        fail(fmt::format("what follows the gzip data at byte {} is not gzip", consumed));
      }
      take(1);
      fill(1);
    }
    ended = true;
    return false;
  }

  std::size_t read_gzip(char* out, std::size_t capacity) {
    if (!inside_member && !start_member()) return 0;
    fill(1);
    if (begin == end && file_ended && gzip->block_state != ISAL_BLOCK_FINISH) {
      // ISA-L may hold bytes it has not yet handed out; only then is an ended file fine.
      gzip->avail_in = 0;
      gzip->next_out = reinterpret_cast<uint8_t*>(out);
      gzip->avail_out = static_cast<uint32_t>(capacity);
      const int status = isal_inflate(gzip.get());
      const std::size_t made = capacity - gzip->avail_out;
      if (made > 0 && status == ISAL_DECOMP_OK) return made;
      if (gzip->block_state != ISAL_BLOCK_FINISH) {
        fail(fmt::format("ends at byte {} in the middle of its gzip data: it is truncated",
                         consumed));
      }
      inside_member = false;
      return made;
    }
    gzip->next_in = reinterpret_cast<uint8_t*>(block.get() + begin);
    gzip->avail_in = static_cast<uint32_t>(end - begin);
    gzip->next_out = reinterpret_cast<uint8_t*>(out);
    gzip->avail_out = static_cast<uint32_t>(capacity);
    const int status = isal_inflate(gzip.get());
    take(end - begin - gzip->avail_in);
    if (status != ISAL_DECOMP_OK && status != ISAL_END_INPUT) {
      fail(fmt::format("the gzip data is damaged at or before byte {}{}", consumed,
                       status == ISAL_INCORRECT_CHECKSUM ? " (checksum)" : ""));
    }
    if (gzip->block_state == ISAL_BLOCK_FINISH) inside_member = false;
    return capacity - gzip->avail_out;
  }

  std::size_t read_zstd(char* out, std::size_t capacity) {
    fill(1);
    if (begin == end && !inside_member) {
      ended = true;
      return 0;
    }
    const bool no_input = begin == end;
    ZSTD_inBuffer in{block.get() + begin, end - begin, 0};
    ZSTD_outBuffer made{out, capacity, 0};
    const std::size_t status = ZSTD_decompressStream(zstd, &made, &in);
    take(in.pos);
    if (ZSTD_isError(status)) {
      fail(fmt::format("the zstd data is damaged at or before byte {}: {}", consumed,
                       ZSTD_getErrorName(status)));
    }
    inside_member = status != 0;
    if (no_input && inside_member && made.pos == 0) {
      fail(
          fmt::format("ends at byte {} in the middle of its zstd data: it is truncated", consumed));
    }
    return made.pos;
  }
};

InputStream::InputStream(const std::string& path, bool may_be_empty, std::size_t block_bytes,
                         ByteRange range)
    : state_(std::make_unique<State>()) {
  CFAA_ASSERT(block_bytes >= kSniffed);
  State& s = *state_;
  s.standard_input = path == "-";
  s.path = s.standard_input ? "standard input" : path;
  s.block_bytes = block_bytes;
  s.block = std::make_unique_for_overwrite<char[]>(block_bytes);
  s.fd = s.standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (s.fd < 0) s.fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
  if (::fstat(s.fd, &s.opened) == 0 && S_ISDIR(s.opened.st_mode)) {
    s.fail("is a directory; name the files in it");
  }
  s.left = range.end - range.begin;
  if (range.begin > 0) {  // in the middle of a plain file
    if (::lseek(s.fd, static_cast<off_t>(range.begin), SEEK_SET) < 0) {
      s.fail(fmt::format("cannot be read from byte {}: {}", range.begin, std::strerror(errno)));
    }
    return;
  }
  s.fill(kSniffed);
  const std::string_view head(s.block.get(), s.end);
  if (head.empty() && !may_be_empty) s.fail("is empty");
  if (const char* what = foreign_format(head)) {
    s.fail(fmt::format("is {}; give plain text, gzip or zstd of UTF-8 text", what));
  }
  s.compression = detect(head);
  if (s.compression == Compression::gzip) s.gzip = std::make_unique<inflate_state>();
  if (s.compression == Compression::zstd) {
    s.zstd = ZSTD_createDStream();  // refuses windows past 128 MiB: a few bytes could ask for 2 GiB
  }
}

InputStream::~InputStream() = default;
InputStream::InputStream(InputStream&&) noexcept = default;

std::size_t InputStream::read(char* out, std::size_t capacity) {
  State& s = *state_;
  // ISA-L counts in 32 bits, hence the cap on one call.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  std::size_t total = 0;
  while (total < capacity && !s.ended) {
    const std::size_t room = std::min(capacity - total, kMost);
    switch (s.compression) {
      case Compression::none:
        total += s.read_plain(out + total, room);
        break;
      case Compression::gzip:
        total += s.read_gzip(out + total, room);
        break;
      case Compression::zstd:
        total += s.read_zstd(out + total, room);
        break;
    }
  }
  s.produced += total;
  s.refuse_bomb();
  return total;
}

Compression InputStream::compression() const {
  return state_->compression;
}

std::shared_ptr<const MappedInput> InputStream::map() const {
  const State& s = *state_;
  // Standard input need not stand at its file's first byte.
  if (s.compression != Compression::none || s.standard_input) return nullptr;
  return MappedInput::map(s.fd, s.opened, s.path);
}

uint64_t InputStream::consumed() const {
  return state_->consumed;
}

FileIdentity InputStream::identity() const {
  return {state_->path, state_->consumed, state_->hash.text(), state_->compression};
}

}  // namespace cfaa
