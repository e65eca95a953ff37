// The encoder's network on every device, against the plain loops of bench/reference/encoder.h.

#include "host/encoder/encoder.h"

#include <gtest/gtest.h>

#include "bench/reference/encoder.h"
#include "host/device/make_context.h"
#include "tests/encoder/encoding.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

using test::encode_all;
using test::EncoderFiles;
using test::EncoderShape;
using test::Ids;
using test::random_encoder;
using test::random_ids;
using test::ReferenceEncoder;
using test::same_vectors;
using test::TemporaryFolder;
using test::Vectors;

class Encoder : public test::OnEncoderDevice {
 protected:
  std::unique_ptr<NetworkEngine> engine_of(const ReferenceEncoder& reference,
                                           const EncoderOptions& options,
                                           const EncoderFiles& files = {}) {
    TemporaryFolder folder;
    write_encoder(reference, folder.path(), files);
    const EncoderModel model(folder.path());
    return build_encoder(context(), model, options);
  }
};
CFAA_TEST_ON_DEVICES(Encoder);

// Sequences of 1 token up to the limit, each length twice, the second time another text.
std::vector<Ids> sequences_of(const EncoderShape& shape) {
  std::vector<Ids> sequences;
  const int64_t longest = shape.positions - shape.first_position();
  for (int64_t length = 1; length <= longest; length += length < 8 ? 1 : 5) {
    sequences.push_back(random_ids(shape, length, static_cast<uint64_t>(2 * length)));
    sequences.push_back(random_ids(shape, length, static_cast<uint64_t>(2 * length + 1)));
  }
  sequences.push_back(random_ids(shape, longest, 1000));
  return sequences;
}

std::vector<std::vector<double>> expected_of(const ReferenceEncoder& reference,
                                             const std::vector<Ids>& sequences, int64_t layer,
                                             Pooling pooling = Pooling::mean,
                                             bool unit_length = false) {
  std::vector<std::vector<double>> rows;
  for (const Ids& ids : sequences) {
    rows.push_back(encode(reference, ids, layer, pooling, unit_length));
  }
  return rows;
}

constexpr double kCosine = 0.99999, kTolerance = 1e-5;

TEST_P(Encoder, EqualsPlainLoopsOnBert) {
  const ReferenceEncoder reference = random_encoder({}, 1);
  const std::vector<Ids> sequences = sequences_of(reference.shape);

  const auto engine = engine_of(reference, {});

  EXPECT_EQ(engine->width(), 24);
  EXPECT_TRUE(same_vectors(encode_all(*engine, sequences), expected_of(reference, sequences, 2),
                           kCosine, kTolerance));
}

TEST_P(Encoder, EqualsPlainLoopsOnRoberta) {
  const EncoderShape shape{.family = "roberta",
                           .vocabulary = 73,
                           .hidden = 40,
                           .layers = 2,
                           .heads = 5,
                           .intermediate = 33,
                           .positions = 29,
                           .token_types = 1,
                           .pad_id = 1,
                           .epsilon = 1e-5};
  const ReferenceEncoder reference = random_encoder(shape, 2);
  const std::vector<Ids> sequences = sequences_of(shape);

  const auto engine = engine_of(reference, {.layer = "last"}, {.prefix = "roberta."});

  EXPECT_TRUE(same_vectors(encode_all(*engine, sequences), expected_of(reference, sequences, 2),
                           kCosine, kTolerance));
}

TEST_P(Encoder, HasEveryActivation) {
  for (const std::string activation : {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu"}) {
    EncoderShape shape;
    shape.activation = activation;
    shape.layers = 1;
    shape.token_types = 0;
    const ReferenceEncoder reference = random_encoder(shape, 3);
    const std::vector<Ids> sequences = sequences_of(shape);

    const auto engine = engine_of(reference, {.layer = "1"});

    EXPECT_TRUE(same_vectors(encode_all(*engine, sequences), expected_of(reference, sequences, 1),
                             kCosine, kTolerance))
        << activation;
  }
}

TEST_P(Encoder, EveryLayerCanBeAskedFor) {
  const ReferenceEncoder reference = random_encoder({}, 4);
  const std::vector<Ids> sequences = sequences_of(reference.shape);
  const std::vector<std::pair<std::string, int64_t>> layers = {
      {"0", 0}, {"1", 1}, {"3", 3}, {"penultimate", 2}, {"last", 3}};

  for (const auto& [name, index] : layers) {
    const auto engine = engine_of(reference, {.layer = name});

    EXPECT_TRUE(same_vectors(encode_all(*engine, sequences),
                             expected_of(reference, sequences, index), kCosine, kTolerance))
        << name;
  }
}

TEST_P(Encoder, PoolsByMeanFirstTokenAndMaximum) {
  const ReferenceEncoder reference = random_encoder({}, 5);
  const std::vector<Ids> sequences = sequences_of(reference.shape);

  for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::max}) {
    for (const bool unit_length : {false, true}) {
      const auto engine = engine_of(reference, {.pooling = pooling, .unit_length = unit_length});

      EXPECT_TRUE(same_vectors(encode_all(*engine, sequences),
                               expected_of(reference, sequences, 2, pooling, unit_length), kCosine,
                               kTolerance))
          << static_cast<int>(pooling) << unit_length;
    }
  }
}

TEST_P(Encoder, ReadsSixteenBitWeightsExactly) {
  for (const DType stored : {DType::f16, DType::bf16}) {
    const ReferenceEncoder reference = random_encoder({}, 6, stored);
    const std::vector<Ids> sequences = sequences_of(reference.shape);

    const auto engine = engine_of(reference, {}, {.stored = stored});

    EXPECT_TRUE(same_vectors(encode_all(*engine, sequences), expected_of(reference, sequences, 2),
                             kCosine, kTolerance))
        << name_of(stored);
  }
}

// What stands behind a sequence, and how long its neighbours are, is not seen.
TEST_P(Encoder, PaddingDoesNotLeak) {
  const ReferenceEncoder reference = random_encoder({}, 7);
  const auto engine = engine_of(reference, {.max_length = 16});
  const int64_t length = engine->padded_length(16);
  ASSERT_EQ(length, 16);
  const std::vector<Ids> sequences = {random_ids(reference.shape, 3, 1),
                                      random_ids(reference.shape, 16, 2),
                                      random_ids(reference.shape, 1, 3)};
  const auto padded = [&](int32_t filler) {
    Ids ids;
    for (const Ids& sequence : sequences) {
      ids.insert(ids.end(), sequence.begin(), sequence.end());
      ids.resize((ids.size() + 15) / 16 * 16, filler);
    }
    const Ids lengths = {3, 16, 1};
    engine->start(0, {{ids.data(), {3, length}}, {lengths.data(), {3}}});
    const MatrixView<const float> result = engine->finish(0);
    Vectors rows;
    for (int64_t r = 0; r < 3; ++r) rows.emplace_back(&result(r, 0), &result(r, 0) + 24);
    return rows;
  };

  const Vectors first = padded(0), second = padded(17);

  EXPECT_EQ(first, second);
  EXPECT_TRUE(same_vectors(first, expected_of(reference, sequences, 2), kCosine, kTolerance));
}

TEST_P(Encoder, OutlivesTheModelItWasBuiltFrom) {
  const ReferenceEncoder reference = random_encoder({}, 8);
  const std::vector<Ids> sequences = sequences_of(reference.shape);
  auto folder = std::make_unique<TemporaryFolder>();
  write_encoder(reference, folder->path());
  auto model = std::make_unique<EncoderModel>(folder->path());

  const auto engine = build_encoder(context(), *model, {});
  model.reset();
  folder.reset();

  EXPECT_TRUE(same_vectors(encode_all(*engine, sequences), expected_of(reference, sequences, 2),
                           kCosine, kTolerance));
}

TEST_P(Encoder, RunsGiveTheSameBitsAndBatchesTheSameVectors) {
  const ReferenceEncoder reference = random_encoder({}, 9);
  const std::vector<Ids> sequences = sequences_of(reference.shape);
  const auto engine = engine_of(reference, {});

  const Vectors once = encode_all(*engine, sequences);

  EXPECT_EQ(encode_all(*engine, sequences), once);
  EXPECT_EQ(encode_all(*engine_of(reference, {}), sequences), once);
  EXPECT_TRUE(same_vectors(encode_all(*engine, sequences, 1), once, kCosine, kTolerance));
}

TEST_P(Encoder, SixteenBitProductsAreNear) {
  const ReferenceEncoder reference = random_encoder({}, 10);
  const std::vector<Ids> sequences = sequences_of(reference.shape);
  for (const NetworkPrecision precision : {NetworkPrecision::f16, NetworkPrecision::bf16}) {
    std::unique_ptr<NetworkEngine> engine;
    try {
      engine = engine_of(reference, {.precision = precision});
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("this processor does not compute in it"),
                std::string::npos);
      continue;
    }

    EXPECT_TRUE(same_vectors(encode_all(*engine, sequences), expected_of(reference, sequences, 2),
                             0.999, 0.05))
        << engine->description();
  }
}

// Of the size of MiniLM, so that the matrix products are cut into blocks as in earnest: neither the
// number of rows beside a text nor the number of threads may change a bit of its vector.
TEST(EncoderOnTheCpu, NeitherNeighboursNorThreadsChangeABit) {
  const EncoderShape shape{.vocabulary = 50,
                           .hidden = 384,
                           .layers = 2,
                           .heads = 12,
                           .intermediate = 1536,
                           .positions = 130};
  const ReferenceEncoder reference = random_encoder(shape, 11);
  TemporaryFolder folder;
  write_encoder(reference, folder.path());
  const EncoderModel model(folder.path());
  std::vector<Ids> sequences;
  for (const int64_t length : {2, 7, 16, 23, 130}) {
    for (uint64_t i = 0; i < 20; ++i) sequences.push_back(random_ids(shape, length, i));
  }
  Vectors first;
  for (const int threads : {1, 2, 3}) {
    const auto context = make_context("cpu", {.threads = threads});
    std::unique_ptr<NetworkEngine> engine;
    try {
      engine = build_encoder(*context, model, {.layer = "last"});
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
    if (first.empty()) first = encode_all(*engine, sequences);

    for (const int64_t rows : {0, 1, 2, 3, 13}) {
      EXPECT_EQ(encode_all(*engine, sequences, rows), first)
          << threads << " threads, " << rows << " rows";
    }
  }
}

TEST(EncoderOnTheCpu, RefusesTf32) {
  const auto context = make_context("cpu");
  try {
    make_network_builder(*context, {.precision = NetworkPrecision::tf32});
    ADD_FAILURE() << "it was taken";
  } catch (const Error& e) {
    const std::string sentence = e.what();
    if (sentence.find("without OpenVINO") != std::string::npos) GTEST_SKIP() << sentence;
    EXPECT_NE(sentence.find("--precision tf32"), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace cfaa
