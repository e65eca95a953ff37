#include "host/train/run_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

TEST(RunConfig, EveryReadyMadeConfigurationIsAccepted) {
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("configs"))) {
    const std::string path = entry.path().string();
    RunConfig config;
    EXPECT_NO_THROW(config.read(nlohmann::json::parse(read_text(path)), path)) << path;
    EXPECT_NO_THROW(config.check()) << path;
    ++read;
  }
  EXPECT_GE(read, 10);
}

TEST(RunConfig, IsTheSameAfterWritingAndReading) {
  RunConfig config, copy;
  config.set("train.lambda.vertical=5");
  config.set("model.layers=[]");
  config.set("model.scorer=dot");

  copy.read(config.to_json(), "run.json");

  EXPECT_EQ(copy.to_json(), config.to_json());
  EXPECT_EQ(copy.train.vertical, 5);
  EXPECT_TRUE(copy.model.layers.empty());
}

std::string refusal(const std::string& assignment) {
  RunConfig config;
  try {
    config.set(assignment);
    config.check();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RunConfig, AMistakeIsNamedWithTheNearestKey) {
  EXPECT_NE(refusal("train.epoch_s=5").find("did you mean 'epochs'?"), std::string::npos);
  EXPECT_NE(refusal("trian.epochs=5").find("did you mean 'train'?"), std::string::npos);
  EXPECT_NE(refusal("train.epochs").find("section.key=value"), std::string::npos);
  EXPECT_NE(refusal("train.epochs=many").find("a whole number >= 0"), std::string::npos);
  EXPECT_NE(refusal("train.negatives.target=0").find("target_supervision"), std::string::npos);
}

}  // namespace
}  // namespace cfaa::test
