#include "host/run/review_words.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "host/io/utf8.h"
#include "host/text/sentences.h"

namespace cfaa {
namespace {

// Bytes of the UTF-8 character that begins with `lead`.
std::size_t character_bytes(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// One line of printable characters: controls (C0, DEL, C1) and runs of spaces become one space.
std::string shown(std::string_view text, int most) {
  std::string line;
  int characters = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t bytes = std::min(character_bytes(lead), text.size() - at);
    const bool c1 = lead == 0xC2 && bytes == 2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (lead <= ' ' || lead == 0x7F || c1) {
      if (!line.empty() && line.back() != ' ') line += ' ', ++characters;
    } else if (characters >= most) {
      return line + "…";
    } else {
      line.append(text.substr(at, bytes));
      ++characters;
    }
    at += bytes;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// Chinese where Han characters outnumber Latin letters.
Language language_of(std::string_view text) {
  int64_t han = 0, latin = 0;
  for (std::size_t at = 0; at < text.size(); at += character_bytes(text[at])) {
    const auto lead = static_cast<unsigned char>(text[at]);
    han += lead >= 0xE4 && lead <= 0xE9;  // U+4000 to U+9FFF
    latin += (lead >= 'a' && lead <= 'z') || (lead >= 'A' && lead <= 'Z');
  }
  return han > latin ? Language::kChinese : Language::kEnglish;
}

}  // namespace

ReviewWords::ReviewWords(const Domain& domain) : domain_(domain) {
  const std::filesystem::path path = domain.text_path(Split::train);
  if (std::filesystem::exists(path)) text_.emplace(path);
  const SplitRows& rows = domain_.train;
  offset_.resize(static_cast<std::size_t>(domain_.items.size()) + 1);
  for (std::size_t row = 0; row < rows.item.size(); ++row) {
    if (rows.label[row] > 0) ++offset_[static_cast<std::size_t>(rows.item[row]) + 1];
  }
  std::partial_sum(offset_.begin(), offset_.end(), offset_.begin());
  rows_.resize(offset_.back());
  std::vector<std::size_t> next(offset_.begin(), offset_.end() - 1);
  for (std::size_t row = 0; row < rows.item.size(); ++row) {
    if (rows.label[row] > 0) rows_[next[static_cast<std::size_t>(rows.item[row])]++] = row;
  }
}

std::string ReviewWords::of(int32_t user, int32_t item) const {
  // Rows ascend by user and item.
  const SplitRows& rows = domain_.train;
  const auto begin = std::lower_bound(rows.user.begin(), rows.user.end(), user) - rows.user.begin();
  const auto end = std::upper_bound(rows.user.begin(), rows.user.end(), user) - rows.user.begin();
  const auto found = std::lower_bound(rows.item.begin() + begin, rows.item.begin() + end, item);
  if (found == rows.item.begin() + end || *found != item) return "";
  return sentence(found - rows.item.begin());
}

std::string ReviewWords::of_item(int32_t item) const {
  const auto i = static_cast<std::size_t>(item);
  for (std::size_t at = offset_[i]; at < offset_[i + 1]; ++at) {
    std::string words = sentence(static_cast<int64_t>(rows_[at]));
    if (!words.empty()) return words;
  }
  return "";
}

std::string ReviewWords::sentence(int64_t row) const {
  if (!text_ || row >= text_->count()) return "";
  return first_sentence(text_->text(row));
}

std::string first_sentence(std::string_view text) {
  std::string repaired;
  std::size_t replaced = 0;
  if (!is_utf8(text)) text = well_formed(text, repaired, replaced);
  std::vector<Sentence> sentences;
  SentenceSplitter(language_of(text)).split(text, sentences);
  for (const Sentence& each : sentences) {
    std::string line = shown(text.substr(each.begin, each.end - each.begin), kMostCharacters);
    if (!line.empty()) return line;
  }
  return "";
}

}  // namespace cfaa
