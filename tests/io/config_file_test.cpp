#include "host/io/config_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/paths.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

TEST(ConfigFile, TakesWhatItIncludesAndPutsItsOwnKeysOverIt) {
  const TemporaryFolder folder;
  write_text(folder.path("base.json"),
             R"({"model": {"dim": 64, "layers": [64]}, "train": {"seed": 1}})");
  write_text(folder.path("own.json"), R"({"include": "base.json", "model": {"dim": 32}})");

  const json config = read_config_file(folder.path("own.json"));

  EXPECT_EQ(config, json::parse(R"({"model": {"dim": 32, "layers": [64]}, "train": {"seed": 1}})"));
}

TEST(ConfigFile, RefusesACircleByName) {
  const TemporaryFolder folder;
  write_text(folder.path("a.json"), R"({"include": "b.json"})");
  write_text(folder.path("b.json"), R"({"include": "a.json"})");

  const std::string refusal = error_of([&] { read_config_file(folder.path("a.json")); });

  EXPECT_NE(refusal.find("a.json"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("circle"), std::string::npos) << refusal;
}

TEST(ConfigFile, NamesAnIncludedFileThatIsNotThere) {
  const TemporaryFolder folder;
  write_text(folder.path("own.json"), R"({"include": "absent.json"})");

  const std::string refusal = error_of([&] { read_config_file(folder.path("own.json")); });

  EXPECT_NE(refusal.find("absent.json"), std::string::npos) << refusal;
}

TEST(ConfigFile, ATasksConfigurationIsItsDataSets) {
  const json task = read_config_file(source_path("configs/douban_book_to_music.json"));

  EXPECT_EQ(task["model"]["dim"], 300);
  EXPECT_EQ(task["embed"]["lang"], "zh");
}

}  // namespace
}  // namespace cfaa::test
