#pragma once

// A prepared directory, as `train`, `evaluate` and `embed` see it. The index of a user or an item
// is its line in users.tsv / items.tsv and the row of every matrix of the project.
//
//   const Dataset data = load_dataset("data");
//   data.target.train.user[i], data.target.users[u] ...
//
// Loading goes through the binary index of each domain, which carries the hash of the text files
// it was made from; a stale, damaged or absent index is made again (and written, where the
// directory can be written to).

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "host/data/interactions.h"

namespace cfaa {

// Raw ids in ascending order of their bytes.
class IdList {
 public:
  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  std::string_view operator[](int64_t i) const {
    return std::string_view(bytes_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  // The index of a raw id, or -1.
  int64_t find(std::string_view id) const;
  void append(std::string_view id);

 private:
  friend struct DomainIndex;
  std::string bytes_;
  std::vector<uint64_t> offsets_ = {0};
};

// The label of a row whose label was dropped (`prepare --target-labels`): nobody learns from the
// row, but it is masked in every ranking, and its review may be read.
inline constexpr float kNoLabel = -1;

// The rows of one .inter file, in its order: by (user, item).
struct SplitRows {
  std::vector<int32_t> user, item;
  std::vector<float> rating;
  std::vector<float> label;  // 1: positive, 0: not, kNoLabel: dropped
  std::vector<double> time;  // seconds since 1970, before it negative; 0: absent

  int64_t size() const { return static_cast<int64_t>(user.size()); }
  bool has_label(std::size_t row) const { return label[row] >= 0; }
};

struct Domain {
  std::string name;  // "source" or "target"
  std::filesystem::path path;
  IdList users, items;
  SplitRows train, valid, test;
  uint64_t hash = 0;  // of the text files: ids, splits and their rows

  const SplitRows& rows(Split split) const {
    return split == Split::train ? train : split == Split::valid ? valid : test;
  }
  std::filesystem::path text_path(Split split) const;
};

struct Dataset {
  Domain source, target;
  std::string hash;  // of both domains' text files and training texts: names the data in run.json
};

// Error where a file is absent or does not read, with its line.
Dataset load_dataset(const std::filesystem::path& directory);
Domain load_domain(const std::filesystem::path& directory, const std::string& name);

// Whether a prepared directory may hold this file, named from its top: what prepare and embed
// write, when they are done, under way or were interrupted.
bool is_prepared_file(const std::filesystem::path& file);

const char* split_name(Split split);  // "train", "valid", "test"
std::filesystem::path inter_path(const std::filesystem::path& directory, const std::string& name,
                                 Split split);

}  // namespace cfaa
