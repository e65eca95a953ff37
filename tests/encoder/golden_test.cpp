// The encoder against Hugging Face's own, in float64: CFAA_FIXTURES/fixtures/encoder and MiniLM,
// real weights that tools/get_model fetches.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/encoder/encoder.h"
#include "host/io/json_file.h"
#include "host/io/npy.h"
#include "host/text/tokenizer.h"
#include "tests/encoder/encoding.h"
#include "tests/golden.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using test::encode_all;
using test::golden_path;
using test::Ids;
using test::same_vectors;
using test::Vectors;

Vectors read_rows(const std::string& path) {
  const NpyFile file(path);
  const std::vector<float> values = file.read<float>();
  const auto cols = static_cast<std::size_t>(file.shape().at(1));
  Vectors rows;
  for (std::size_t at = 0; at < values.size(); at += cols) {
    rows.emplace_back(values.begin() + static_cast<long>(at),
                      values.begin() + static_cast<long>(at + cols));
  }
  return rows;
}

class EncoderGolden : public test::OnEncoderDevice {
 protected:
  // Texts of `fixture`, by the model in `directory`, tokenized here and from the golden ids.
  void check(const std::string& fixture, const std::string& directory) {
    const std::string folder = golden_path("fixtures/encoder/" + fixture);
    const auto sequences = read_json(folder + "/ids.json").get<std::vector<Ids>>();
    const auto texts = read_json(folder + "/sentences.json").get<std::vector<std::string>>();
    const EncoderModel model(directory);
    const auto tokenizer = load_tokenizer(directory);
    EncoderOptions options;
    options.max_length = read_json(folder + "/case.json").at("max_length").get<int64_t>();
    ASSERT_EQ(longest_sequence(model, *tokenizer, options), options.max_length);
    TokenizerScratch scratch(*tokenizer);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Ids ids;
      tokenizer->encode(texts[i], static_cast<std::size_t>(options.max_length), scratch, ids);
      ASSERT_EQ(ids, sequences[i]) << i;
    }

    const Vectors penultimate = encode_all(*build_encoder(context(), model, options), sequences);
    options.layer = "last";
    const Vectors last = encode_all(*build_encoder(context(), model, options), sequences);

    EXPECT_TRUE(same_vectors(penultimate, read_rows(folder + "/expected.npy"), 0.99999, 1e-5));
    EXPECT_TRUE(same_vectors(last, read_rows(folder + "/last_expected.npy"), 0.99999, 1e-5));
  }
};
CFAA_TEST_ON_DEVICES(EncoderGolden);

TEST_P(EncoderGolden, EqualsHuggingFaceOnEveryTinyModel) {
  CFAA_SKIP_WITHOUT_GOLDEN("fixtures/encoder/tiny-bert");
  for (const char* name : {"tiny-bert", "tiny-bert-sharded", "tiny-roberta", "tiny-bert-chinese"}) {
    SCOPED_TRACE(name);
    check(name, golden_path(std::string("fixtures/encoder/") + name));
  }
}

TEST_P(EncoderGolden, EqualsHuggingFaceOnMiniLm) {
  const std::string model = test::source_path("build/models/minilm");
  CFAA_SKIP_WITHOUT_GOLDEN("fixtures/encoder/minilm");
  if (!fs::exists(model)) GTEST_SKIP() << "no model: tools/get_model minilm";
  if (GetParam() != "cpu") GTEST_SKIP() << "too large for an emulated device";
  check("minilm", model);
}

}  // namespace
}  // namespace cfaa
