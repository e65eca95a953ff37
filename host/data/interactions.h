#pragma once

// The interactions of one domain. A user's and an item's number is the rank of the raw id among
// the ids' bytes, so that every order below follows from the ids and not from the files.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/io/mapped_input.h"
#include "host/io/spool.h"

namespace cfaa {

struct Interaction {
  uint32_t user = 0, item = 0;
  float rating = 0;
  uint32_t text_bytes = 0;
  int64_t time = 0;  // milliseconds since 1970, before it negative; 0: absent
  const char* text = nullptr;

  std::string_view review() const { return {text, text_bytes}; }
  // To order by: a review without a time stands before all that have one.
  int64_t when() const { return time == 0 ? std::numeric_limits<int64_t>::min() : time; }
};

using InteractionRows = SpooledVector<Interaction>;

struct Interactions {
  std::vector<std::string_view> users, items;  // raw ids, ascending by bytes
  std::vector<std::string> titles;             // of each item, "" for none; empty: of no item
  InteractionRows rows;
  // What ids and texts point into.
  std::vector<std::shared_ptr<const void>> memory;
  std::vector<std::shared_ptr<const MappedInput>> inputs;
};

enum class Split : uint8_t { train = 0, valid = 1, test = 2 };

}  // namespace cfaa
