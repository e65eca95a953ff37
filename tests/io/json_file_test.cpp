#include "host/io/json_file.h"

#include <gtest/gtest.h>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

using nlohmann::json;
using test::error_of;
using test::TemporaryFolder;
using test::write_text;

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonFile, DeepNestingIsRefusedByName) {
  const TemporaryFolder folder;
  write_text(folder.path("deep.json"), nested(200'000));

  const std::string message = error_of([&] { (void)read_json(folder.path("deep.json")); });

  EXPECT_NE(message.find("deep.json: is nested deeper than 64 levels"), std::string::npos)
      << message;
}

TEST(JsonFile, ParsesUpToTheDeepestLevelAndNoFurther) {
  EXPECT_FALSE(parse_json(nested(64)).is_discarded());
  EXPECT_TRUE(parse_json(nested(65)).is_discarded());
}

TEST(JsonFile, BracketsInTextAreNoNesting) {
  const std::string brackets(1000, '[');

  EXPECT_EQ(parse_json("\"" + brackets + "\""), brackets);
  EXPECT_EQ(parse_json("\"\\\"" + brackets + "\""), "\"" + brackets);
}

TEST(JsonFile, AQuotedValueIsPrintableAndShort) {
  EXPECT_EQ(quoted(json({{"a", 1}})), R"({"a":1})");
  EXPECT_EQ(quoted(json("\xC2\x9B"
                        "2J")),
            "\"\\u009B2J\"");
  EXPECT_LE(quoted(json(std::string(10'000, 'x'))).size(), 90u);
}

}  // namespace
}  // namespace cfaa
