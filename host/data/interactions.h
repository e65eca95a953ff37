#pragma once

// The interactions of one domain. A user's and an item's number is the rank of the raw id among
// the ids' bytes, so that every order below follows from the ids and not from the files.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "host/io/mapped_input.h"

namespace cfaa {

struct Interaction {
  uint32_t user = 0, item = 0;
  float rating = 0;
  uint32_t text_bytes = 0;
  int64_t time = 0;  // milliseconds since 1970; 0: absent
  const char* text = nullptr;

  std::string_view review() const { return {text, text_bytes}; }
};

struct Interactions {
  std::vector<std::string_view> users, items;  // raw ids, ascending by bytes
  std::vector<Interaction> rows;
  // What ids and texts point into.
  std::vector<std::shared_ptr<const void>> memory;
  std::vector<std::shared_ptr<const MappedInput>> inputs;
};

enum class Split : uint8_t { train = 0, valid = 1, test = 2 };

}  // namespace cfaa
