#include "host/core/options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "host/core/error.h"

namespace cfaa {
namespace {

enum class Colour { red, green };

struct Settings {
  double alpha = 0.1;
  int64_t rounds = 3;
  bool loud = false;
  Colour colour = Colour::red;
};

OptionSet bind(Settings& settings) {
  OptionSet set("demo");
  set.add("alpha", settings.alpha, "a number", positive());
  set.add("rounds", settings.rounds, "a count", between(1, 10));
  set.add("loud", settings.loud, "a switch");
  set.add("colour", settings.colour, "a choice", {{"red", Colour::red}, {"green", Colour::green}});
  return set;
}

std::string refusal(const std::string& json_text) {
  Settings settings;
  try {
    bind(settings).read(nlohmann::json::parse(json_text), "c.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(OptionSet, ReadsEveryKind) {
  Settings settings;
  bind(settings).read(
      nlohmann::json::parse(R"({"alpha": 2, "rounds": 7, "loud": true, "colour": "green"})"),
      "c.json");

  EXPECT_EQ(settings.alpha, 2.0);
  EXPECT_EQ(settings.rounds, 7);
  EXPECT_TRUE(settings.loud);
  EXPECT_EQ(settings.colour, Colour::green);
}

TEST(OptionSet, ARenamedKeyIsReadAsTheNewOneWithOneNotice) {
  Settings settings;
  OptionSet set = bind(settings);
  set.add_renamed("bandwidth", "alpha");
  set.add_renamed("old.rounds", "rounds");

  testing::internal::CaptureStderr();
  set.read(nlohmann::json::parse(R"({"bandwidth": 2, "old": {"rounds": 4}})"), "old.json");
  const std::string notice = testing::internal::GetCapturedStderr();

  EXPECT_EQ(settings.alpha, 2.0);
  EXPECT_EQ(settings.rounds, 4);
  EXPECT_NE(notice.find("old.json: demo.bandwidth is now demo.alpha, "
                        "demo.old.rounds is now demo.rounds"),
            std::string::npos)
      << notice;
  EXPECT_FALSE(set.current().contains("bandwidth"));
}

TEST(OptionSet, ARenamedKeyMayStandForKeysOfAnotherSection) {
  Settings settings, others;
  OptionSet set = bind(settings);
  set.add_renamed("both", bind(others), {"loud"});

  set.set("both", "true", "--set demo.both=true");

  EXPECT_TRUE(others.loud);
  EXPECT_FALSE(settings.loud);
}

TEST(OptionSet, SaysWhenAKeyIsAssigned) {
  Settings settings;
  OptionSet set("demo");
  int assigned = 0;
  set.add("alpha", settings.alpha, "a number", positive());
  set.when_assigned([&] { ++assigned; });

  set.set("alpha", "3", "--alpha");

  EXPECT_EQ(settings.alpha, 3.0);
  EXPECT_EQ(assigned, 1);
}

TEST(OptionSet, AnUnknownKeyIsRefusedWithTheNearestName) {
  EXPECT_EQ(refusal(R"({"alhpa": 1})"),
            "c.json: 'alhpa' is not a key of 'demo'; did you mean 'alpha'?");
}

TEST(OptionSet, AWrongTypeOrRangeNamesTheKeyAndWhatIsAllowed) {
  EXPECT_EQ(refusal(R"({"alpha": "x"})"), "c.json: demo.alpha must be a number > 0, and not \"x\"");
  EXPECT_EQ(refusal(R"({"alpha": 0})"), "c.json: demo.alpha must be a number > 0, and not 0");
  EXPECT_EQ(refusal(R"({"rounds": 2.5})"),
            "c.json: demo.rounds must be a whole number from 1 to 10, and not 2.5");
  EXPECT_EQ(refusal(R"({"rounds": 11})"),
            "c.json: demo.rounds must be a whole number from 1 to 10, and not 11");
  EXPECT_EQ(refusal(R"({"rounds": 18446744073709551615})"),
            "c.json: demo.rounds must be a whole number from 1 to 10, and not "
            "18446744073709551615");
  EXPECT_EQ(refusal(R"({"loud": 1})"), "c.json: demo.loud must be true or false, and not 1");
  EXPECT_EQ(refusal(R"({"colour": "blue"})"),
            "c.json: demo.colour must be red or green, and not \"blue\"");
  EXPECT_EQ(refusal("[]"), "c.json: 'demo' must be an object of keys and values");
}

TEST(OptionSet, FlagsAreReadAsTheirKeys) {
  Settings settings;
  OptionSet set = bind(settings);
  set.set("alpha", "1e-3", "--alpha");
  set.set("colour", "green", "--colour");

  EXPECT_EQ(settings.alpha, 1e-3);
  EXPECT_EQ(settings.colour, Colour::green);
  EXPECT_THROW(set.set("alpha", "nan", "--alpha"), Error);
  EXPECT_THROW(set.set("rounds", "many", "--rounds"), Error);
}

TEST(OptionSet, AKeyWithADotIsAKeyOfAnInnerObject) {
  int64_t most = 100;
  std::vector<int64_t> layers = {300};
  std::vector<std::string> inputs = {"id"};
  OptionSet set("model");
  set.add("history.max", most, "a count", at_least(0));
  set.add("layers", layers, "sizes", at_least(1));
  set.add("inputs", inputs, "parts", {"id", "history"});

  set.read(nlohmann::json::parse(R"({"history": {"max": 7}, "layers": [], "inputs": ["history"]})"),
           "c.json");
  EXPECT_EQ(most, 7);
  EXPECT_TRUE(layers.empty());
  EXPECT_EQ(inputs, std::vector<std::string>{"history"});
  EXPECT_EQ(set.current().dump(), R"({"history":{"max":7},"inputs":["history"],"layers":[]})");

  EXPECT_THROW(set.set("layers", "[3, 0]", "--set"), Error);
  EXPECT_THROW(set.set("inputs", "[\"id\", \"id\"]", "--set"), Error);
  EXPECT_THROW(set.read(nlohmann::json::parse(R"({"history": {"mx": 7}})"), "c.json"), Error);
}

TEST(NearestName, FarNamesAreNotOffered) {
  EXPECT_EQ(nearest_name("epsilno", {"alpha", "epsilon"}), "epsilon");
  EXPECT_EQ(nearest_name("zzz", {"alpha", "epsilon"}), "");
}

}  // namespace
}  // namespace cfaa
