#pragma once

// A Hugging Face model directory opened for encoding: its configuration, and its weights mapped
// from model.safetensors or from the shards that model.safetensors.index.json lists.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/encoder/config.h"
#include "host/encoder/network.h"
#include "host/io/safetensors.h"

namespace cfaa {

class EncoderModel {
 public:
  // Opens the directory and checks that every tensor of the configured network is there, has its
  // shape and is float32, float16 or bfloat16. Names may have the prefix "bert." or "roberta.", and
  // LayerNorm.gamma/.beta for .weight/.bias. The heads of pre-training and classification are
  // passed over; any other tensor is an Error that names it, as a missing or misshapen one is, and
  // a directory that has its weights as pytorch_model.bin alone.
  explicit EncoderModel(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const EncoderConfig& config() const { return config_; }

  // By the name without prefix, as Hugging Face writes it now: "encoder.layer.0.output.dense.bias".
  const Weights& weights(const std::string& name) const;

  // 32 hexadecimal digits over the configuration and all weights, by XXH3-128: the same for one
  // file and for shards. Reads every weight the first time it is asked for.
  const std::string& content_hash() const;

  // Tells the system that the mapped weights are not needed for now.
  void forget_pages() const;

 private:
  void open_shards(const std::string& index);
  void open(const std::string& path);
  void collect();
  void refuse_extra(const std::string& name, const std::string& path) const;

  std::string directory_;
  EncoderConfig config_;
  std::vector<std::shared_ptr<const SafetensorsFile>> files_;
  std::map<std::string, Weights> weights_;
  mutable std::string content_hash_;
};

}  // namespace cfaa
