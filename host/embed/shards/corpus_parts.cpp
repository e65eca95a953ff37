#include "host/embed/shards/corpus_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/io/mapped_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

// Where the first line begins at `at` or behind it.
uint64_t line_from(const MappedFile& file, uint64_t at) {
  const auto bytes = file.bytes();
  if (at == 0 || at >= bytes.size()) return std::min<uint64_t>(at, bytes.size());
  const auto* end = static_cast<const std::byte*>(
      std::memchr(bytes.data() + at - 1, '\n', bytes.size() - at + 1));
  return end == nullptr ? bytes.size() : static_cast<uint64_t>(end - bytes.data()) + 1;
}

}  // namespace

LineFormat format_of(const std::string& path, LineFormat format) {
  return format == LineFormat::kDetect ? format_by_name(path) : format;
}

std::vector<CorpusPart> whole_parts(const std::vector<std::string>& inputs, LineFormat format) {
  std::vector<CorpusPart> parts;
  for (const std::string& path : inputs) parts.push_back({path, {}, format_of(path, format)});
  return parts;
}

uint64_t bytes_of(const std::vector<std::string>& inputs) {
  uint64_t bytes = 0;
  for (const std::string& path : inputs) {
    if (path == "-" || !fs::is_regular_file(path)) {
      throw Error(fmt::format("{}: is no file that can be read in parts; --shard needs one",
                              path == "-" ? "standard input" : path));
    }
    bytes += fs::file_size(path);
  }
  return bytes;
}

std::vector<CorpusPart> shard_parts(const std::vector<std::string>& inputs,
                                    const TextLinesOptions& lines, const Shard& shard) {
  const uint64_t all = bytes_of(inputs), from = shard.from(all), to = shard.to(all);
  std::vector<CorpusPart> parts;
  uint64_t first = 0;  // byte of the file
  for (const std::string& path : inputs) {
    const uint64_t begin = first, end = first += fs::file_size(path);
    if (end <= from || begin >= to) continue;
    TextLinesOptions options = lines;
    options.format = format_of(path, lines.format);
    TextLines head(path, options);
    std::string_view text;
    head.next(text);
    const bool in_lines = head.format() == LineFormat::kPlain || head.format() == LineFormat::kJson;
    if (head.identity().compression == Compression::none && in_lines) {
      const MappedFile file(path);
      const ByteRange range{line_from(file, from > begin ? from - begin : 0),
                            line_from(file, std::min(to, end) - begin)};
      if (range.begin < range.end) parts.push_back({path, range, head.format()});
      continue;
    }
    if (shard.count > 1 && inputs.size() == 1) {
      log_info(fmt::format("{}: cannot be cut ({}), so shard 0/{} has all of it", path,
                           in_lines ? "it is compressed" : "a record may hold line ends",
                           shard.count));
    }
    if (begin >= from) parts.push_back({path, {}, options.format});
  }
  return parts;
}

}  // namespace cfaa
