#include "host/encoder/sentence_transformer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "host/io/json_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A module's folder, which must lie inside the model's.
fs::path module_folder(const fs::path& directory, const std::string& path, const fs::path& origin) {
  const fs::path relative(path);
  const bool climbs = std::find(relative.begin(), relative.end(), "..") != relative.end();
  if (relative.is_absolute() || climbs) {
    throw Error(origin.string() + ": the module path '" + path + "' leads out of the folder");
  }
  return directory / relative;
}

Pooling read_pooling(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  const json config = read_json_object(path);
  // Older files have a switch for each kind, newer ones name the kind.
  std::vector<std::string> modes;
  const auto named = config.find("pooling_mode");
  if (named != config.end() && named->is_array()) {
    modes = field(config, "pooling_mode", modes, path);
  } else if (const auto mode = field<std::string>(config, "pooling_mode", "", path);
             !mode.empty()) {
    modes = {mode};
  } else {
    const std::string prefix = "pooling_mode_";
    for (const auto& [key, value] : config.items()) {
      if (key.starts_with(prefix) && field(config, key.c_str(), false, path)) {
        modes.push_back(key.substr(prefix.size()));
      }
    }
  }
  if (modes.size() == 1) {
    if (modes[0] == "mean" || modes[0] == "mean_tokens") return Pooling::mean;
    if (modes[0] == "cls" || modes[0] == "cls_token") return Pooling::cls;
    if (modes[0] == "max" || modes[0] == "max_tokens") return Pooling::max;
  }
  throw Error(fmt::format("{}: the pooling is [{}]; exactly one of mean, cls and max is supported",
                          path.string(), fmt::join(modes, ", ")));
}

// max_seq_length and do_lower_case; the file is named after the model in older directories.
void read_transformer(const fs::path& folder, EncoderOptions& options) {
  for (const char* name : {"sentence_bert_config.json", "sentence_roberta_config.json"}) {
    const fs::path path = folder / name;
    if (!fs::exists(path)) continue;
    const json config = read_json_object(path);
    const auto limit = field<int64_t>(config, "max_seq_length", 0, path);
    if (limit < 0) throw Error(path.string() + ": max_seq_length is below 0");
    if (limit > 0) {
      options.max_length = options.max_length > 0 ? std::min(options.max_length, limit) : limit;
    }
    if (!field(config, "do_lower_case", false, path)) return;
    const fs::path tokenizer = folder / "tokenizer_config.json";
    const bool folds = fs::exists(folder / "vocab.txt") &&
                       (!fs::exists(tokenizer) ||
                        field(read_json_object(tokenizer), "do_lower_case", true, tokenizer));
    if (!folds) {
      throw Error(path.string() +
                  ": do_lower_case is true, but the tokenizer keeps case; lower-casing before such "
                  "a tokenizer is not supported");
    }
    return;
  }
}

void refuse_prompt(const fs::path& directory) {
  const fs::path path = directory / "config_sentence_transformers.json";
  if (!fs::exists(path)) return;
  const json config = read_json_object(path);
  const auto name = field<std::string>(config, "default_prompt_name", "", path);
  if (name.empty()) return;
  const json prompts = field<json>(config, "prompts", json::object(), path);
  if (prompts.is_object() && !field<std::string>(prompts, name.c_str(), "", path).empty()) {
    throw Error(
        fmt::format("{}: the prompt '{}' is put before every text, which is not supported; "
                    "put it into the texts and clear default_prompt_name",
                    path.string(), name));
  }
}

}  // namespace

SentenceTransformer read_sentence_transformer(const std::string& directory,
                                              const EncoderOptions& options) {
  const fs::path path = fs::path(directory) / "modules.json";
  if (!fs::exists(path)) {
    throw Error("'" + directory +
                "' has no modules.json, so it is no sentence-transformers model; leave out --as "
                "sentence-transformers");
  }
  const json modules = read_json(path);
  if (!modules.is_array() || modules.size() < 2) {
    throw Error(path.string() +
                ": there must be a list of at least two modules, a transformer and "
                "a pooling");
  }
  SentenceTransformer result{"", options};
  result.options.layer = "last";
  result.options.unit_length = false;
  static constexpr const char* kOrder[] = {"Transformer", "Pooling", "Normalize"};
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const auto type =
        modules[i].is_object() ? field<std::string>(modules[i], "type", "", path) : std::string();
    const std::string kind = type.substr(type.rfind('.') + 1);
    if (i >= std::size(kOrder) || kind != kOrder[i]) {
      throw Error(
          fmt::format("{}: module {} is '{}'; supported are a Transformer, a Pooling and a "
                      "Normalize, in this order",
                      path.string(), i, type));
    }
    const fs::path folder =
        module_folder(directory, field<std::string>(modules[i], "path", "", path), path);
    if (kind == "Transformer") {
      result.model_directory = folder.string();
      read_transformer(folder, result.options);
    } else if (kind == "Pooling") {
      result.options.pooling = read_pooling(folder);
    } else {
      result.options.unit_length = true;
    }
  }
  refuse_prompt(directory);
  return result;
}

}  // namespace cfaa
