#include "host/embed/documents.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/io/content_hash.h"
#include "host/io/mapped_file.h"

namespace cfaa {

CorpusDocuments::CorpusDocuments(const std::string& path, TextLinesOptions options)
    : path_(path), lines_(path, std::move(options)) {
  regular_ = path != "-" && std::filesystem::is_regular_file(path);
  if (!regular_) return;
  const MappedFile file(path);
  size_ = file.bytes().size();
  hash_ = content_hash(file);
}

void CorpusDocuments::skip(int64_t documents) {
  std::string_view text;
  for (int64_t i = 0; i < documents; ++i) {
    if (!next(text)) throw Error(path_ + ": is shorter than it was; run with --fresh");
  }
}

void CorpusDocuments::check_unchanged() const {
  if (regular_ && lines_.identity().xxh3_128 != hash_) {
    throw Error(path_ + ": was changed while it was read; run again with --fresh");
  }
}

ReviewDocuments::ReviewDocuments(const Domain& domain) : file_(domain.text_path(Split::train)) {
  if (file_.count() != domain.train.size()) {
    throw Error(fmt::format("{}: holds {} texts where {} has {} rows; run prepare again",
                            domain.text_path(Split::train).string(), file_.count(),
                            inter_path(domain.path, domain.name, Split::train).string(),
                            domain.train.size()));
  }
  file_.verify();
}

bool ReviewDocuments::next(std::string_view& text) {
  if (next_ == file_.count()) return false;
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
