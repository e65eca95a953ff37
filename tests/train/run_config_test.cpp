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
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path("configs"))) {
    if (entry.is_directory()) continue;
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
  config.set("losses.vertical.weight=5");
  config.set("model.layers=[]");
  config.set("model.scorer=dot");

  copy.read(config.to_json(), "run.json");

  EXPECT_EQ(copy.to_json(), config.to_json());
  EXPECT_EQ(copy.model.losses.term("vertical").weight, 5);
  EXPECT_TRUE(copy.model.layers.empty());
}

// What version 0.1.0 wrote to run.json, or a user to a configuration.
RunConfig from_0_1_0(const char* variant, double vertical) {
  const nlohmann::json written = {{"model", {{"variant", variant}}},
                                  {"train",
                                   {{"table_rate", 0.25},
                                    {"table_decay", 3},
                                    {"lambda",
                                     {{"vertical", vertical},
                                      {"horizontal", 0.125},
                                      {"schedule", "warmup"},
                                      {"warmup_epochs", 7}}}}}};
  RunConfig config;
  config.read(written, "run.json");
  return config;
}

TEST(RunConfig, KeysOfVersion010AreReadAsThoseThatReplacedThem) {
  const RunConfig config = from_0_1_0("full", 2);

  EXPECT_EQ(config.train.embedding_rate, 0.25);
  EXPECT_EQ(config.train.embedding_decay, 3);
  for (const LossTerm& term : config.model.losses.used()) {
    EXPECT_EQ(term.weight, term.name == "vertical" ? 2 : 0.125);
    EXPECT_EQ(term.schedule, LossSchedule::warmup);
    EXPECT_EQ(term.warmup_epochs, 7);
  }
  EXPECT_EQ(config.model.losses.used().size(), 2u);
}

TEST(RunConfig, AVariantOfVersion010LeavesLossesOutWhateverTheirLambdas) {
  EXPECT_TRUE(from_0_1_0("base", 2).model.losses.used().empty());
  EXPECT_EQ(from_0_1_0("v", 2).model.losses.used().at(0).name, "vertical");
  EXPECT_EQ(from_0_1_0("full", 0).model.losses.used().at(0).name, "horizontal");
}

TEST(RunConfig, AWeightBringsBackALossThatTheVariantLeftOut) {
  RunConfig config;
  config.set("model.variant=base");
  config.set("losses.vertical.weight=0.25");

  ASSERT_EQ(config.model.losses.used().size(), 1u);
  EXPECT_EQ(config.model.losses.used()[0].name, "vertical");
  EXPECT_EQ(config.to_json()["model"]["variant"], "v");
  config.set("model.variant=full");
  EXPECT_EQ(config.model.losses.used().size(), 2u);
}

std::string refusal_of(const std::vector<std::string>& assignments) {
  RunConfig config;
  try {
    for (const std::string& assignment : assignments) config.set(assignment);
    config.check();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const std::string& assignment) {
  return refusal_of({assignment});
}

TEST(RunConfig, WhatDoesNotGoTogetherIsRefusedByItsKeys) {
  const auto names = [](const std::string& message, const std::string& key) {
    return message.find(key) != std::string::npos;
  };

  EXPECT_TRUE(names(refusal("train.domains=target"), "losses.vertical.weight is 0.5"));
  EXPECT_TRUE(names(
      refusal_of({"train.domains=target", "model.variant=base", "train.target_supervision=none"}),
      "train.target_supervision"));
  EXPECT_EQ(refusal_of({"train.domains=target", "model.variant=base"}), "");
  EXPECT_TRUE(names(refusal("model.scorer=none"), "signals.use"));
  EXPECT_EQ(refusal("signals.residual=model"), "") << "of all signals";
  EXPECT_TRUE(names(refusal_of({"signals.residual=model", "signals.use=[]"}), "signals.residual"));
  EXPECT_TRUE(names(refusal_of({"signals.residual=model", "model.scorer=none"}), "model.scorer"));
  EXPECT_TRUE(names(refusal_of({"signals.use=[\"ease\"]", "losses.coral.weight=2"}),
                    "losses.coral.weight is 2.0, and signals.use"));
  EXPECT_TRUE(names(refusal_of({"signals.use=[\"ease\"]", "model.layers=[5]"}),
                    "model.layers is [5], and signals.use"));
  EXPECT_EQ(refusal_of({"signals.use=[\"ease\"]", "model.scorer=none"}), "");
  EXPECT_TRUE(names(refusal("model.encoder=convolution"), "model.inputs"));
  EXPECT_TRUE(names(refusal_of({"model.encoder=word_memory", "model.inputs=[\"id\",\"review\"]"}),
                    "model.id_dim"));
  EXPECT_TRUE(names(refusal_of({"model.encoder=convolution", "model.inputs=[\"review\"]"}),
                    "model.words.model is empty"));
  EXPECT_TRUE(names(refusal_of({"model.encoder=convolution", "model.inputs=[\"id\",\"review\"]",
                                "model.id_dim=5"}),
                    "model.id_dim is 5"));
  EXPECT_TRUE(
      names(refusal_of({"model.scorer=dot", "model.scorer_dropout=0.5"}), "model.scorer_dropout"));
  EXPECT_TRUE(names(refusal("train.phases.second.labels=source"), "train.phases.first.steps"));
  EXPECT_TRUE(names(refusal_of({"losses.adversary.weight=1", "losses.adversary.phase=second"}),
                    "losses.adversary.phase is second"));
  EXPECT_TRUE(names(refusal_of({"train.phases.first.start=copy_source", "model.towers=shared"}),
                    "train.phases.first.start"));
}

TEST(RunConfig, AMistakeIsNamedWithTheNearestKey) {
  EXPECT_NE(refusal("train.epoch_s=5").find("did you mean 'epochs'?"), std::string::npos);
  EXPECT_NE(refusal("trian.epochs=5").find("did you mean 'train'?"), std::string::npos);
  EXPECT_NE(refusal("train.epochs").find("section.key=value"), std::string::npos);
  EXPECT_NE(refusal("train.epochs=many").find("a whole number from 0 to 1000000"),
            std::string::npos);
  EXPECT_NE(refusal("losses.vertikal.weight=1").find("did you mean 'vertical.weight'?"),
            std::string::npos);
  EXPECT_NE(refusal("losses.vertical.weight=-1").find("a number >= 0"), std::string::npos);
  EXPECT_NE(refusal("train.table_rate=0")
                .find("train.table_rate is now train.embedding_rate, which must be a number > 0"),
            std::string::npos);
  EXPECT_NE(refusal("train.negatives.target=0").find("target_supervision"), std::string::npos);
}

}  // namespace
}  // namespace cfaa::test
