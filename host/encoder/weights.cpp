#include "host/encoder/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "host/io/content_hash.h"
#include "host/io/json_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Shape = std::vector<int64_t>;

// Every tensor of the network, by its name without prefix.
std::map<std::string, Shape> expected_tensors(const EncoderConfig& config) {
  std::map<std::string, Shape> expected;
  const int64_t h = config.hidden, f = config.intermediate;
  const auto norm = [&](const std::string& name) {
    expected[name + ".weight"] = {h};
    expected[name + ".bias"] = {h};
  };
  const auto linear = [&](const std::string& name, int64_t out, int64_t in) {
    expected[name + ".weight"] = {out, in};
    expected[name + ".bias"] = {out};
  };
  expected["embeddings.word_embeddings.weight"] = {config.vocabulary, h};
  expected["embeddings.position_embeddings.weight"] = {config.positions, h};
  if (config.token_types > 0) {
    expected["embeddings.token_type_embeddings.weight"] = {config.token_types, h};
  }
  norm("embeddings.LayerNorm");
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string block = "encoder.layer." + std::to_string(i);
    for (const char* part : {"query", "key", "value"}) {
      linear(block + ".attention.self." + part, h, h);
    }
    linear(block + ".attention.output.dense", h, h);
    norm(block + ".attention.output.LayerNorm");
    linear(block + ".intermediate.dense", f, h);
    linear(block + ".output.dense", h, f);
    norm(block + ".output.LayerNorm");
  }
  return expected;
}

// The name without prefix, as Hugging Face writes it now.
std::string canonical_name(std::string name) {
  for (const std::string prefix : {"bert.", "roberta."}) {
    if (name.starts_with(prefix)) {
      name.erase(0, prefix.size());
      break;
    }
  }
  const auto rename_end = [&](const std::string& old_end, const std::string& new_end) {
    if (name.ends_with(old_end))
      name.replace(name.size() - old_end.size(), old_end.size(), new_end);
  };
  rename_end("LayerNorm.gamma", "LayerNorm.weight");
  rename_end("LayerNorm.beta", "LayerNorm.bias");
  return name;
}

// Heads of pre-training and of classification, and the buffers that older versions saved.
bool is_passed_over(const std::string& name) {
  if (name == "embeddings.position_ids" || name == "embeddings.token_type_ids") return true;
  const std::string first = name.substr(0, name.find('.'));
  static const std::set<std::string> heads = {"pooler", "cls", "lm_head", "classifier",
                                              "qa_outputs"};
  return heads.count(first) > 0;
}

[[noreturn]] void refuse_without_weights(const fs::path& directory) {
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!fs::exists(directory / name)) continue;
    throw Error(fmt::format(
        "'{0}' has its weights as {1} alone, a format that can run code when it is read; convert "
        "it once: python3 -c \"from transformers import AutoModel; "
        "AutoModel.from_pretrained('{0}').save_pretrained('{0}', safe_serialization=True)\"",
        directory.string(), name));
  }
  throw Error(
      fmt::format("'{}' has no weights: there must be model.safetensors, or shards with "
                  "model.safetensors.index.json",
                  directory.string()));
}

}  // namespace

EncoderModel::EncoderModel(const std::string& directory)
    : directory_(directory), config_(read_encoder_config(directory)) {
  const fs::path single = fs::path(directory) / "model.safetensors";
  const fs::path index = fs::path(directory) / "model.safetensors.index.json";
  if (fs::exists(single)) {
    open(single.string());
  } else if (fs::exists(index)) {
    open_shards(index.string());
  } else {
    refuse_without_weights(directory);
  }
  collect();
}

void EncoderModel::open(const std::string& path) {
  files_.push_back(std::make_shared<const SafetensorsFile>(path));
}

void EncoderModel::open_shards(const std::string& index) {
  const json root = read_json(index);
  const auto map = root.is_object() ? root.find("weight_map") : root.end();
  if (map == root.end() || !map->is_object() || map->empty()) {
    throw Error(index + ": there is no 'weight_map' from tensors to files");
  }
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || fs::path(name).filename() != name) {
      throw Error(fmt::format("{}: the file of tensor '{}' is not a name in this folder: {}", index,
                              tensor, quoted(file)));
    }
    shards[name].push_back(tensor);
  }
  for (const auto& [name, tensors] : shards) {
    open((fs::path(directory_) / name).string());
    for (const std::string& tensor : tensors) {
      if (files_.back()->contains(tensor)) continue;
      throw Error(fmt::format("{}: has no tensor '{}', which {} says is there",
                              files_.back()->path(), tensor, index));
    }
  }
}

void EncoderModel::collect() {
  const std::map<std::string, Shape> expected = expected_tensors(config_);
  for (const auto& file : files_) {
    for (const auto& [name, entry] : file->header().tensors) {
      const std::string canonical = canonical_name(name);
      const auto wanted = expected.find(canonical);
      if (wanted == expected.end()) {
        if (!is_passed_over(canonical)) refuse_extra(name, file->path());
        continue;
      }
      if (entry.shape != wanted->second) {
        throw Error(fmt::format(
            "{}: tensor '{}' has the shape ({}) where config.json asks for ({})", file->path(),
            name, fmt::join(entry.shape, ", "), fmt::join(wanted->second, ", ")));
      }
      const DType type = file->dtype(name);
      if (type != DType::f32 && type != DType::f16 && type != DType::bf16) {
        throw Error(
            fmt::format("{}: tensor '{}' is of type {}; float32, float16 and bfloat16 are "
                        "read",
                        file->path(), name, name_of(type)));
      }
      if (!weights_.emplace(canonical, Weights{name, type, entry.shape, file->bytes(name), file})
               .second) {
        throw Error(fmt::format("{}: tensor '{}' is there twice, under '{}' and '{}'; keep one",
                                file->path(), canonical, weights_.at(canonical).name, name));
      }
    }
  }
  for (const auto& [name, shape] : expected) {
    if (weights_.count(name)) continue;
    throw Error(
        fmt::format("'{}': the weights lack the tensor '{}' of shape ({}), which "
                    "config.json asks for",
                    directory_, name, fmt::join(shape, ", ")));
  }
}

void EncoderModel::refuse_extra(const std::string& name, const std::string& path) const {
  throw Error(fmt::format(
      "{}: tensor '{}' has no place in the {} encoder of {} layers that "
      "config.json describes",
      path, name, config_.family == EncoderFamily::bert ? "bert" : "roberta", config_.layers));
}

const Weights& EncoderModel::weights(const std::string& name) const {
  const auto found = weights_.find(name);
  CFAA_ASSERT(found != weights_.end());
  return found->second;
}

const std::string& EncoderModel::content_hash() const {
  if (!content_hash_.empty()) return content_hash_;
  ContentHash hash;
  hash.add(fmt::format("encoder {} heads {} first {} activation {} epsilon {}\n",
                       static_cast<int>(config_.family), config_.heads, config_.first_position,
                       static_cast<int>(config_.activation), config_.epsilon));
  for (const auto& [name, tensor] : weights_) {
    hash.add(fmt::format("{} {} {}\n", name, name_of(tensor.dtype), fmt::join(tensor.shape, " ")));
    hash.add(tensor.bytes.data(), tensor.bytes.size());
  }
  content_hash_ = hash.text();
  forget_pages();
  return content_hash_;
}

void EncoderModel::forget_pages() const {
  for (const auto& file : files_) file->forget_pages();
}

}  // namespace cfaa
