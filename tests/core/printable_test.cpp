#include "host/core/terminal/printable.h"

#include <gtest/gtest.h>

namespace cfaa {
namespace {

TEST(Printable, OrdinaryTextStaysAsItIs) {
  for (const std::string text : {"", "B000A1", "Müller & Söhne", "日本語", "😀 fine", "C:\\data"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_FALSE(has_control(text));
  }
}

TEST(Printable, ControlsBecomeEscapes) {
  EXPECT_EQ(printable("\x1B[2J\x07"), "\\x1B[2J\\x07");
  EXPECT_EQ(printable("a\tb\r\nc\x7F"), "a\\tb\\r\\nc\\x7F");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_TRUE(has_control("\x1B[2J"));
  EXPECT_TRUE(has_control("a\tb"));
}

TEST(Printable, TheEightBitFormsOfEscapeSequencesBecomeEscapes) {
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\u009B31m");  // CSI in UTF-8
  EXPECT_EQ(printable("\x9B"
                      "31m"),
            "\\x9B31m");  // CSI as a bare byte
  EXPECT_TRUE(has_control("\xC2\x9B"));
}

TEST(Printable, WhatIsNotUtf8BecomesEscapes) {
  EXPECT_EQ(printable("\xE0\x80\x9B"), "\\xE0\\x80\\x9B");  // overlong ESC
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xED\\xA0\\x80");  // a surrogate
  EXPECT_EQ(printable("caf\xE9"), "caf\\xE9");
  EXPECT_EQ(printable("\xF0\x9F\x98"), "\\xF0\\x9F\\x98");
}

TEST(Printable, ChangesOfDirectionAndLineSeparatorsBecomeEscapes) {
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "a\\u202Eb");
  EXPECT_EQ(printable("a\xE2\x80\xA8"
                      "b"),
            "a\\u2028b");
  EXPECT_FALSE(
      has_control("a\xE2\x80\xAE"
                  "b"));
}

}  // namespace
}  // namespace cfaa
