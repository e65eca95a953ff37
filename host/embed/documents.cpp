#include "host/embed/documents.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/io/content_hash.h"
#include "host/io/mapped_file.h"

namespace cfaa {

CorpusDocuments::CorpusDocuments(std::vector<CorpusPart> parts, TextLinesOptions options)
    : parts_(std::move(parts)), options_(std::move(options)) {
  for (const CorpusPart& part : parts_) {
    regular_ = regular_ && part.path != "-" && std::filesystem::is_regular_file(part.path);
  }
  if (!regular_) return;
  for (const CorpusPart& part : parts_) {
    const MappedFile file(part.path);
    const uint64_t end = std::min<uint64_t>(part.range.end, file.bytes().size());
    hashes_.push_back(content_hash(file, part.range.begin, end - part.range.begin));
    size_ += end - part.range.begin;
  }
}

bool CorpusDocuments::next(std::string_view& text) {
  while (read_.size() < parts_.size()) {
    if (!lines_) {
      const CorpusPart& part = parts_[read_.size()];
      options_.format = part.format;
      lines_ = std::make_unique<TextLines>(part.path, options_, part.range);
    }
    if (lines_->next(text)) return true;
    end_part();
  }
  return false;
}

void CorpusDocuments::end_part() {
  bytes_ += lines_->consumed();
  replaced_ += static_cast<int64_t>(lines_->replaced());
  read_.push_back(lines_->identity().xxh3_128);
  lines_.reset();
}

void CorpusDocuments::skip(int64_t documents) {
  std::string_view text;
  for (int64_t i = 0; i < documents; ++i) {
    if (!next(text)) {
      throw Error((parts_.empty() ? std::string("the shard") : parts_.back().path) +
                  ": is shorter than it was; run with --fresh");
    }
  }
}

std::string CorpusDocuments::identity() const {
  if (hashes_.size() == 1) return fmt::format("{} bytes with XXH3-128 {}", size_, hashes_[0]);
  ContentHash hash;
  for (const std::string& part : hashes_) hash.add(part);
  return fmt::format("{} files, {} bytes with XXH3-128 {}", parts_.size(), size_, hash.text());
}

void CorpusDocuments::check_unchanged() const {
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    if (i < read_.size() && read_[i] == hashes_[i]) continue;
    throw Error(parts_[i].path + ": was changed while it was read; run again with --fresh");
  }
}

ReviewDocuments::ReviewDocuments(const Domain& domain)
    : ReviewDocuments(domain, 0, domain.train.size()) {
  file_.verify();
}

ReviewDocuments::ReviewDocuments(const Domain& domain, int64_t first, int64_t last)
    : file_(domain.text_path(Split::train)), first_(first), last_(last), next_(first) {
  if (file_.count() != domain.train.size()) {
    throw Error(fmt::format("{}: holds {} texts where {} has {} rows; run prepare again",
                            domain.text_path(Split::train).string(), file_.count(),
                            inter_path(domain.path, domain.name, Split::train).string(),
                            domain.train.size()));
  }
}

bool ReviewDocuments::next(std::string_view& text) {
  if (next_ == last_) return false;
  text = file_.text(next_++);
  bytes_ += text.size();
  return true;
}

void ReviewDocuments::skip(int64_t documents) {
  std::string_view text;
  while (documents-- > 0 && next(text)) {
  }
}

}  // namespace cfaa
