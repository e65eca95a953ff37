// What a model directory may hold, and the sentence for what it may not.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "bench/reference/encoder.h"
#include "host/core/error.h"
#include "host/encoder/encoder.h"
#include "host/encoder/sentence_transformer.h"
#include "host/io/safetensors.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using reference::EncoderFiles;
using reference::EncoderShape;
using reference::random_encoder;
using reference::ReferenceEncoder;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

// The sentence that `work` refuses with, "" if it does not.
std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

#define EXPECT_REFUSED(work, part)                                 \
  do {                                                             \
    const std::string sentence = refusal([&] { work; });           \
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence; \
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence; \
  } while (false)

void edit_json(const std::string& path, const std::function<void(json&)>& edit) {
  json object = json::parse(read_text(path));
  edit(object);
  write_text(path, object.dump());
}

TEST(EncoderConfig, TakesHuggingFaceDefaultsForAbsentKeys) {
  TemporaryFolder folder;
  write_text(folder.path("config.json"), R"({"model_type": "bert", "dtype": "float32"})");
  const EncoderConfig bert = read_encoder_config(folder.path());
  write_text(folder.path("config.json"),
             R"({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": null})");
  const EncoderConfig roberta = read_encoder_config(folder.path());

  EXPECT_EQ(bert.vocabulary, 30522);
  EXPECT_EQ(bert.hidden, 768);
  EXPECT_EQ(bert.layers, 12);
  EXPECT_EQ(bert.heads, 12);
  EXPECT_EQ(bert.intermediate, 3072);
  EXPECT_EQ(bert.token_types, 2);
  EXPECT_EQ(bert.activation, Nonlinearity::gelu);
  EXPECT_EQ(bert.epsilon, 1e-12);
  EXPECT_EQ(bert.longest_sequence(), 512);
  EXPECT_EQ(roberta.vocabulary, 50265);
  EXPECT_EQ(roberta.first_position, 2);
  EXPECT_EQ(roberta.longest_sequence(), 512);
}

TEST(EncoderConfig, RefusesWhatIsNotABertOrRobertaEncoder) {
  const auto refused = [](const std::string& config) {
    TemporaryFolder folder;
    write_text(folder.path("config.json"), config);
    return refusal([&] { read_encoder_config(folder.path()); });
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"model_type": "xlm-roberta"})", "model_type 'xlm-roberta' is not supported"},
      {R"({"model_type": "distilbert"})", "model_type 'distilbert' is not supported"},
      {R"({})", "there is no 'model_type'"},
      {R"({"model_type": 3})", "'model_type' has the wrong type"},
      {R"([1])", "must hold one JSON object"},
      {R"({"model_type": "bert",)", "not valid JSON"},
      {R"({"model_type": "bert", "position_embedding_type": "relative_key"})", "relative_key"},
      {R"({"model_type": "bert", "is_decoder": true})", "is_decoder"},
      {R"({"model_type": "bert", "num_hidden_layers": 100000000})", "'num_hidden_layers' is 1"},
      {R"({"model_type": "bert", "hidden_act": "silu"})", "hidden_act 'silu'"},
      {R"({"model_type": "bert", "hidden_size": 100})", "not a multiple of num_attention_heads"},
      {R"({"model_type": "bert", "hidden_size": 0})", "'hidden_size' is 0"},
      {R"({"model_type": "bert", "hidden_size": 76.8})", "'hidden_size' is not a whole number"},
      {R"({"model_type": "bert", "layer_norm_eps": -1})", "layer_norm_eps"},
      {R"({"model_type": "roberta", "max_position_embeddings": 3})", "no room"}};

  for (const auto& [config, part] : cases) {
    EXPECT_NE(refused(config).find(part), std::string::npos) << config << ": " << refused(config);
  }
}

class EncoderModelFiles : public testing::Test {
 protected:
  void write(const EncoderFiles& files = {}) { write_encoder(reference_, folder_.path(), files); }
  std::string path(const std::string& name = "") const { return folder_.path(name); }

  // model.safetensors with the tensors as `edit` leaves them.
  void write_edited(const std::function<void(ReferenceEncoder&)>& edit) {
    ReferenceEncoder edited = reference_;
    edit(edited);
    write_encoder(edited, path());
  }

  ReferenceEncoder reference_ = random_encoder({}, 1);
  TemporaryFolder folder_;
};

TEST_F(EncoderModelFiles, OneHashForOneFileShardsPrefixesAndOldNames) {
  write();
  const std::string hash = EncoderModel(path()).content_hash();
  write({.prefix = "bert.", .old_names = true});
  EXPECT_EQ(EncoderModel(path()).content_hash(), hash);
  fs::remove(path("model.safetensors"));
  write({.shards = 3});
  EXPECT_EQ(EncoderModel(path()).content_hash(), hash);

  EXPECT_EQ(hash.size(), 32u);
}

TEST_F(EncoderModelFiles, TheHashSeesEveryWeightAndTheConfiguration) {
  write();
  const std::string hash = EncoderModel(path()).content_hash();
  write_edited([](ReferenceEncoder& e) {
    e.tensors["encoder.layer.2.output.LayerNorm.bias"].values.back() += 1e-3f;
  });
  EXPECT_NE(EncoderModel(path()).content_hash(), hash);

  write();
  edit_json(path("config.json"), [](json& config) { config["hidden_act"] = "relu"; });
  EXPECT_NE(EncoderModel(path()).content_hash(), hash);
}

TEST_F(EncoderModelFiles, PassesOverTheHeadsOfPreTraining) {
  for (const char* name : {"pooler.dense.weight", "cls.predictions.bias", "lm_head.dense.bias",
                           "classifier.weight", "qa_outputs.bias"}) {
    write_edited([&](ReferenceEncoder& e) { e.tensors[name] = {{2}, {1, 2}}; });

    EXPECT_EQ(refusal([&] { EncoderModel model(path()); }), "") << name;
  }
}

TEST_F(EncoderModelFiles, NamesAMissingExtraOrMisshapenTensor) {
  const std::string name = "encoder.layer.1.attention.self.key.weight";
  write_edited([&](ReferenceEncoder& e) { e.tensors.erase(name); });
  EXPECT_REFUSED(EncoderModel model(path()), "lack the tensor '" + name + "' of shape (24, 24)");

  write_edited([&](ReferenceEncoder& e) { e.tensors["encoder.layer.3.x"] = {{1}, {1}}; });
  EXPECT_REFUSED(EncoderModel model(path()), "'encoder.layer.3.x' has no place");

  write_edited([&](ReferenceEncoder& e) { e.tensors[name].shape = {48, 12}; });
  EXPECT_REFUSED(EncoderModel model(path()),
                 "'" + name + "' has the shape (48, 12) where config.json asks for (24, 24)");

  write_edited([&](ReferenceEncoder& e) { e.tensors["bert." + name] = e.tensors[name]; });
  EXPECT_REFUSED(EncoderModel model(path()), "is there twice");
}

TEST_F(EncoderModelFiles, RefusesWeightsOfAnotherType) {
  write();
  std::vector<double> values(24, 1);
  SafetensorsWriter writer;
  writer.add("embeddings.LayerNorm.bias", {24}, values.data());
  writer.write(path("model.safetensors"));

  EXPECT_REFUSED(EncoderModel model(path()), "'embeddings.LayerNorm.bias' is of type float64");
}

TEST_F(EncoderModelFiles, RefusesATruncatedFile) {
  write();
  fs::resize_file(path("model.safetensors"), fs::file_size(path("model.safetensors")) - 100);

  EXPECT_REFUSED(EncoderModel model(path()), "model.safetensors");
}

TEST_F(EncoderModelFiles, SaysHowToConvertAPickle) {
  write();
  fs::rename(path("model.safetensors"), path("pytorch_model.bin"));

  EXPECT_REFUSED(EncoderModel model(path()), "pytorch_model.bin alone");
  EXPECT_REFUSED(EncoderModel model(path()), "save_pretrained");
}

TEST_F(EncoderModelFiles, RefusesADirectoryWithoutWeightsConfigOrItself) {
  write();
  fs::remove(path("model.safetensors"));
  EXPECT_REFUSED(EncoderModel model(path()), "has no weights");
  fs::remove(path("config.json"));
  EXPECT_REFUSED(EncoderModel model(path()), "has no config.json");
  EXPECT_REFUSED(EncoderModel model(path("nowhere")), "there is no directory");
}

TEST_F(EncoderModelFiles, RefusesAShardThatIsMissingOrElsewhere) {
  const std::string index = path("model.safetensors.index.json");
  write({.shards = 2});
  edit_json(index, [](json& root) { root["weight_map"]["pooler.x"] = "model-0.safetensors"; });
  EXPECT_REFUSED(EncoderModel model(path()), "has no tensor 'pooler.x'");
  edit_json(index, [](json& root) { root["weight_map"]["pooler.x"] = "../model-0.safetensors"; });
  EXPECT_REFUSED(EncoderModel model(path()), "not a name in this folder");
  write({.shards = 2});
  fs::remove(path("model-1.safetensors"));
  EXPECT_REFUSED(EncoderModel model(path()), "model-1.safetensors: cannot be read");
  write_text(index, "{}");
  EXPECT_REFUSED(EncoderModel model(path()), "no 'weight_map'");
}

TEST_F(EncoderModelFiles, RefusesALayerThatIsNotThere) {
  write();
  const EncoderModel model(path());

  EXPECT_EQ(layer_index(model.config(), "penultimate"), 2);
  EXPECT_EQ(layer_index(model.config(), "0"), 0);
  for (const char* layer : {"4", "-1", "first", "", "1x"}) {
    EXPECT_REFUSED(layer_index(model.config(), layer),
                   "the model has the layers 0 (embeddings) to 3");
  }
}

TEST_F(EncoderModelFiles, TheLimitIsTheLeastOfFlagTokenizerAndPositions) {
  write();
  const EncoderModel model(path());
  write_text(path("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  EXPECT_EQ(longest_sequence(model, *load_tokenizer(path()), {}), 40);
  EXPECT_EQ(longest_sequence(model, *load_tokenizer(path()), {.max_length = 17}), 17);
  EXPECT_EQ(longest_sequence(model, *load_tokenizer(path()), {.max_length = 64}), 40);
  EXPECT_REFUSED(longest_sequence(model, *load_tokenizer(path()), {.max_length = 1}),
                 "--max-length 1");
  write_text(path("tokenizer_config.json"), R"({"model_max_length": 12})");
  EXPECT_EQ(longest_sequence(model, *load_tokenizer(path()), {.max_length = 17}), 12);

  std::string words;
  for (int i = 0; i < 57; ++i) words += "w" + std::to_string(i) + "\n";
  write_text(path("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + words);
  EXPECT_REFUSED(longest_sequence(model, *load_tokenizer(path()), {}),
                 "the tokenizer has 62 tokens and the word table of the weights only 61 rows");
}

class SentenceTransformerFiles : public testing::Test {
 protected:
  SentenceTransformerFiles() {
    fs::create_directories(path("1_Pooling"));
    write_text(path("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    modules({"sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling",
             "sentence_transformers.models.Normalize"});
    pooling({{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", false}});
    write_text(path("sentence_bert_config.json"),
               R"({"max_seq_length": 256, "do_lower_case": false})");
  }

  std::string path(const std::string& name = "") const { return folder_.path(name); }

  void modules(const std::vector<std::string>& types) {
    static constexpr const char* kFolders[] = {"", "1_Pooling", "2_X", "3_X"};
    json list = json::array();
    for (std::size_t i = 0; i < types.size(); ++i) {
      list.push_back({{"idx", i}, {"path", kFolders[i]}, {"type", types[i]}});
    }
    write_text(path("modules.json"), list.dump());
  }

  void pooling(const json& config) { write_text(path("1_Pooling/config.json"), config.dump()); }

  EncoderOptions read(const EncoderOptions& options = {}) {
    return read_sentence_transformer(path(), options).options;
  }

  TemporaryFolder folder_;
};

TEST_F(SentenceTransformerFiles, GiveTheOptions) {
  const EncoderOptions options = read({.precision = NetworkPrecision::bf16});

  EXPECT_EQ(options.layer, "last");
  EXPECT_EQ(options.pooling, Pooling::mean);
  EXPECT_TRUE(options.unit_length);
  EXPECT_EQ(options.max_length, 256);
  EXPECT_EQ(options.precision, NetworkPrecision::bf16);
  EXPECT_EQ(read({.max_length = 100}).max_length, 100);
  EXPECT_EQ(read({.max_length = 300}).max_length, 256);
}

TEST_F(SentenceTransformerFiles, NormaliseOnlyWhereTheModuleIsThere) {
  modules({"sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling"});

  EXPECT_FALSE(read({.unit_length = true}).unit_length);
}

TEST_F(SentenceTransformerFiles, PoolInTheOldAndTheNewSpelling) {
  pooling({{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", false}});
  EXPECT_EQ(read().pooling, Pooling::cls);
  pooling({{"pooling_mode_max_tokens", true}});
  EXPECT_EQ(read().pooling, Pooling::max);
  pooling({{"pooling_mode", "cls"}});
  EXPECT_EQ(read().pooling, Pooling::cls);
  pooling({{"pooling_mode", {"max"}}});
  EXPECT_EQ(read().pooling, Pooling::max);
}

TEST_F(SentenceTransformerFiles, RefuseOtherPoolings) {
  pooling({{"pooling_mode_mean_tokens", true}, {"pooling_mode_max_tokens", true}});
  EXPECT_REFUSED(read(), "exactly one of mean, cls and max");
  pooling({{"pooling_mode_lasttoken", true}});
  EXPECT_REFUSED(read(), "the pooling is [lasttoken]");
  pooling(json::object());
  EXPECT_REFUSED(read(), "exactly one of");
  pooling({{"pooling_mode_cls_token", "yes"}});
  EXPECT_REFUSED(read(), "'pooling_mode_cls_token' has the wrong type");
}

TEST_F(SentenceTransformerFiles, RefuseOtherModules) {
  modules({"sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling",
           "sentence_transformers.models.Dense"});
  EXPECT_REFUSED(read(), "module 2 is 'sentence_transformers.models.Dense'");
  modules({"sentence_transformers.models.Transformer"});
  EXPECT_REFUSED(read(), "at least two modules");
  write_text(path("modules.json"), R"([{"type": "Transformer", "path": "../x"}, {}])");
  EXPECT_REFUSED(read(), "leads out of the folder");
  fs::remove(path("modules.json"));
  EXPECT_REFUSED(read(), "has no modules.json");
}

TEST_F(SentenceTransformerFiles, RefuseAPromptAndLowerCasingOfACasedTokenizer) {
  write_text(path("config_sentence_transformers.json"),
             R"({"prompts": {"query": "q: "}, "default_prompt_name": null})");
  EXPECT_EQ(read().max_length, 256);
  write_text(path("config_sentence_transformers.json"),
             R"({"prompts": {"query": "q: "}, "default_prompt_name": "query"})");
  EXPECT_REFUSED(read(), "the prompt 'query'");
  fs::remove(path("config_sentence_transformers.json"));

  write_text(path("sentence_bert_config.json"), R"({"do_lower_case": true})");
  EXPECT_EQ(read().max_length, 0);
  write_text(path("tokenizer_config.json"), R"({"do_lower_case": false})");
  EXPECT_REFUSED(read(), "the tokenizer keeps case");
}

}  // namespace
}  // namespace cfaa
