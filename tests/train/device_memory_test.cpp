// What training needs of a GPU's memory is told by part, and named where there is not enough.

#include "host/train/device_memory.h"

#include <gtest/gtest.h>

#include "host/device/make_context.h"
#include "host/train/trainer.h"
#include "tests/refusal.h"
#include "tests/small_world.h"
#if CFAA_EMULATED
#include "emulator/control.h"
#endif

namespace cfaa::test {
namespace {

std::vector<MemoryPart> parts_of(const ModelOptions& model, std::size_t scratch = 0) {
  const SmallWorld world;
  const TrainOptions train = small_training();
  const BatchAssembler<float> assembler(world.data(), model, train);
  return memory_parts<float>(model, assembler.shape(), {.scratch = scratch});
}

TEST(DeviceMemory, CountsTheRowsOfEveryTableAndTwoMomentsOfEach) {
  ModelOptions model = small_model();
  model.inputs = {"id"};
  model.id_dim = 10;
  const std::size_t rows = 7 + 5 + 9 + 6;  // users and items of the source and of the target

  const std::vector<MemoryPart> parts = parts_of(model);

  EXPECT_EQ(parts[0].bytes, rows * 10 * sizeof(float));
  EXPECT_EQ(parts[1].bytes, 2 * parts[0].bytes);
}

TEST(DeviceMemory, IsALineForEveryPartAndForWhatIsLeft) {
  const std::vector<MemoryPart> parts = {{"tables", 3'000'000, ""}, {"batch", 500'000, ""}};

  const std::vector<std::string> lines =
      memory_table(parts, {.free = 6'000'000, .total = 10'000'000});

  ASSERT_EQ(lines.size(), 5u);
  EXPECT_NE(lines[1].find("3.0 MB"), std::string::npos) << lines[1];
  EXPECT_NE(lines[3].find("0.5 MB"), std::string::npos) << lines[3];  // nobody's part
  EXPECT_NE(lines[4].find("6.0 MB"), std::string::npos) << lines[4];
}

TEST(DeviceMemory, AShortageNamesTheLargestPartAndItsKey) {
  const std::vector<MemoryPart> parts = parts_of(small_model(), 1 << 30);

  const std::string message = explain_shortage("there is no room", parts);

  EXPECT_NE(message.find("scratch of a step with 1073.7 MB"), std::string::npos) << message;
  EXPECT_NE(message.find("train.batch_size"), std::string::npos) << message;
}

#if CFAA_EMULATED
// Trains a model on a device of so many bytes.
std::string refusal_at(std::size_t bytes, const ModelOptions& model, int64_t batch_size) {
  const TemporaryFolder folder;
  const SmallWorld world;
  RunConfig config;
  config.model = model;
  config.train = small_training();
  config.train.batch_size = batch_size;
  const std::filesystem::path log = folder.path("log.jsonl");
  const TrainerRequest request{.files = {folder.path(""), folder.path("checkpoints"),
                                         folder.path("best"), log, folder.path("events")}};
  emulator::set_memory_limit(bytes);
  std::string message;
  {
    const auto context = make_context("cuda", {.threads = 1});
    message = error_of([&] { train(*context, world.data(), config, request); });
  }
  emulator::set_memory_limit(std::size_t{8} << 30);
  EXPECT_FALSE(std::filesystem::exists(log)) << "nothing is written of a run that cannot begin";
  return message;
}

TEST(DeviceMemory, TablesThatDoNotFitAreNamed) {
  ModelOptions model = small_model();
  model.id_dim = 4096;

  const std::string message = refusal_at(1 << 20, model, 8);

  EXPECT_NE(message.find("the largest part is the moments of the tables"), std::string::npos)
      << message;
  EXPECT_NE(message.find("lower model.id_dim"), std::string::npos) << message;
}

TEST(DeviceMemory, ScratchThatDoesNotFitIsNamed) {
  ModelOptions model = small_model();
  model.dim = 64;

  const std::string message = refusal_at(6 << 20, model, 1024);

  EXPECT_NE(message.find("the largest part is the scratch of a step"), std::string::npos)
      << message;
  EXPECT_NE(message.find("lower train.batch_size"), std::string::npos) << message;
}
#endif

}  // namespace
}  // namespace cfaa::test
