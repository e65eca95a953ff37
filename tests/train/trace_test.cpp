#include "host/train/trace.h"

#include <gtest/gtest.h>

#include "host/device/make_context.h"
#include "host/io/safetensors.h"
#include "tests/small_world.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

TEST(TraceFile, HoldsBatchParametersLossesAndGradientsByName) {
  const TemporaryFolder folder;
  const auto context = make_context("cpu", {.threads = 2, .seed = 5});
  const SmallWorld world;
  RunConfig config;
  config.model = small_model();
  config.train = small_training();
  BatchAssembler<float> assembler(world.data(), config.model, config.train);
  Cfaa<float> model(*context, config.model, config.alignment, model_shape(world.data()),
                    assembler.shape());
  StepRunner<float> runner(*context, model, assembler, config.train);
  runner.load(0);
  model.initialize(*context, runner.batch(), 3);

  write_trace<float>(*context, folder.path("trace"), 0, runner, model, config);

  const SafetensorsFile file(folder.path("trace/step-00000000.safetensors"));
  for (const char* name :
       {"before.source.user.id", "after.scorer.layer0.weight", "batch.source.label",
        "batch.target.item.history.touched", "batch.source.user.review", "x.source.user",
        "hidden0.target.item", "z", "score", "loss.score", "loss.vertical", "loss.horizontal",
        "gradient.score", "gradient.z", "gradient.z.vertical", "gradient.z.horizontal",
        "gradient.target.user.layer1.weight", "gradient.source.item.history"}) {
    EXPECT_NO_THROW(file.entry(name)) << name;
  }
  EXPECT_NE(file.read<float>("before.scorer.layer0.weight"),
            file.read<float>("after.scorer.layer0.weight"));
}

}  // namespace
}  // namespace cfaa::test
