#include "host/text/tokenizer.h"

#include <algorithm>

#include "host/core/error.h"
#include "host/io/utf8.h"
#include "host/text/byte_classes.h"

namespace cfaa {

Encoding Tokenizer::encode(std::string_view text, std::size_t max_length, TokenizerScratch& scratch,
                           std::vector<std::int32_t>& ids) const {
  CFAA_ASSERT(scratch.tokenizer_ == this);
  const std::size_t special = common_.opening.size() + common_.closing.size();
  if (max_length < special) {
    throw Error("a maximum length of " + std::to_string(max_length) + " leaves no room for the " +
                std::to_string(special) + " special tokens; give a larger one");
  }
  Encoding encoding;
  text = well_formed(text, scratch.repaired_, encoding.replaced);
  ids.assign(common_.opening.begin(), common_.opening.end());
  const std::size_t limit = max_length - common_.closing.size();
  if (common_.special_literals == SpecialLiterals::kParity && !common_.literals.empty()) {
    encode_with_literals(text, limit, scratch, ids);
  } else {
    encode_plain(text, limit, scratch, ids);
  }
  if (ids.size() > limit) {
    ids.resize(limit);
    encoding.truncated = true;
  }
  ids.insert(ids.end(), common_.closing.begin(), common_.closing.end());
  return encoding;
}

// The raw text is searched for the literals, the leftmost first and there the longest; what lies
// between is tokenized on its own.
void Tokenizer::encode_with_literals(std::string_view text, std::size_t limit,
                                     TokenizerScratch& scratch,
                                     std::vector<std::int32_t>& ids) const {
  std::size_t done = 0;
  for (std::size_t i = 0; i < text.size() && ids.size() <= limit;) {
    const Literal* hit = nullptr;
    for (const Literal& literal : common_.literals) {
      if (literal.text[0] == text[i] && text.substr(i, literal.text.size()) == literal.text &&
          (hit == nullptr || literal.text.size() > hit->text.size())) {
        hit = &literal;
      }
    }
    if (hit == nullptr) {
      ++i;
      continue;
    }
    std::size_t begin = i, end = i + hit->text.size();
    if (hit->strip_left) {
      while (begin > done) {
        const char* p = previous_code_point(text.data() + begin);
        const auto before = static_cast<std::size_t>(p - text.data());
        if (byte_class(next_code_point(p)) != ByteClass::kSpace) break;
        begin = before;
      }
    }
    if (hit->strip_right) {
      while (end < text.size()) {
        const char* p = text.data() + end;
        if (byte_class(next_code_point(p)) != ByteClass::kSpace) break;
        end = static_cast<std::size_t>(p - text.data());
      }
    }
    if (begin > done) encode_plain(text.substr(done, begin - done), limit, scratch, ids);
    ids.push_back(hit->id);
    done = i = end;
  }
  if (done < text.size() && ids.size() <= limit) {
    encode_plain(text.substr(done), limit, scratch, ids);
  }
}

}  // namespace cfaa
