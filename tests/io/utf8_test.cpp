#include "host/io/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace cfaa {
namespace {

std::string repaired(const std::string& text, std::size_t* count = nullptr) {
  std::string storage;
  std::size_t replaced = 0;
  std::string result(well_formed(text, storage, replaced));
  if (count != nullptr) *count = replaced;
  return result;
}

TEST(Utf8, WellFormedTextIsReturnedAsItIs) {
  const std::string text = "aé中\U0001F600\u07FF\uFFFF\U0010FFFF" + std::string(1, '\0') + "z";
  std::string storage;
  std::size_t replaced = 0;

  const std::string_view view = well_formed(text, storage, replaced);

  EXPECT_EQ(view.data(), text.data());
  EXPECT_EQ(view.size(), text.size());
  EXPECT_EQ(replaced, 0u);
}

// The expected strings are Python's bytes.decode(errors="replace").
TEST(Utf8, EveryMaximalIllFormedPieceBecomesOneReplacement) {
  const std::string r = "\uFFFD";
  const struct {
    std::string bytes, expected;
    std::size_t count;
  } cases[] = {
      {"\xFF", r, 1},
      {"a\x80z", "a" + r + "z", 1},
      {"\xE2\x82", r, 1},  // cut short
      {"\xE2\x82z", r + "z", 1},
      {"\xF0\x9F\x98", r, 1},
      {"\xC0\xAF", r + r, 2},  // overlong
      {"\xE0\x80\xAF", r + r + r, 3},
      {"\xF0\x80\x80\x80", r + r + r + r, 4},
      {"\xED\xA0\x80", r + r + r, 3},          // a surrogate
      {"\xF4\x90\x80\x80", r + r + r + r, 4},  // beyond U+10FFFF
      {"\xF5\xE2\x82\xAC", r + "\u20AC", 1},
      {"\xE2\xF0\x9F\x98\x80", r + "\U0001F600", 1},
      {"12345678\xC3", "12345678" + r, 1},
      {"\xC3\xA9\xC3", "é" + r, 1},
  };
  for (const auto& c : cases) {
    std::size_t count = 0;
    EXPECT_EQ(repaired(c.bytes, &count), c.expected);
    EXPECT_EQ(count, c.count);
  }
}

TEST(Utf8, RandomBytesBecomeWellFormed) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 4 ? random() : 0x80 + random() % 0x80);

    const std::string once = repaired(bytes);
    std::size_t again = 0;

    EXPECT_EQ(repaired(once, &again), once);
    EXPECT_EQ(again, 0u);
  }
}

TEST(Utf8, EveryCodePointSurvivesEncodingAndDecoding) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string encoded;
    append_utf8(encoded, c);
    const char* p = encoded.data();

    ASSERT_EQ(next_code_point(p), c);
    ASSERT_EQ(p, encoded.data() + encoded.size());
    ASSERT_EQ(previous_code_point(p), encoded.data());
    ASSERT_EQ(count_code_points(encoded), 1u);
  }
}

}  // namespace
}  // namespace cfaa
