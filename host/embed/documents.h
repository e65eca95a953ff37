#pragma once

// Where embedding takes its texts from: a corpus file (lines or records) or the training reviews of
// a prepared domain. Documents come in order, once.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/data/dataset.h"
#include "host/data/review_text.h"
#include "host/io/input_stream.h"
#include "host/text/text_lines.h"

namespace cfaa {

class Documents {
 public:
  virtual ~Documents() = default;

  // The next text, valid until the next call; false at the end.
  virtual bool next(std::string_view& text) = 0;
  // The id of that text; "" where ids were not asked for.
  virtual std::string_view id() const { return {}; }
  // Passes over documents that an earlier run has done.
  virtual void skip(int64_t documents) = 0;

  virtual uint64_t bytes_read() const = 0;
  virtual uint64_t bytes_in_all() const = 0;              // 0: not known
  virtual int64_t documents_in_all() const { return 0; }  // 0: not known
  virtual int64_t replaced() const { return 0; }
  virtual std::string unit() const { return "document"; }  // what one of them is called
};

// The first of them: a first look.
class FirstDocuments : public Documents {
 public:
  FirstDocuments(Documents& documents, int64_t count)
      : documents_(documents), count_(count), left_(count) {}

  bool next(std::string_view& text) override { return left_-- > 0 && documents_.next(text); }
  std::string_view id() const override { return documents_.id(); }
  void skip(int64_t documents) override { left_ -= documents, documents_.skip(documents); }
  uint64_t bytes_read() const override { return documents_.bytes_read(); }
  uint64_t bytes_in_all() const override { return documents_.bytes_in_all(); }
  int64_t documents_in_all() const override { return count_; }
  int64_t replaced() const override { return documents_.replaced(); }
  std::string unit() const override { return documents_.unit(); }

 private:
  Documents& documents_;
  int64_t count_, left_;
};

// What is read of one file: all of it, or those bytes of a plain one that begin and end where lines
// do.
struct CorpusPart {
  std::string path;  // "-": standard input
  ByteRange range;
  LineFormat format = LineFormat::kDetect;
};

// The records of files, one after the other.
class CorpusDocuments : public Documents {
 public:
  CorpusDocuments(std::vector<CorpusPart> parts, TextLinesOptions options);

  bool next(std::string_view& text) override;
  std::string_view id() const override { return lines_->id(); }
  void skip(int64_t documents) override;
  uint64_t bytes_read() const override { return bytes_ + (lines_ ? lines_->consumed() : 0); }
  uint64_t bytes_in_all() const override { return size_; }
  int64_t replaced() const override {
    return replaced_ + (lines_ ? static_cast<int64_t>(lines_->replaced()) : 0);
  }

  // Whether they can be read a second time: regular files.
  bool again() const { return regular_; }
  // What was there before the run, for the journal: bytes and XXH3-128 as they are on disk.
  std::string identity() const;
  // At the end: Error where a file is no longer what identity() was taken of.
  void check_unchanged() const;

 private:
  void end_part();

  std::vector<CorpusPart> parts_;
  TextLinesOptions options_;
  std::vector<std::string> hashes_, read_;  // of each part: before, and as it was read
  uint64_t size_ = 0, bytes_ = 0;
  int64_t replaced_ = 0;
  bool regular_ = true;
  std::unique_ptr<TextLines> lines_;  // of part read_.size()
};

// The training reviews of a domain: document i is row i of its train .inter file. No other text is
// opened.
class ReviewDocuments : public Documents {
 public:
  // Error where texts and rows do not match, or the text file is damaged.
  explicit ReviewDocuments(const Domain& domain);
  // Rows [first, last) of them; the rest is not read.
  ReviewDocuments(const Domain& domain, int64_t first, int64_t last);

  bool next(std::string_view& text) override;
  void skip(int64_t documents) override;
  uint64_t bytes_read() const override { return bytes_; }
  uint64_t bytes_in_all() const override { return file_.bytes(first_, last_); }
  int64_t documents_in_all() const override { return last_ - first_; }
  std::string unit() const override { return "review"; }

 private:
  ReviewTextFile file_;
  int64_t first_, last_, next_;
  uint64_t bytes_ = 0;
};

}  // namespace cfaa
