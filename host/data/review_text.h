#pragma once

// The review texts of a split, in the order of its .inter file: `NAME.train.text`. A header, the
// offset of every text, the texts (UTF-8) one after the other. docs/data_format.md has the bytes.
// The file is mapped: texts in order stream from disk, any text is one look-up away.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "host/io/mapped_file.h"
#include "host/io/output_file.h"

namespace cfaa {

struct ReviewTextHeader {
  char magic[8];      // "CFAATXT1"
  uint64_t count;     // texts
  uint64_t bytes;     // of all texts
  uint64_t checksum;  // XXH3-64 of what follows the header
};
static_assert(sizeof(ReviewTextHeader) == 32);

class ReviewTextFile {
 public:
  // Throws Error where the file is absent, truncated or not of this format. verify() also reads it
  // all and compares the checksum.
  explicit ReviewTextFile(const std::filesystem::path& path);

  int64_t count() const { return static_cast<int64_t>(header().count); }
  uint64_t bytes() const { return header().bytes; }
  uint64_t checksum() const { return header().checksum; }
  std::string_view text(int64_t i) const;
  void verify() const;

  // Of texts [first, last): their bytes, and XXH3-128 of their lengths and bytes.
  uint64_t bytes(int64_t first, int64_t last) const { return offsets()[last] - offsets()[first]; }
  std::string hash(int64_t first, int64_t last) const;
  // The first text that begins at byte `offset` of all texts or behind it; count() where none does.
  int64_t first_from(uint64_t offset) const;

 private:
  const ReviewTextHeader& header() const {
    return *reinterpret_cast<const ReviewTextHeader*>(file_.bytes().data());
  }
  const uint64_t* offsets() const {  // count + 1 of them, from the first text's first byte
    return reinterpret_cast<const uint64_t*>(file_.bytes().data() + sizeof(ReviewTextHeader));
  }

  MappedFile file_;
};

// Writes the whole of a new file but for closing it. text(i), i below `count`, is called twice, in
// order; its view need only live until the next call.
void write_review_text(OutputFile& file, std::size_t count,
                       const std::function<std::string_view(std::size_t)>& text);

}  // namespace cfaa
