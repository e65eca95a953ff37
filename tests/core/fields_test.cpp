#include "host/core/fields.h"

#include <gtest/gtest.h>

#include "host/io/json_file.h"

namespace cfaa {
namespace {

TEST(Fields, TheFirstDifferenceIsNamedWithBothValues) {
  const Fields before = {{"layer", "last"}, {"limit", int64_t{5}}},
               now = {{"layer", "penultimate"}, {"limit", int64_t{6}}};

  EXPECT_EQ(setting_difference(before, before), "");
  EXPECT_EQ(setting_difference(before, now), "layer 'last', this one has 'penultimate'");
  EXPECT_EQ(setting_difference({}, {{"limit", int64_t{5}}}), "limit none, this one has 5");
}

TEST(Fields, ComeBackFromJsonAsTheyWere) {
  const Fields fields = {{"b", true}, {"n", int64_t{1} << 60}, {"s", "text"}, {"x", 0.1}};

  EXPECT_EQ(to_json(fields).dump(), R"({"b":true,"n":1152921504606846976,"s":"text","x":0.1})");
  EXPECT_EQ(fields_of(to_json(fields)), fields);
}

TEST(Fields, AreNotReadFromWhatIsNoObjectOfPlainValues) {
  EXPECT_FALSE(fields_of(parse_json("[1]")));
  EXPECT_FALSE(fields_of(parse_json(R"({"a": {"b": 1}})")));
  EXPECT_FALSE(fields_of(parse_json(R"({"a": null})")));
}

TEST(Fields, AWholeNumberOfAnotherTypeIsTheFallback) {
  const Fields fields = {{"n", int64_t{3}}, {"s", "3"}};

  EXPECT_EQ(whole_field(fields, "n"), 3);
  EXPECT_EQ(whole_field(fields, "s", 7), 7);
  EXPECT_EQ(whole_field(fields, "absent", 7), 7);
}

}  // namespace
}  // namespace cfaa
