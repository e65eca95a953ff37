// The encoder by TensorRT: agrees with the reference in every precision, a vector depends on its
// own tokens only, and engines are kept, found and rebuilt as they should.

#if CFAA_HAS_TENSORRT

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "bench/reference/encoder.h"
#include "cuda/tensorrt/cache.h"
#include "cuda/tensorrt/engine.h"
#include "cuda/tensorrt/network.h"
#include "host/core/error.h"
#include "host/encoder/encoder.h"
#include "host/io/json_file.h"
#include "host/io/npy.h"
#include "tests/encoder/encoding.h"
#include "tests/golden.h"
#include "tests/on_cuda.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"
#if CFAA_EMULATED
#include "emulator/control.h"
#endif

namespace cfaa::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxLength = 36;  // buckets of 16, 32 and 36
constexpr int64_t kBatchTokens = 64;

// Queues the sequences as one batch.
void start(NetworkEngine& engine, int slot, const std::vector<Ids>& sequences) {
  std::size_t longest = 0;
  for (const Ids& ids : sequences) longest = std::max(longest, ids.size());
  const int64_t columns = engine.padded_length(static_cast<int64_t>(longest));
  const auto rows = static_cast<int64_t>(sequences.size());
  std::vector<int32_t> padded(static_cast<std::size_t>(rows * columns), 0);
  std::vector<int32_t> lengths;
  for (std::size_t row = 0; row < sequences.size(); ++row) {
    std::copy(sequences[row].begin(), sequences[row].end(),
              padded.begin() + static_cast<int64_t>(row) * columns);
    lengths.push_back(static_cast<int32_t>(sequences[row].size()));
  }
  engine.start(slot, {{padded.data(), {rows, columns}}, {lengths.data(), {rows}}});
}

Vectors finish(NetworkEngine& engine, int slot) {
  const MatrixView<const float> found = engine.finish(slot);
  Vectors vectors;
  for (int64_t row = 0; row < found.rows(); ++row) {
    vectors.emplace_back(found[row].data, found[row].data + found.cols());
  }
  return vectors;
}

Vectors run(NetworkEngine& engine, const std::vector<Ids>& sequences, int slot = 0) {
  start(engine, slot, sequences);
  return finish(engine, slot);
}

class TensorRT : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    use(EncoderShape{}, {});
  }
#if CFAA_EMULATED
  void TearDown() override {
    emulator::set_library_capture_refused(false);
    emulator::set_tensorrt_version(110100);
    emulator::set_architecture(emulator::Architecture::sm_80);
  }
#endif

  void use(const EncoderShape& shape, const EncoderFiles& files, uint64_t seed = 1) {
    reference_ = random_encoder(shape, seed, files.stored);
    const std::string path = folder_.path("model-" + std::to_string(++models_));
    fs::create_directories(path);
    write_encoder(reference_, path, files);
    model_.emplace(path);
  }

  EncoderOptions options(NetworkPrecision precision = NetworkPrecision::f32) const {
    EncoderOptions options;
    options.precision = precision;
    options.max_length = kMaxLength;
    options.batch_tokens = kBatchTokens;
    return options;
  }

  EncoderOptions cached(NetworkPrecision precision = NetworkPrecision::f32) const {
    EncoderOptions with_cache = options(precision);
    with_cache.cache_directory = folder_.path("engines");
    return with_cache;
  }

  std::unique_ptr<NetworkEngine> build(const EncoderOptions& options) {
    return build_encoder(context(), *model_, options);
  }

  Ids ids(int64_t length, uint64_t seed) const {
    return random_ids(reference_.shape, length, seed);
  }

  std::vector<std::vector<double>> wanted(const std::vector<Ids>& sequences,
                                          const EncoderOptions& options) const {
    std::vector<std::vector<double>> rows;
    for (const Ids& ids : sequences) {
      rows.push_back(encode(reference_, ids, layer_index(model_->config(), options.layer)));
    }
    return rows;
  }

  // Sequences of each bucket, shortest and longest included, against the reference.
  void expect_agreement(const EncoderOptions& options, double cosine, double tolerance) {
    std::vector<Ids> sequences;
    for (const int64_t length : {1, 16, 7, 2, 17, 32, 33, 36, 3, 5, 9, 30, 11}) {
      sequences.push_back(ids(length, static_cast<uint64_t>(length)));
    }

    const Vectors found = encode_all(*build(options), sequences);

    EXPECT_TRUE(same_vectors(found, wanted(sequences, options), cosine, tolerance));
  }

  std::vector<std::string> files_ending(const std::string& ending) const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path("engines"))) {
      if (entry.path().string().ends_with(ending)) files.push_back(entry.path().string());
    }
    return files;
  }

  TemporaryFolder folder_;
  ReferenceEncoder reference_;
  std::optional<EncoderModel> model_;
  int models_ = 0;
};

// float32 is tests/encoder/encoder_test.cpp's matter, on every device.
TEST_F(TensorRT, SmallTypesStayCloseToTheReference) {
  EncoderShape roberta;
  roberta.family = "roberta";
  roberta.pad_id = 1;
  roberta.token_types = 1;
  roberta.epsilon = 1e-5;
  const std::vector<std::pair<EncoderShape, EncoderFiles>> models = {
      {EncoderShape{}, {}},
      {roberta, {.stored = DType::f16, .prefix = "roberta."}},
      {EncoderShape{.activation = "gelu_new"},
       {.stored = DType::bf16, .prefix = "bert.", .old_names = true}}};

  for (const auto& [shape, files] : models) {
    use(shape, files);
    expect_agreement(options(NetworkPrecision::f16), 0.999, 0.01);
    expect_agreement(options(NetworkPrecision::bf16), 0.999, 0.05);
    expect_agreement(options(NetworkPrecision::tf32), 0.99999, 0.005);
  }
}

TEST_F(TensorRT, SmallTypesStayCloseToHuggingFace) {
  CFAA_SKIP_WITHOUT_GOLDEN("fixtures/encoder/tiny-bert");
  for (const char* name : {"tiny-bert", "tiny-roberta", "tiny-bert-chinese"}) {
    const std::string folder = golden_path(std::string("fixtures/encoder/") + name);
    model_.emplace(folder);
    const auto sequences = read_json(folder + "/ids.json").get<std::vector<Ids>>();
    const NpyFile file(folder + "/expected.npy");
    const std::vector<float> values = file.read<float>();
    const auto width = static_cast<std::size_t>(file.shape().at(1));
    Vectors expected;
    for (std::size_t at = 0; at < values.size(); at += width) {
      expected.emplace_back(values.begin() + static_cast<int64_t>(at),
                            values.begin() + static_cast<int64_t>(at + width));
    }

    for (const NetworkPrecision precision : {NetworkPrecision::f16, NetworkPrecision::bf16}) {
      EncoderOptions all = options(precision);
      all.max_length = 128;
      const Vectors found = encode_all(*build(all), sequences);

      EXPECT_TRUE(same_vectors(found, expected, 0.999, 0.05)) << name;
    }
  }
}

#if CFAA_EMULATED
TEST_F(TensorRT, AMaskServesWhereAttentionKnowsNoLengths) {
  use(EncoderShape{}, {});
  emulator::set_attention_lengths_refused(true);

  expect_agreement(options(NetworkPrecision::f16), 0.999, 0.01);

  emulator::set_attention_lengths_refused(false);
}
#endif

TEST_F(TensorRT, TheBucketsAreThePowersOfTwoAndTheLargestLength) {
  const auto engine = build(options());

  EXPECT_EQ(engine->padded_length(1), 16);
  EXPECT_EQ(engine->padded_length(16), 16);
  EXPECT_EQ(engine->padded_length(17), 32);
  EXPECT_EQ(engine->padded_length(33), 36);
  EXPECT_EQ(engine->batch_rows(16), 4);
  EXPECT_EQ(engine->batch_rows(36), 1);
  EXPECT_EQ(engine->width(), reference_.shape.hidden);
  EXPECT_EQ(cuda::length_buckets(8, 64).size(), 1u);
  EXPECT_EQ(cuda::length_buckets(512, 64).back().rows, 1);
}

TEST_F(TensorRT, AVectorDoesNotDependOnTheOtherRowsOfItsBatch) {
  for (const NetworkPrecision precision : {NetworkPrecision::f32, NetworkPrecision::f16}) {
    const auto engine = build(options(precision));
    const Ids text = ids(11, 5);

    const Vectors alone = run(*engine, {text});
    const Vectors with_one = run(*engine, {text, ids(16, 6)});
    const Vectors with_three = run(*engine, {text, ids(1, 7), ids(15, 8), ids(4, 9)});

    EXPECT_EQ(alone[0], with_one[0]) << "the same bits";
    EXPECT_EQ(alone[0], with_three[0]);
  }
}

TEST_F(TensorRT, AVectorIsTheSameBitsHoweverOftenItIsRun) {
  const auto engine = build(options());
  const auto again = build(options());
  const Ids text = ids(20, 3);

  const Vectors first = run(*engine, {text});     // plainly
  const Vectors second = run(*engine, {text});    // captured
  const Vectors third = run(*engine, {text});     // replayed
  const Vectors other = run(*engine, {text}, 1);  // the other slot
  const Vectors elsewhere = run(*again, {text});  // another engine

  EXPECT_EQ(first, second);
  EXPECT_EQ(first, third);
  EXPECT_EQ(first, other);
  EXPECT_EQ(first, elsewhere);
}

TEST_F(TensorRT, TwoBatchesMayBeUnderWay) {
  const auto engine = build(options());
  const std::vector<Ids> a = {ids(3, 1), ids(12, 2)}, b = {ids(30, 3)};
  const Vectors alone_a = run(*engine, a), alone_b = run(*engine, b);

  for (int round = 0; round < 4; ++round) {
    start(*engine, 0, a);
    start(*engine, 1, b);

    EXPECT_EQ(finish(*engine, 1), alone_b);
    EXPECT_EQ(finish(*engine, 0), alone_a);
  }
}

TEST_F(TensorRT, AnEngineMayGoWithABatchUnderWay) {
  const auto engine = build(options());

  start(*engine, 0, {ids(3, 1)});
}

TEST_F(TensorRT, ItsDescriptionTellsVersionPrecisionAndShapes) {
  const std::string text = build(options(NetworkPrecision::bf16))->description();

  EXPECT_NE(text.find("TensorRT "), std::string::npos) << text;
  EXPECT_NE(text.find("bf16"), std::string::npos) << text;
  EXPECT_NE(text.find("4x16 2x32 1x36"), std::string::npos) << text;
}

TEST_F(TensorRT, AWeightBeyondHalfsRangeIsNamed) {
  reference_.tensors["encoder.layer.0.output.dense.bias"].values[3] = 1e6f;
  const std::string path = model_->directory();
  write_encoder(reference_, path, {});
  model_.emplace(path);

  try {
    build(options(NetworkPrecision::f16));
    FAIL() << "it was built";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("encoder.layer.0.output.dense.bias"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(TensorRT, WeightsThatDoNotFitAreNamed) {
  const auto builder = cuda::make_network_builder(context(), {.max_length = 16});
  const std::vector<float> values(12, 1.0f);
  const auto matrix = [&](int64_t rows, int64_t columns) {
    return Weights{"some.weight", DType::f32, {rows, columns}, std::as_bytes(std::span(values))};
  };
  const Weights bias{"some.bias", DType::f32, {2}, std::as_bytes(std::span(values).first(2))};
  const Node x = builder->embed(builder->token_ids(), matrix(3, 4));

  EXPECT_THROW(builder->linear(x, matrix(2, 6), bias), Error);
  EXPECT_THROW(builder->linear(x, matrix(3, 4), bias), Error);
  EXPECT_THROW(builder->embed_positions(matrix(3, 4), 0), Error) << "16 positions are needed";
}

// The cache.

TEST_F(TensorRT, AnEngineIsFoundAgain) {
  const Ids text = ids(9, 1);
  const Vectors built = run(*build(cached()), {text});
  ASSERT_EQ(files_ending(".engine").size(), 1u);
  ASSERT_EQ(files_ending(".cache").size(), 1u);

  testing::internal::CaptureStderr();
  const Vectors found = run(*build(cached()), {text});

  EXPECT_NE(testing::internal::GetCapturedStderr().find("was found in"), std::string::npos);
  EXPECT_EQ(found, built);
  EXPECT_EQ(files_ending(".engine").size(), 1u);
}

TEST_F(TensorRT, WhatAnEngineDependsOnHasAnEngineOfItsOwn) {
  build(cached());
  build(cached(NetworkPrecision::f16));
  EncoderOptions longer = cached();
  longer.max_length = 40;
  build(longer);
  EncoderOptions wider = cached();
  wider.batch_tokens *= 2;
  build(wider);
  EncoderOptions other_pooling = cached();
  other_pooling.pooling = Pooling::max;
  build(other_pooling);
  use(EncoderShape{}, {}, 2);
  build(cached());

  EXPECT_EQ(files_ending(".engine").size(), 6u);
  EXPECT_EQ(files_ending(".cache").size(), 1u) << "timings are the GPU's";
}

TEST_F(TensorRT, ADamagedEngineIsBuiltAnew) {
  const Ids text = ids(9, 1);
  const Vectors before = run(*build(cached()), {text});
  const std::string path = files_ending(".engine").at(0);
  const std::string whole = read_text(path);
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 1);

  for (const std::string& damaged :
       {flipped, whole.substr(0, whole.size() - 1), whole.substr(0, 10), std::string(),
        std::string(5000, 'x'), whole + "x"}) {
    write_text(path, damaged);
    testing::internal::CaptureStderr();
    const Vectors found = run(*build(cached()), {text});
    const std::string log = testing::internal::GetCapturedStderr();

    EXPECT_NE(log.find(path + " is damaged"), std::string::npos) << log;
    EXPECT_EQ(found, before);
    EXPECT_EQ(read_text(path).size(), whole.size()) << "and kept";
  }
}

TEST_F(TensorRT, AnotherEngineUnderItsNameIsBuiltAnew) {
  build(cached());
  const std::string mine = files_ending(".engine").at(0);
  build(cached(NetworkPrecision::bf16));
  std::vector<std::string> both = files_ending(".engine");
  const std::string other = both.at(0) == mine ? both.at(1) : both.at(0);
  fs::copy_file(other, mine, fs::copy_options::overwrite_existing);

  testing::internal::CaptureStderr();
  const Vectors found = run(*build(cached()), {ids(9, 1)});
  const std::string log = testing::internal::GetCapturedStderr();

  EXPECT_NE(log.find("was made for another model, GPU or version"), std::string::npos) << log;
  EXPECT_TRUE(same_vectors(found, wanted({ids(9, 1)}, cached()), 0.99999, 1e-4));
}

TEST_F(TensorRT, DamagedTimingsAreMeasuredAnew) {
  build(cached());
  write_text(files_ending(".cache").at(0), "nonsense");
  fs::remove(files_ending(".engine").at(0));

  testing::internal::CaptureStderr();
  build(cached());
  const std::string log = testing::internal::GetCapturedStderr();

  EXPECT_NE(log.find("is damaged"), std::string::npos) << log;
  EXPECT_GT(read_text(files_ending(".cache").at(0)).size(), 8u);
}

TEST_F(TensorRT, ACacheThatCannotBeWrittenCostsAWarning) {
  EncoderOptions nowhere = options();
  write_text(folder_.path("file"), "");
  nowhere.cache_directory = folder_.path("file") + "/engines";

  testing::internal::CaptureStderr();
  const Vectors found = run(*build(nowhere), {ids(9, 1)});
  const std::string log = testing::internal::GetCapturedStderr();

  EXPECT_NE(log.find("could not be kept"), std::string::npos) << log;
  EXPECT_EQ(found.size(), 1u);
}

#if CFAA_EMULATED

TEST_F(TensorRT, ACacheHitBuildsNothing) {
  const uint64_t before = emulator::counters().engines_built;
  build(cached());
  build(cached());
  build(cached());

  EXPECT_EQ(emulator::counters().engines_built, before + 1);
}

TEST_F(TensorRT, AnotherVersionOfTensorRTBuildsItsOwnEngine) {
  build(cached());
  emulator::set_tensorrt_version(110200);
  const uint64_t before = emulator::counters().engines_built;
  const auto engine = build(cached());

  EXPECT_EQ(emulator::counters().engines_built, before + 1);
  EXPECT_NE(engine->description().find("TensorRT 11.2.0"), std::string::npos);
  EXPECT_EQ(files_ending(".engine").size(), 2u);
  EXPECT_EQ(files_ending(".cache").size(), 2u);
}

TEST_F(TensorRT, AnotherGpuBuildsItsOwnEngine) {
  build(cached());
  emulator::set_architecture(emulator::Architecture::sm_90);
  const auto other = make_context("cuda", {.threads = 2, .seed = 1});
  const uint64_t before = emulator::counters().engines_built;
  const auto engine = build_encoder(*other, *model_, cached());

  EXPECT_EQ(emulator::counters().engines_built, before + 1);
  EXPECT_NE(engine->description().find("sm_90"), std::string::npos);
  EXPECT_EQ(files_ending(".engine").size(), 2u);
}

// The file is whole and its identity is right, and TensorRT says no all the same: here, since the
// GPU became another after the context was made.
TEST_F(TensorRT, AnEngineThatTensorRTDoesNotAcceptIsBuiltAnew) {
  build(cached());
  emulator::set_architecture(emulator::Architecture::sm_90);
  const uint64_t before = emulator::counters().engines_built;

  testing::internal::CaptureStderr();
  const Vectors found = run(*build(cached()), {ids(9, 1)});
  const std::string log = testing::internal::GetCapturedStderr();

  EXPECT_NE(log.find("is not accepted by TensorRT"), std::string::npos) << log;
  EXPECT_NE(log.find("the plan was made on sm_80"), std::string::npos) << log;
  EXPECT_EQ(emulator::counters().engines_built, before + 1);
  EXPECT_EQ(found.size(), 1u);
}

TEST_F(TensorRT, FromTheThirdBatchOnABatchIsOneGraphLaunch) {
  const auto engine = build(options());
  const Ids text = ids(9, 1);
  run(*engine, {text});
  run(*engine, {text});
  const emulator::Counters before = emulator::counters();

  start(*engine, 0, {text});

  const emulator::Counters after = emulator::counters();
  EXPECT_EQ(after.graph_launches, before.graph_launches + 1);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.synchronisations, before.synchronisations);
  EXPECT_EQ(after.copies, before.copies);
  EXPECT_EQ(finish(*engine, 0), run(*engine, {text}, 1));
}

TEST_F(TensorRT, RunsPlainlyWhereTheCaptureIsRefused) {
  const auto engine = build(options());
  const Ids text = ids(9, 1);
  emulator::set_library_capture_refused(false, true);
  const uint64_t before = emulator::counters().graph_launches;

  const Vectors first = run(*engine, {text});
  const Vectors second = run(*engine, {text});
  const Vectors third = run(*engine, {text});

  EXPECT_EQ(first, second);
  EXPECT_EQ(first, third);
  EXPECT_EQ(emulator::counters().graph_launches, before);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(TensorRT, SinglePrecisionIsNotTheTensorCores) {
  const Ids text = ids(20, 4);

  const Vectors single = run(*build(options()), {text});
  const Vectors tensor_cores = run(*build(options(NetworkPrecision::tf32)), {text});

  EXPECT_NE(single, tensor_cores);
}

#endif

}  // namespace
}  // namespace cfaa::test

#endif
