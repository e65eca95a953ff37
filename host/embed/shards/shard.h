#pragma once

// Embedding in shards: machines that know nothing of each other each encode a part of the texts,
// and a join puts the parts together. Joined on the CPU, the vectors have the bytes that one run
// over all texts would have written.
//
//   v.shards/00017-of-01000.npy         the rows of shard 17 of 1000 (they count from 0)
//   v.shards/00017-of-01000.ids.tsv     beside it, as beside v.npy: rows and documents count from
//   v.shards/00017-of-01000.empty.txt   the shard's first
//   v.shards/00017-of-01000.json        what it was made from and with; written last
//
// Of a prepared domain the same in embed.shards/, with .sums.npy, .counts.npy and so on.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "host/embed/pipeline.h"
#include "host/io/mapped_file.h"

namespace cfaa {

struct Shard {
  int64_t index = 0, count = 1;  // index in [0, count)

  // Where its part of `all` bytes begins and ends: [from(all), to(all)). Those of all shards lie
  // one behind the other.
  uint64_t from(uint64_t all) const { return border(index, all); }
  uint64_t to(uint64_t all) const { return border(index + 1, all); }

  std::string text() const;  // "17/1000"
  std::string name() const;  // "00017-of-01000"

 private:
  uint64_t border(int64_t at, uint64_t all) const;
};

// "17/1000". Error for anything else, with what to write.
Shard parse_shard(const std::string& text);

// A shard's .json.
struct ShardDescription {
  struct File {
    std::string end;  // of its name: ".npy"
    uint64_t bytes = 0;
    std::string xxh3_128;
  };

  Shard shard;
  Fields settings;     // what decides about bits; all but the shard's own must be equal to join
  uint64_t bytes = 0;  // of all texts together, as they lie on disk
  int64_t rows = 0, width = 0;
  EmbedCounts counts;
  std::vector<File> files;  // the others beside it; those without a byte are absent
};

// Describes the files of a run that is about to end. `ends`: what follows the shard's name in
// theirs, in the order of `files`.
ShardDescription describe_shard(const Shard& shard, const Fields& settings, uint64_t bytes,
                                const EmbedReport& report, const ResumableFiles& files,
                                const std::vector<std::string>& ends);
std::string to_text(const ShardDescription& description);

// Whether the shard is there, made with these settings, and nothing is left to do: then the report
// is filled in. Error where it was made with others.
bool shard_is_there(const std::filesystem::path& folder, const Shard& shard, const Fields& settings,
                    EmbedReport& report);

// All shards of a folder in order. Error that names those that are missing or interrupted, or one
// whose settings differ from the first one's; and where there are shards of two different counts.
std::vector<ShardDescription> read_shards(const std::filesystem::path& folder);

// Their rows and counts together.
EmbedReport total_of(const std::vector<ShardDescription>& shards);

// Lines whose first columns are numbers that count from the shard's first: adds to these, column by
// column, and appends the lines.
void add_to_numbers(std::string_view lines, const std::vector<int64_t>& columns, std::string& out);

// A file of a shard, mapped and compared with the description's size and hash. Error that says
// which shard to make again.
class ShardFile {
 public:
  ShardFile(const std::filesystem::path& folder, const ShardDescription& shard,
            const std::string& end);

  // Empty where the shard has no such file.
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
  }

 private:
  MappedFile file_;
};

}  // namespace cfaa
