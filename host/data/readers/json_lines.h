#pragma once

// JSON lines: one object a line, parsed whole by simdjson (so a line that is not JSON is refused
// even where the fault lies in a field nobody reads). Of a key that occurs twice the last counts,
// as in Python. Ids may be strings or whole numbers, ratings and times numbers or strings that
// spell one. A text without escapes is handed on as a view of the chunk.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/data/review.h"

namespace cfaa {

// Which keys hold what. `item` is tried before `item_else` (2023: parent_asin, else asin).
struct ObjectKeys {
  std::string user, item, item_else, rating, text, time, title;
};

class JsonLines {
 public:
  JsonLines(ObjectKeys keys, InvalidUtf8 invalid);
  ~JsonLines();

  // Hands every line of the chunk to the sink and returns how many lines there were. `chunk` must
  // be followed by kChunkPadding readable bytes.
  int64_t parse(std::string_view chunk, RawReviewSink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The keys of a line's object in order, or {} where it is no JSON object: to know a format by. What
// is not UTF-8 in it does not matter here.
std::vector<std::string> json_keys(std::string_view line);

}  // namespace cfaa
