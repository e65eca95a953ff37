// Manifests of checkpoints that somebody else wrote.

#include "host/train/checkpoint.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "host/io/content_hash.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

class CheckpointManifest : public testing::Test {
 protected:
  // What is said of checkpoint 10 where its manifest's state is this; its arrays are whole.
  std::string said_of(const json& state) const {
    const std::string arrays = std::string("\x02\0\0\0\0\0\0\0{}", 10);
    ContentHash hash;
    hash.add(arrays.data(), arrays.size());
    write_text(folder_.path("step-00000010.safetensors"), arrays);
    const json manifest = {{"file", "step-00000010.safetensors"},
                           {"bytes", arrays.size()},
                           {"xxh3_128", hash.text()},
                           {"state", state}};
    write_text(folder_.path("step-00000010.json"), manifest.dump());
    return error_of([&] { (void)Checkpoints(folder_.path(), 2).newest(); });
  }
  static json state_with(const std::string& key, const json& value) {
    json state = {
        {"step", 10}, {"best", 0.5}, {"best_step", 5}, {"waited", 1}, {"finished", false}};
    state[key] = value;
    return state;
  }

  TemporaryFolder folder_;
};

TEST_F(CheckpointManifest, IsReadWhereItIsWhole) {
  EXPECT_EQ(said_of(state_with("waited", 0)), "");
  EXPECT_EQ(Checkpoints(folder_.path(), 2).newest()->state.best_step, 5);
}

TEST_F(CheckpointManifest, AFieldOfTheWrongTypeIsNamedInOneSentence) {
  const std::pair<const char*, json> wrong[] = {
      {"step", "ten"},     {"step", 10.5},  {"step", 1e300},       {"step", true},
      {"best", json({1})}, {"waited", "1"}, {"best_step", -1e300}, {"finished", 1}};
  for (const auto& [key, value] : wrong) {
    const std::string said = said_of(state_with(key, value));

    EXPECT_NE(said.find("the field '" + std::string(key) + "' has the wrong type"),
              std::string::npos)
        << said;
    EXPECT_EQ(said.find("json.exception"), std::string::npos) << said;
  }
}

TEST_F(CheckpointManifest, AStateThatIsNoneIsRefused) {
  for (const json& none : {json(), json(3), json::array({10, 0.5})}) {
    EXPECT_NE(said_of(none).find("it has no 'state'"), std::string::npos) << said_of(none);
  }
  EXPECT_NE(said_of(json::object()).find("its state has no 'best'"), std::string::npos);
}

TEST_F(CheckpointManifest, StepsThatCannotBeAreRefused) {
  EXPECT_NE(said_of(state_with("step", -5)).find("do not go together"), std::string::npos);
  EXPECT_NE(said_of(state_with("best_step", 11)).find("do not go together"), std::string::npos);
  EXPECT_NE(said_of(state_with("waited", -1)).find("do not go together"), std::string::npos);
  EXPECT_NE(said_of(state_with("step", 12)).find("it is of step 12"), std::string::npos);
}

TEST_F(CheckpointManifest, ANameThatIsNoStepIsNoCheckpoint) {
  for (const char* name : {"step--0000005", "step-abc", "step-10", "step-00000010x"}) {
    const TemporaryFolder folder;
    write_text(folder.path(std::string(name) + ".json"), "{}");

    EXPECT_FALSE(Checkpoints(folder.path(), 2).newest().has_value()) << name;
  }
}

}  // namespace
}  // namespace cfaa::test
