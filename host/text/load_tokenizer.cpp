// Reading a tokenizer from a Hugging Face directory: which files count, and what they say.

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "host/core/error.h"
#include "host/io/json_file.h"
#include "host/io/utf8.h"
#include "host/text/byte_bpe.h"
#include "host/text/tokenizer.h"
#include "host/text/wordpiece.h"

namespace cfaa {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Special tokens are written as a string, or as an object with its text in "content".
std::string token_field(const json& config, const char* name, const std::string& fallback,
                        const fs::path& path) {
  const auto found = config.find(name);
  if (found != config.end() && found->is_object()) {
    return field<std::string>(*found, "content", fallback, path);
  }
  return field<std::string>(config, name, fallback, path);
}

constexpr std::int64_t kMostTokens = 2'000'000;

// A member of an object, null where it has none. Never a copy: a list may be all of a large file.
const json& member(const json& object, const char* name) {
  static const json absent;
  const auto found = object.find(name);
  return found == object.end() ? absent : *found;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

// The reader's state: the directory, its tokenizer_config.json and the tokens read so far.
class Reader {
 public:
  Reader(const std::string& directory, const TokenizerOptions& options)
      : directory_(directory), options_(options) {
    if (!fs::is_directory(directory_)) {
      throw Error("there is no directory '" + directory +
                  "'; give the folder of a Hugging Face model, with its vocabulary");
    }
    config_path_ = directory_ / "tokenizer_config.json";
    config_ = fs::exists(config_path_) ? read_json_object(config_path_) : json::object();
    common_.special_literals = options.special_literals;
    // Hugging Face writes 1e30 where there is no limit.
    const double limit = field<double>(config_, "model_max_length", 1e30, config_path_);
    if (limit >= 1 && limit < 1e9) common_.model_max_length = static_cast<std::size_t>(limit);
  }

  std::unique_ptr<Tokenizer> read() {
    if (fs::exists(directory_ / "vocab.txt")) return read_wordpiece();
    const bool vocab = fs::exists(directory_ / "vocab.json");
    const bool merges = fs::exists(directory_ / "merges.txt");
    if (vocab && merges) return read_byte_bpe();
    if (fs::exists(directory_ / "tokenizer.json")) return read_tokenizer_json();
    if (vocab || merges) {
      throw Error("'" + directory_.string() + "' has " + (vocab ? "vocab.json" : "merges.txt") +
                  " but no " + (vocab ? "merges.txt" : "vocab.json") +
                  "; byte-level BPE needs both files");
    }
    for (const char* name : {"sentencepiece.bpe.model", "spiece.model", "tokenizer.model"}) {
      if (fs::exists(directory_ / name)) {
        throw Error((directory_ / name).string() +
                    " is a SentencePiece model, which is not supported; use a BERT or RoBERTa "
                    "model");
      }
    }
    throw Error("'" + directory_.string() +
                "' has no vocabulary: there must be vocab.txt (BERT), vocab.json with merges.txt "
                "(RoBERTa), or tokenizer.json");
  }

 private:
  void require_class(std::initializer_list<const char*> stems) const {
    std::string name = field<std::string>(config_, "tokenizer_class", "", config_path_);
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    if (name.empty() || name == "PreTrainedTokenizer" || name == "TokenizersBackend") return;
    for (const std::string stem : stems) {
      if (name == stem + "Tokenizer") return;
    }
    throw Error(config_path_.string() + ": tokenizer_class '" + name +
                "' is not supported; BERT's WordPiece and RoBERTa's byte-level BPE are");
  }

  // Tokens that somebody added behind the vocabulary split the text in ways of their own.
  void refuse_added_tokens() const {
    const auto refuse = [&](const fs::path& path, const std::string& text) {
      throw Error(path.string() + ": the added token '" + text +
                  "' is not a special token of the vocabulary; added tokens are not supported");
    };
    const fs::path path = directory_ / "added_tokens.json";
    if (fs::exists(path)) {
      const json added = read_json(path);
      for (const auto& [text, id] : added.items()) {
        if (find_token(text) < 0) refuse(path, text);
      }
    }
    const auto decoder = config_.find("added_tokens_decoder");
    if (decoder == config_.end() || !decoder->is_object()) return;
    for (const auto& [id, token] : decoder->items()) {
      if (!field(token, "special", true, config_path_)) {
        refuse(config_path_, field<std::string>(token, "content", "", config_path_));
      }
    }
  }

  std::int32_t find_token(const std::string& text) const { return index_.find(text); }

  std::int32_t require_token(const std::string& text, const fs::path& path) const {
    const std::int32_t id = find_token(text);
    if (id < 0) throw Error(path.string() + " has no token '" + text + "'");
    return id;
  }

  void index_tokens() {
    std::vector<std::pair<std::string, std::int32_t>> entries;
    for (std::size_t id = 0; id < common_.tokens.size(); ++id) {
      entries.emplace_back(common_.tokens[id], static_cast<std::int32_t>(id));
    }
    index_ = StringIndex(entries);
  }

  // A JSON object from tokens to ids.
  void read_vocabulary(const json& vocabulary, const fs::path& path) {
    if (!vocabulary.is_object() || vocabulary.empty()) {
      throw Error(path.string() + ": the vocabulary is not a JSON object from tokens to ids");
    }
    for (const auto& [text, id] : vocabulary.items()) set_token(text, id, path);
    index_tokens();
  }

  void set_token(const std::string& text, const json& id, const fs::path& path) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() >= kMostTokens) {
      throw Error(path.string() + ": the id of token '" + text + "' is not usable: " + quoted(id));
    }
    const auto at = id.get<std::size_t>();
    if (at >= common_.tokens.size()) common_.tokens.resize(at + 1);
    common_.tokens[at] = text;
  }

  void add_literals(const std::vector<std::string>& texts, const std::string& strips_left) {
    for (const std::string& text : texts) {
      const std::int32_t id = find_token(text);
      if (id >= 0 && !text.empty()) common_.literals.push_back({text, id, text == strips_left});
    }
  }

  void set_pad(const std::string& text) {
    if (const std::int32_t id = find_token(text); id >= 0) common_.pad_id = id;
  }

  std::unique_ptr<Tokenizer> read_wordpiece() {
    require_class({"Bert", "DistilBert", "Electra", "MobileBert", "LayoutLM", "ConvBert"});
    const fs::path path = directory_ / "vocab.txt";
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      std::string repaired;
      std::size_t replaced = 0;
      if (well_formed(line, repaired, replaced); replaced > 0) {
        throw Error(path.string() + " line " + std::to_string(common_.tokens.size() + 1) +
                    " is not UTF-8");
      }
      common_.tokens.push_back(line);
    }
    if (common_.tokens.empty()) throw Error(path.string() + " is empty");
    index_tokens();
    refuse_added_tokens();

    const auto name = [&](const char* key, const char* fallback) {
      return token_field(config_, key, fallback, config_path_);
    };
    const std::string cls = name("cls_token", "[CLS]"), sep = name("sep_token", "[SEP]");
    const std::string unk = name("unk_token", "[UNK]"), pad = name("pad_token", "[PAD]");
    common_.opening = {require_token(cls, path)};
    common_.closing = {require_token(sep, path)};
    set_pad(pad);
    add_literals({unk, sep, pad, cls, name("mask_token", "[MASK]")}, "");

    WordPieceConfig config;
    config.unknown_id = require_token(unk, path);
    apply_config(config, true);
    return std::make_unique<WordPiece>(std::move(common_), config);
  }

  // What tokenizer_config.json says of the normaliser. Stripping accents follows lower-casing
  // where it is null.
  void apply_config(WordPieceConfig& config, bool default_lowercase) const {
    config.lowercase = options_.lower_case.value_or(
        field(config_, "do_lower_case", default_lowercase, config_path_));
    config.strip_accents = field(config_, "strip_accents", config.lowercase, config_path_);
    config.space_chinese = field(config_, "tokenize_chinese_chars", true, config_path_);
  }

  std::unique_ptr<Tokenizer> read_byte_bpe() {
    require_class({"Roberta", "Longformer", "Bart", "LED", "MVP"});
    const fs::path path = directory_ / "vocab.json";
    read_vocabulary(read_json(path), path);
    refuse_added_tokens();

    const auto name = [&](const char* key, const char* fallback) {
      return token_field(config_, key, fallback, config_path_);
    };
    const std::string cls = name("cls_token", "<s>"), sep = name("sep_token", "</s>");
    const std::string pad = name("pad_token", "<pad>"), mask = name("mask_token", "<mask>");
    common_.opening = {require_token(cls, path)};
    common_.closing = {require_token(sep, path)};
    set_pad(pad);
    add_literals({cls, pad, sep, name("unk_token", "<unk>"), mask}, mask);

    const fs::path merges_path = directory_ / "merges.txt";
    std::istringstream lines(read_file(merges_path));
    std::vector<Merge> merges;
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty() || line.starts_with("#version")) continue;
      const std::string where = merges_path.string() + " line " + std::to_string(number);
      const std::size_t space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
        throw Error(where + " is not two tokens with a space between: '" + line + "'");
      }
      merges.push_back(merge(line.substr(0, space), line.substr(space + 1), where));
    }
    ByteBpeConfig config;
    config.add_prefix_space = field(config_, "add_prefix_space", false, config_path_);
    return std::make_unique<ByteBpe>(std::move(common_), merges, config);
  }

  Merge merge(const std::string& left, const std::string& right, const std::string& where) const {
    const auto id = [&](const std::string& text) {
      const std::int32_t found = find_token(text);
      if (found < 0) throw Error(where + ": the token '" + text + "' is not in the vocabulary");
      return found;
    };
    return {id(left), id(right), id(left + right)};
  }

  // --- tokenizer.json ---

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error((directory_ / "tokenizer.json").string() + ": " + what +
                "; only BERT's WordPiece and RoBERTa's byte-level BPE are supported");
  }

  static std::string type_of(const json& object, const char* name) {
    return text_of(member(member(object, name), "type"));
  }

  std::unique_ptr<Tokenizer> read_tokenizer_json() {
    const fs::path path = directory_ / "tokenizer.json";
    const json root = read_json(path);
    if (!root.is_object() || !root.contains("model")) refuse("it describes no model");
    const json& model = root["model"];
    std::string type = type_of(root, "model");
    if (type.empty() && model.is_object()) type = model.contains("merges") ? "BPE" : "WordPiece";
    if (type != "WordPiece" && type != "BPE") refuse("the model is of type '" + type + "'");
    const std::string normalizer = type_of(root, "normalizer");
    const std::string pre_tokenizer = type_of(root, "pre_tokenizer");
    const bool wordpiece = type == "WordPiece";
    if (normalizer != (wordpiece ? "BertNormalizer" : "")) {
      refuse("the normalizer '" + normalizer + "' does not go with " + type);
    }
    if (pre_tokenizer != (wordpiece ? "BertPreTokenizer" : "ByteLevel")) {
      refuse("the pre_tokenizer '" + pre_tokenizer + "' does not go with " + type);
    }
    if (!model.contains("vocab")) refuse("the model has no vocabulary");
    read_vocabulary(model["vocab"], path);
    read_added_tokens(root, wordpiece, path);
    read_post_processor(member(root, "post_processor"));
    if (wordpiece) return read_wordpiece_json(root, path);
    return read_byte_bpe_json(root, path);
  }

  void read_added_tokens(const json& root, bool wordpiece, const fs::path& path) {
    const auto added = root.find("added_tokens");
    if (added == root.end() || !added->is_array()) return;
    for (const json& token : *added) {
      const auto text = field<std::string>(token, "content", "", path);
      const bool normalized = field(token, "normalized", false, path);
      if (text.empty() || !field(token, "special", false, path) ||
          field(token, "single_word", false, path) || (normalized && wordpiece)) {
        refuse("the added token '" + text + "' is not a plain special token");
      }
      set_token(text, member(token, "id"), path);
      common_.literals.push_back({text, token["id"].get<std::int32_t>(),
                                  field(token, "lstrip", false, path),
                                  field(token, "rstrip", false, path)});
    }
    index_tokens();
    const std::string named = token_field(config_, "pad_token", "", config_path_);
    for (const std::string& pad : {named, std::string("[PAD]"), std::string("<pad>")}) {
      if (!common_.pad_id) set_pad(pad);
    }
  }

  // An id that a post-processor puts around the text.
  std::int32_t special_id(const json& id) const {
    const bool known = id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
                       id.get<std::uint64_t>() < common_.tokens.size();
    if (!known) refuse("the post_processor's id " + quoted(id) + " is outside the vocabulary");
    return id.get<std::int32_t>();
  }

  // read_json bounds how deep a Sequence lies in another.
  void read_post_processor(const json& processor) {
    if (processor.is_null()) return;
    const std::string type = text_of(member(processor, "type"));
    const auto pair_id = [&](const char* name) {
      const json& pair = member(processor, name);
      if (!pair.is_array() || pair.size() != 2) {
        refuse(std::string("the post_processor's '") + name + "' is not [token, id]");
      }
      return special_id(pair[1]);
    };
    if (type == "ByteLevel") return;
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      common_.opening = {pair_id("cls")};
      common_.closing = {pair_id("sep")};
    } else if (type == "Sequence") {
      for (const json& part : member(processor, "processors")) read_post_processor(part);
    } else if (type == "TemplateProcessing") {
      read_template(processor);
    } else {
      refuse("the post_processor is of type '" + type + "'");
    }
  }

  void read_template(const json& processor) {
    bool behind = false;
    for (const json& part : member(processor, "single")) {
      if (part.contains("Sequence")) {
        if (behind) refuse("the template holds the text twice");
        behind = true;
      } else if (part.contains("SpecialToken")) {
        const std::string name = text_of(member(part["SpecialToken"], "id"));
        const json& ids = member(member(member(processor, "special_tokens"), name.c_str()), "ids");
        if (!ids.is_array()) refuse("the template's token '" + name + "' has no ids");
        for (const json& id : ids) {
          (behind ? common_.closing : common_.opening).push_back(special_id(id));
        }
      }
    }
    if (!behind) refuse("the template has no place for the text");
  }

  std::unique_ptr<Tokenizer> read_wordpiece_json(const json& root, const fs::path& path) {
    const json& normalizer = root["normalizer"];
    const json& model = root["model"];
    WordPieceConfig config;
    config.clean_text = field(normalizer, "clean_text", true, path);
    config.space_chinese =
        field(config_, "tokenize_chinese_chars",
              field(normalizer, "handle_chinese_chars", true, path), config_path_);
    config.lowercase = options_.lower_case.value_or(
        field(config_, "do_lower_case", field(normalizer, "lowercase", true, path), config_path_));
    config.strip_accents =
        field(config_, "strip_accents", field(normalizer, "strip_accents", config.lowercase, path),
              config_path_);
    config.continuation = field<std::string>(model, "continuing_subword_prefix", "##", path);
    config.longest_word = field<std::size_t>(model, "max_input_chars_per_word", 100, path);
    config.unknown_id = require_token(field<std::string>(model, "unk_token", "[UNK]", path), path);
    return std::make_unique<WordPiece>(std::move(common_), config);
  }

  std::unique_ptr<Tokenizer> read_byte_bpe_json(const json& root, const fs::path& path) {
    const json& model = root["model"];
    const json& pre_tokenizer = root["pre_tokenizer"];
    if (!field(pre_tokenizer, "use_regex", true, path)) refuse("the pre_tokenizer has no regex");
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!field<std::string>(model, name, "", path).empty()) {
        refuse(std::string("the model has a ") + name);
      }
    }
    if (field<double>(model, "dropout", 0, path) != 0 ||
        field(model, "byte_fallback", false, path)) {
      refuse("the model uses dropout or byte_fallback");
    }
    std::vector<Merge> merges;
    for (const json& entry : member(model, "merges")) {
      const std::string where = path.string() + " merge " + std::to_string(merges.size() + 1);
      if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
        merges.push_back(merge(entry[0], entry[1], where));
        continue;
      }
      const std::string text = entry.is_string() ? entry.get<std::string>() : "";
      const std::size_t space = text.find(' ');
      if (space == std::string::npos) throw Error(where + " is not two tokens: " + quoted(entry));
      merges.push_back(merge(text.substr(0, space), text.substr(space + 1), where));
    }
    ByteBpeConfig config;
    config.add_prefix_space = field(pre_tokenizer, "add_prefix_space", true, path);
    config.ignore_merges = field(model, "ignore_merges", false, path);
    config.fuse_unknown = field(model, "fuse_unk", false, path);
    const auto unknown = field<std::string>(model, "unk_token", "", path);
    if (!unknown.empty()) config.unknown_id = require_token(unknown, path);
    return std::make_unique<ByteBpe>(std::move(common_), merges, config);
  }

  fs::path directory_, config_path_;
  TokenizerOptions options_;
  json config_;
  Tokenizer::Common common_;
  StringIndex index_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& directory,
                                          const TokenizerOptions& options) {
  return Reader(directory, options).read();
}

}  // namespace cfaa
