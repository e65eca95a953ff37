#pragma once

// A Parquet file of reviews, one a row. Its columns are chosen as a table's are; bad rows are named
// by their number, from 1.

#include <cstdint>
#include <memory>
#include <string>

#include "host/data/prepare_options.h"
#include "host/data/readers/review_format.h"
#include "host/data/review.h"
#include "host/io/input_stream.h"
#include "host/io/mapped_input.h"
#include "host/io/parquet.h"

namespace cfaa {

class ParquetReviews {
 public:
  // Error where the build has no Arrow, the file does not read or a needed column cannot be told.
  ParquetReviews(const std::string& path, const ColumnChoice& choice,
                 const PrepareOptions& options);

  int64_t groups() const { return reader_.groups(); }
  uint64_t bytes(int64_t group) const { return reader_.bytes(group); }
  const std::string& columns() const { return chosen_.said; }

  // Hands the rows of a group to the sink and returns how many there are. Any thread.
  int64_t parse(int64_t group, RawReviewSink& sink) const;

  // The file as it was when it was opened.
  const std::shared_ptr<const MappedInput>& file() const { return file_; }
  FileIdentity identity() const;

 private:
  std::shared_ptr<const MappedInput> file_;
  std::string path_;
  ParquetReader reader_;
  ChosenColumns chosen_;
  InvalidUtf8 invalid_;
  double time_scale_ = 1;
};

}  // namespace cfaa
