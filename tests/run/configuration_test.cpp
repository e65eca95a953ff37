#include "host/run/configuration.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/paths.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

std::string refusal_of_set(const std::string& assignment) {
  return error_of([&] {
    Configuration configuration;
    configuration.set(assignment);
    configuration.run.check();
  });
}

std::string refusal_of_file(const std::string& text) {
  const TemporaryFolder folder;
  write_text(folder.path("c.json"), text);
  return error_of([&] { Configuration().read(folder.path("c.json")); });
}

TEST(Configuration, EveryReadyMadeFileIsAccepted) {
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path("configs"))) {
    if (entry.is_directory()) continue;
    Configuration configuration;
    EXPECT_NO_THROW(configuration.read(entry.path().string())) << entry.path();
    EXPECT_NO_THROW(configuration.run.check()) << entry.path();
    ++read;
  }

  EXPECT_GE(read, 13);
}

TEST(Configuration, AMistakeIsNamedWithTheNearestKey) {
  EXPECT_NE(refusal_of_set("train.epoch_s=5").find("did you mean 'epochs'?"), std::string::npos);
  EXPECT_NE(refusal_of_set("trian.epochs=5").find("did you mean 'train'?"), std::string::npos);
  EXPECT_NE(refusal_of_set("train.epochs").find("section.key=value"), std::string::npos);
  EXPECT_NE(refusal_of_set("train.epochs=many").find("a whole number"), std::string::npos);
  EXPECT_NE(refusal_of_set("train.negatives.target=0").find("target_supervision"),
            std::string::npos);
}

TEST(Configuration, SectionsOfEveryCommandAreChecked) {
  EXPECT_NE(refusal_of_file(R"({"prepare": {"positve": 4}})").find("did you mean 'positive'?"),
            std::string::npos);
  EXPECT_NE(refusal_of_file(R"({"embed": {"poling": "mean"}})").find("did you mean 'pooling'?"),
            std::string::npos);
  EXPECT_NE(refusal_of_file(R"({"trian": {}})").find("did you mean 'train'?"), std::string::npos);
}

TEST(Configuration, SingleValuesOfEverySectionCanBeSet) {
  Configuration configuration;
  configuration.set("prepare.positive=3");
  configuration.set("embed.max_length=64");
  configuration.set("model.layers=64,32");
  configuration.set("eval.k=1 3");

  EXPECT_EQ(configuration.prepare.positive, 3);
  EXPECT_EQ(configuration.embed.max_length, 64);
  EXPECT_EQ(configuration.run.model.layers, (std::vector<int64_t>{64, 32}));
  EXPECT_EQ(configuration.run.eval.k, (std::vector<int64_t>{1, 3}));
}

}  // namespace
}  // namespace cfaa::test
