#include "host/text/bert_chars.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

namespace cfaa {
namespace {

struct MarkClass {
  char32_t code_point;
  int combining_class;
};

#include "host/text/tables/bert_tables.inc"

using Mapping = std::map<char32_t, std::vector<char32_t>>;

// A generated list: code point, number of outputs, outputs.
Mapping read_mapping(std::span<const char32_t> flat) {
  Mapping mapping;
  for (std::size_t i = 0; i < flat.size(); i += 2 + flat[i + 1]) {
    const auto first = flat.begin() + static_cast<std::ptrdiff_t>(i) + 2;
    mapping[flat[i]].assign(first, first + static_cast<std::ptrdiff_t>(flat[i + 1]));
  }
  return mapping;
}

}  // namespace

const CodePointTable<std::uint8_t>& bert_flags() {
  static const CodePointTable<std::uint8_t> table = [] {
    CodePointTable<std::uint8_t> t;
    t.add_flag(k_removed_by_clean_text, kCleanRemoves);
    t.add_flag(k_made_space_by_clean_text, kCleanMakesSpace);
    t.add_flag(k_cjk_padded_with_spaces, kChinese);
    t.add_flag(k_split_as_punctuation, kSplitsAsPunct);
    t.add_flag(k_split_as_whitespace, kSplitsAsSpace);
    t.add_flag(k_marks_that_break_a_run, kBreaksMarks);
    for (const auto& [c, _] : k_surviving_marks) t.at(c) |= kSurvivingMark;
    return t;
  }();
  return table;
}

int mark_class(char32_t c) {
  const auto* mark = std::lower_bound(
      std::begin(k_surviving_marks), std::end(k_surviving_marks), c,
      [](const MarkClass& known, char32_t wanted) { return known.code_point < wanted; });
  return mark->combining_class;
}

const CaseMap& CaseMap::of(bool strip_accents, bool lowercase) {
  static std::array<std::unique_ptr<const CaseMap>, 4> maps;
  static std::array<std::once_flag, 4> made;
  const std::size_t which = 2 * strip_accents + lowercase;
  std::call_once(made[which], [&] { maps[which].reset(new CaseMap(strip_accents, lowercase)); });
  return *maps[which];
}

CaseMap::CaseMap(bool strip_accents, bool lowercase) {
  Mapping mapping;
  if (strip_accents) mapping = read_mapping(k_strip_accents);
  if (lowercase) {
    const Mapping lower = read_mapping(k_lowercase);
    for (auto& [_, out] : mapping) {
      std::vector<char32_t> lowered;
      for (const char32_t c : out) {
        const auto found = lower.find(c);
        if (found == lower.end()) {
          lowered.push_back(c);
        } else {
          lowered.insert(lowered.end(), found->second.begin(), found->second.end());
        }
      }
      out = lowered;
    }
    mapping.insert(lower.begin(), lower.end());  // those that stripping leaves alone
  }
  for (const auto& [c, out] : mapping) {
    entry_.at(c) = static_cast<std::uint16_t>(pool_.size());
    pool_.push_back(static_cast<char32_t>(out.size()));
    pool_.insert(pool_.end(), out.begin(), out.end());
  }
}

}  // namespace cfaa
