// Every configuration of configs/baselines, small: trained on every device, through its phases.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/device/make_context.h"
#include "host/train/run_config.h"
#include "host/train/step_runner.h"
#include "host/train/trained_model.h"
#include "tests/compare.h"
#include "tests/paths.h"
#include "tests/small_world.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

// As the file says it, but for its sizes.
RunConfig small_config(const std::string& path) {
  RunConfig config;
  const nlohmann::json own = nlohmann::json::parse(read_text(path));
  if (own.contains("include")) {
    const std::filesystem::path base =
        std::filesystem::path(path).parent_path() / own.at("include").get<std::string>();
    config.read(nlohmann::json::parse(read_text(base.string())), base.string());
  }
  config.read(own, path);
  config.model.dim = 6;
  config.model.layers = {5};
  config.model.scorer_layers = {4};
  config.model.filters = 5;
  if (config.model.encoder == EncoderKind::word_memory) config.model.id_dim = 3;
  config.model.attention = 3;
  config.train.batch_size = 8;
  for (Phase& phase : config.train.phases.phases) {
    if (phase.steps > 0) phase.steps = 4;
  }
  config.check();
  return config;
}

struct Trained {
  std::vector<float> layers;
  DomainEmbeddings target;
  StepMeasures measures;
};

Trained train_small(Context& context, const RunConfig& config) {
  const SmallWorld world;
  BatchAssembler<float> assembler(world.data(), config.model, config.train);
  Cfaa<float> model(context, config.model, config.alignment, model_shape(world.data()),
                    assembler.shape());
  StepRunner<float> runner(context, model, assembler, config.train);
  runner.load(0);
  model.initialize(context, runner.batch(), 3);
  for (int64_t step = 0; step < 10; ++step) runner.run(step);
  Trained trained;
  trained.measures = runner.measures();
  runner.pause();
  trained.layers = to_host(context, model.parameters().dense());
  trained.target = embed_domain<float>(context, model, assembler, kTarget);
  return trained;
}

std::vector<std::string> configurations() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("configs/baselines"))) {
    paths.push_back(entry.path().string());
  }
  return paths;
}

class BaselineConfigs : public OnDevice {};
CFAA_TEST_ON_DEVICES(BaselineConfigs);

TEST_P(BaselineConfigs, TrainAlikeOnEveryDevice) {
  for (const std::string& path : configurations()) {
    const RunConfig config = small_config(path);
    const auto cpu = make_context("cpu", {.threads = 1, .seed = 5});
    const auto device = make_context(GetParam(), {.threads = 2, .seed = 5});
    const Trained expected = train_small(*cpu, config);

    const Trained found = train_small(*device, config);

    EXPECT_TRUE(close(expected.layers, found.layers, 2e-3)) << path;
    for (std::size_t side = 0; side < 2; ++side) {
      EXPECT_TRUE(close(expected.target.z[side], found.target.z[side], 2e-3)) << path;
    }
    ASSERT_EQ(found.measures.losses.size(), config.model.losses.used().size()) << path;
    for (const StepMeasures::Loss& loss : found.measures.losses) {
      EXPECT_GT(loss.value, 0) << path;
      EXPECT_GT(loss.norm, 0) << path;
    }
    if (GetParam() == "cpu") {
      EXPECT_EQ(expected.layers, found.layers) << path;
    }
  }
}

}  // namespace
}  // namespace cfaa::test
