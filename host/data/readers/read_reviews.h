#pragma once

// Reads a domain's review files on all threads: each takes the next chunk of whole records, parses
// it, interns the ids and keeps the text. The result does not depend on the number of threads, nor
// on the order of the files.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/core/parallel.h"
#include "host/data/interactions.h"
#include "host/data/prepare_options.h"
#include "host/data/readers/review_format.h"
#include "host/io/input_stream.h"

namespace cfaa {

// A line that was left out.
struct BadLine {
  std::string file;
  int64_t line = 0;  // from 1
  std::string reason;
};

struct FileReport {
  FileIdentity identity;
  std::string format, columns;
  int64_t lines = 0;
  int64_t interactions = 0;
  uint64_t bytes = 0;  // decompressed
};

struct ReadReport {
  std::vector<FileReport> files, title_files;
  std::vector<BadLine> bad;
  int64_t without_text = 0, without_time = 0;
};

// Whether the text of a review is kept; the answer may depend on user, item and rating only, so
// that it is the same for every copy of a pair that the steps could choose. Called from any thread.
using NeedsText = std::function<bool(const RawReview& review)>;

struct ReadRequest {
  std::vector<std::string> paths;
  ColumnChoice columns = {};
  int64_t tolerated = 0;  // bad lines that may be left out, over all files
  // Called now and then, from one thread at a time, with the decompressed bytes read so far; may be
  // empty.
  std::function<void(uint64_t bytes)> progress = {};
  NeedsText needs_text = {};
  // What rows and the texts of compressed files lie in; null: ordinary memory.
  std::shared_ptr<Spool> spool = {};
};

// Error that names the file, the line and the reason for the first bad line that is too many.
Interactions read_reviews(const ReadRequest& request, const PrepareOptions& options,
                          ThreadPool& pool, ReadReport& report);

// That Error, where the lines are more than are tolerated.
void refuse_bad_line(const std::vector<BadLine>& bad, int64_t tolerated);

}  // namespace cfaa
