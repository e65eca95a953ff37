#include "host/text/english_tokens.h"

#include <algorithm>
#include <string>

#include "host/io/utf8.h"

namespace cfaa {
namespace {

#include "host/text/tables/sentence_tables.inc"

// Entries of a generated string table: lines, an entry ends with an empty one.
std::vector<std::vector<std::string>> read_entries(std::string_view table) {
  std::vector<std::vector<std::string>> entries(1);
  while (!table.empty()) {
    const std::size_t newline = table.find('\n');
    if (newline == 0) {
      entries.emplace_back();
    } else {
      entries.back().emplace_back(table.substr(0, newline));
    }
    table.remove_prefix(newline + 1);
  }
  entries.pop_back();
  return entries;
}

}  // namespace

const CodePointTable<std::uint16_t>& sentence_flags() {
  static const CodePointTable<std::uint16_t> table = [] {
    CodePointTable<std::uint16_t> t;
    t.add_flag(k_sentence_end, kSentenceEnd);
    t.add_flag(k_is_punct, kIsPunct);
    t.add_flag(k_whitespace, kWhiteSpace);
    t.add_flag(k_punct, kPunctRule);
    t.add_flag(k_quotes, kQuote);
    t.add_flag(k_currency, kCurrency);
    t.add_flag(k_prefixes_single, kPrefixSingle);
    t.add_flag(k_icons, kIcon);
    t.add_flag(k_alpha_lower, kAlphaLower);
    t.add_flag(k_alpha_upper, kAlphaUpper);
    t.add_flag(k_alpha, kAlpha);
    t.add_flag(k_word, kWord);
    t.add_flag(k_decimal, kDecimal);
    return t;
  }();
  return table;
}

EnglishRules::EnglishRules() {
  using Entries = std::vector<std::pair<std::string, std::int32_t>>;
  Entries special, units, merge_tokens, heads;
  for (const auto& entry : read_entries(k_special_cases)) {
    special.emplace_back(entry[0], static_cast<std::int32_t>(special.size()));
    auto& lengths = special_lengths_.emplace_back();
    for (std::size_t i = 1; i < entry.size(); ++i) {
      lengths.push_back(static_cast<std::uint32_t>(entry[i].size()));
    }
  }
  for (const char* unit : k_units) units.emplace_back(unit, 0);
  for (const auto& entry : read_entries(k_merge_sequences)) {
    for (const auto& token : entry) merge_tokens.emplace_back(token, 0);
    auto head = std::find_if(heads.begin(), heads.end(),
                             [&](const auto& known) { return known.first == entry[0]; });
    if (head == heads.end()) {
      head = heads.insert(heads.end(), {entry[0], static_cast<std::int32_t>(merges_.size())});
      merges_.emplace_back();
    }
    merges_[static_cast<std::size_t>(head->second)].emplace_back(entry.begin() + 1, entry.end());
  }
  special_ = StringIndex(special);
  units_ = StringIndex(units);
  merge_tokens_ = StringIndex(merge_tokens);
  merge_heads_ = StringIndex(heads);
}

const EnglishRules& EnglishRules::instance() {
  static const EnglishRules rules;
  return rules;
}

const std::vector<std::uint32_t>& EnglishRules::special_tokens(std::string_view text) const {
  static const std::vector<std::uint32_t> none;
  const std::int32_t entry = special_.find(text);
  return entry < 0 ? none : special_lengths_[static_cast<std::size_t>(entry)];
}

void EnglishRules::merges_at(std::string_view text, const std::vector<TextToken>& tokens,
                             std::size_t i, std::vector<std::size_t>& lengths) const {
  lengths.clear();
  const auto word = [&](std::size_t k) {
    return text.substr(tokens[k].begin, tokens[k].end - tokens[k].begin);
  };
  const std::int32_t head = merge_heads_.find(word(i));
  if (head < 0) return;
  for (const auto& tail : merges_[static_cast<std::size_t>(head)]) {
    if (i + tail.size() >= tokens.size()) continue;
    std::size_t k = 0;
    while (k < tail.size() && word(i + 1 + k) == tail[k]) ++k;
    if (k == tail.size()) lengths.push_back(tail.size() + 1);
  }
}

std::string_view EnglishChunkTokenizer::bytes(std::size_t low, std::size_t high) const {
  return text_.substr(offsets_[low], offsets_[high] - offsets_[low]);
}

void EnglishChunkTokenizer::push(std::size_t low, std::size_t high,
                                 std::vector<TextToken>& tokens) const {
  tokens.push_back({offsets_[low], offsets_[high]});
}

void EnglishChunkTokenizer::tokenize(std::string_view text, std::size_t begin, std::size_t end,
                                     std::vector<TextToken>& tokens) {
  text_ = text;
  code_points_.clear();
  flags_.clear();
  offsets_.clear();
  suffixes_.clear();
  for (const char* p = text.data() + begin; p < text.data() + end;) {
    offsets_.push_back(static_cast<std::size_t>(p - text.data()));
    code_points_.push_back(next_code_point(p));
    flags_.push_back(table_[code_points_.back()]);
  }
  offsets_.push_back(end);

  // Peel one prefix and one suffix a round, until nothing changes or a special case is left.
  std::size_t low = 0, high = code_points_.size(), last_size = 0;
  while (low < high && high - low != last_size && !rules_.is_special(bytes(low, high))) {
    last_size = high - low;
    const std::size_t prefix = prefix_length(low, high);
    if (prefix > 0 && low + prefix < high && rules_.is_special(bytes(low + prefix, high))) {
      push(low, low + prefix, tokens);
      low += prefix;
      break;
    }
    const std::size_t suffix = suffix_length(low + prefix, high);
    if (suffix > 0 && low < high - suffix && rules_.is_special(bytes(low, high - suffix))) {
      push(high - suffix, high, suffixes_);
      high -= suffix;
      break;
    }
    if (prefix > 0) {
      push(low, low + prefix, tokens);
      low += prefix;
    }
    if (suffix > 0) {
      push(high - suffix, high, suffixes_);
      high -= suffix;
    }
  }

  if (low < high) {
    const auto& lengths = rules_.special_tokens(bytes(low, high));
    if (!lengths.empty()) {
      std::size_t at = offsets_[low];
      for (const std::uint32_t length : lengths) {
        tokens.push_back({at, at + length});
        at += length;
      }
    } else if (is_url(low, high)) {
      push(low, high, tokens);
    } else {
      std::size_t start = low;
      for (std::size_t i = low; i < high;) {
        const std::size_t length = infix_length(i, low, high);
        if (length > 0 && i > low) {
          if (start < i) push(start, i, tokens);
          push(i, i + length, tokens);
          start = i + length;
        }
        i += std::max<std::size_t>(length, 1);
      }
      if (start < high) push(start, high, tokens);
    }
  }
  tokens.insert(tokens.end(), suffixes_.rbegin(), suffixes_.rend());
}

std::size_t EnglishChunkTokenizer::prefix_length(std::size_t low, std::size_t high) const {
  if (has(low, kPunctRule | kQuote | kCurrency | kIcon | kPrefixSingle)) return 1;
  const std::size_t size = high - low;
  switch (at(low)) {
    case '+':
      return size > 1 && is_digit(low + 1) ? 0 : 1;
    case '.': {
      std::size_t run = 1;
      while (run < size && at(low + run) == '.') ++run;
      return run > 1 ? run : 0;
    }
    case 'U':
      return size > 2 && at(low + 1) == 'S' && at(low + 2) == '$' ? 3 : 0;
    case 'C':
    case 'A':
      return size > 1 && at(low + 1) == '$' ? 2 : 0;
    default:
      return 0;
  }
}

bool EnglishChunkTokenizer::full_stop_leaves(std::size_t low, std::size_t high) const {
  if (high - low < 2) return false;
  const std::size_t before = high - 2;
  const char32_t c = at(before);
  if (has(before, kAlphaLower | kPunctRule | kQuote) || is_digit(before)) return true;
  if (c == '%' || c == 0xB2 || c == '-' || c == '+' || c == '|') return true;
  if (before == low) return false;
  if (has(before, kAlphaUpper) && has(before - 1, kAlphaUpper)) return true;
  return at(before - 1) == 0xB0 &&
         (c == 'F' || c == 'f' || c == 'C' || c == 'c' || c == 'K' || c == 'k');
}

std::size_t EnglishChunkTokenizer::suffix_length(std::size_t low, std::size_t high) const {
  if (low >= high) return 0;
  const std::size_t last = high - 1;
  const char32_t c = at(last);
  if (c == '.') {
    std::size_t run = 1;
    while (last - low >= run && at(last - run) == '.') ++run;
    return run > 1 ? run : full_stop_leaves(low, high);
  }
  if (last > low && c == 0x2026 && at(last - 1) == 0x2026) return 2;
  if (last > low && (c == 's' || c == 'S') && (at(last - 1) == '\'' || at(last - 1) == 0x2019)) {
    return 2;
  }
  // Behind an ASCII digit: +, a currency, a unit. None of them holds a digit, so only the last
  // digit of the text can be the one; the longest unit has five code points.
  for (std::size_t length = 1; length <= 5 && low + length < high; ++length) {
    if (!is_digit(last - length)) continue;
    const std::string_view tail = bytes(high - length, high);
    if (tail == "US$" || tail == "C$" || tail == "A$" || rules_.is_unit(tail)) return length;
    if (length == 1 && (c == '+' || has(last, kCurrency))) return 1;
    break;
  }
  return has(last, kPunctRule | kQuote | kIcon) || c == 0x2014 || c == 0x2013 ? 1 : 0;
}

std::size_t EnglishChunkTokenizer::infix_length(std::size_t i, std::size_t low,
                                                std::size_t high) const {
  const char32_t c = at(i);
  if (c == '.' && i + 1 < high && at(i + 1) == '.') {
    std::size_t run = 2;
    while (i + run < high && at(i + run) == '.') ++run;
    return run;
  }
  if (c == 0x2026 || has(i, kIcon)) return 1;
  if (i == low || i + 1 >= high) return 0;  // every other infix stands between two code points
  const bool behind_alnum = has(i - 1, kAlpha) || is_digit(i - 1);
  switch (c) {
    case '+':
    case '*':
    case '^':
      return is_digit(i - 1) && (is_digit(i + 1) || at(i + 1) == '-');
    case '.':
      return has(i - 1, kAlphaLower | kQuote) && has(i + 1, kAlphaUpper | kQuote);
    case ',':
      return has(i - 1, kAlpha) && has(i + 1, kAlpha);
    case ':':
    case '<':
    case '>':
    case '=':
    case '/':
      return behind_alnum && has(i + 1, kAlpha);
    case '~':
    case 0x2013:
      return behind_alnum && has(i + 1, kAlpha);
    case '-':
      if (is_digit(i - 1) && (is_digit(i + 1) || at(i + 1) == '-')) return 1;
      [[fallthrough]];
    case 0x2014: {
      // - -- --- and — —— before a letter
      if (!behind_alnum) return 0;
      const std::size_t longest = c == '-' ? 3 : 2;
      std::size_t run = 1;
      while (run < longest && i + run < high && at(i + run) == c) ++run;
      return i + run < high && has(i + run, kAlpha) ? run : 0;
    }
    default:
      return 0;
  }
}

// [\w+-.]{2,}:// and \S+@ are optional, so a host may start at the front, behind a scheme, or
// behind any @ but a leading one. A host holds no @, so all attempts together are linear.
bool EnglishChunkTokenizer::is_url(std::size_t low, std::size_t high) const {
  if (bytes(low, high).find('.') == std::string_view::npos) return false;
  if (is_host(low, high)) return true;
  std::size_t colon = low;
  while (colon < high &&
         (has(colon, kWord) || at(colon) == '+' || at(colon) == '-' || at(colon) == '.')) {
    ++colon;
  }
  if (colon - low >= 2 && colon + 3 <= high && at(colon) == ':' && at(colon + 1) == '/' &&
      at(colon + 2) == '/' && is_host(colon + 3, high)) {
    return true;
  }
  for (std::size_t i = low + 1; i < high; ++i) {
    if (at(i) == '@' && is_host(i + 1, high)) return true;
  }
  return false;
}

// A name or address, then an optional :port and an optional rest that starts with / ? or #.
bool EnglishChunkTokenizer::is_host(std::size_t low, std::size_t high) const {
  std::size_t end = low;
  while (end < high && at(end) != ':' && at(end) != '/' && at(end) != '?' && at(end) != '#' &&
         at(end) != '@') {
    ++end;
  }
  if (end < high && at(end) == '@') return false;
  if (end < high && at(end) == ':') {
    std::size_t port = end + 1;
    while (port < high && has(port, kDecimal)) ++port;
    const std::size_t digits = port - end - 1;
    if (digits < 2 || digits > 5) return false;
    if (port < high && at(port) != '/' && at(port) != '?' && at(port) != '#') return false;
  }
  return is_domain(low, end) || is_public_ipv4(low, end);
}

bool EnglishChunkTokenizer::is_domain(std::size_t low, std::size_t high) const {
  const auto in_label = [&](std::size_t i) {
    const char32_t c = at(i);
    return is_digit(i) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= 0xA1 && c <= 0xFFFF);
  };
  std::size_t top = high;  // start of the top-level name
  while (top > low && at(top - 1) != '.') --top;
  if (top == low || high - top < 2 || high - top > 63) return false;
  for (std::size_t i = top; i < high; ++i) {
    if (!has(i, kAlphaLower)) return false;
  }
  for (std::size_t i = low; i < top;) {
    std::size_t dot = i;
    while (at(dot) != '.') {
      if (!in_label(dot) && at(dot) != '_' && at(dot) != '-') return false;
      ++dot;
    }
    if (dot == i || dot - i > 64 || !in_label(i) || !in_label(dot - 1)) return false;
    i = dot + 1;
  }
  return true;
}

bool EnglishChunkTokenizer::is_public_ipv4(std::size_t low, std::size_t high) const {
  std::size_t start[4], size[4];
  std::size_t fields = 0;
  for (std::size_t i = low; fields < 4; ++fields) {
    start[fields] = i;
    while (i < high && has(i, kDecimal)) ++i;
    size[fields] = i - start[fields];
    if (size[fields] < 1 || size[fields] > 3) return false;
    if (fields == 3) {
      if (i != high) return false;
    } else if (i++ >= high || at(i - 1) != '.') {
      return false;
    }
  }
  const auto digit = [&](std::size_t field, std::size_t k) { return at(start[field] + k); };
  const auto between = [](char32_t c, char32_t a, char32_t b) { return c >= a && c <= b; };
  const auto is = [&](std::size_t field, std::string_view text) {
    if (size[field] != text.size()) return false;
    for (std::size_t k = 0; k < text.size(); ++k) {
      if (digit(field, k) != static_cast<char32_t>(text[k])) return false;
    }
    return true;
  };
  // 200-249 with any last digit, and 250 up to `limit`
  const auto two_hundreds = [&](std::size_t field, char32_t limit) {
    return digit(field, 0) == '2' &&
           (between(digit(field, 1), '0', '4') ||
            (digit(field, 1) == '5' && between(digit(field, 2), '0', limit)));
  };
  const auto outer = [&](std::size_t field) {
    return size[field] < 3 ? between(digit(field, 0), '1', '9') : digit(field, 0) == '1';
  };
  const bool first =
      outer(0) ||
      (size[0] == 3 && digit(0, 0) == '2' &&
       (between(digit(0, 1), '0', '1') || (digit(0, 1) == '2' && between(digit(0, 2), '0', '3'))));
  if (!first) return false;
  for (std::size_t field = 1; field <= 2; ++field) {
    if (size[field] == 3 && digit(field, 0) != '1' && !two_hundreds(field, '5')) return false;
  }
  if (!outer(3) && !(size[3] == 3 && two_hundreds(3, '4'))) return false;
  if (is(0, "10") || is(0, "127")) return false;
  if ((is(0, "169") && is(1, "254")) || (is(0, "192") && is(1, "168"))) return false;
  if (is(0, "172") && size[1] == 2 &&
      ((digit(1, 0) == '1' && between(digit(1, 1), '6', '9')) || digit(1, 0) == '2' ||
       (digit(1, 0) == '3' && between(digit(1, 1), '0', '1')))) {
    return false;
  }
  return true;
}

}  // namespace cfaa
