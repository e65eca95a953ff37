#include "bench/reference/encoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <vector>

#include "host/core/error.h"
#include "host/core/normal.h"
#include "host/io/safetensors.h"

namespace cfaa::reference {
namespace {

using Matrix = std::vector<std::vector<double>>;  // (S, H)

uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float rounded_to(DType stored, float value) {
  if (stored == DType::f16) return half_to_float(float_to_half(value));
  if (stored == DType::bf16) return bfloat16_to_float(float_to_bfloat16(value));
  return value;
}

const EncoderTensor& tensor(const ReferenceEncoder& encoder, const std::string& name) {
  const auto found = encoder.tensors.find(name);
  CFAA_ASSERT(found != encoder.tensors.end());
  return found->second;
}

// y_o = sum_i W_oi x_i + b_o
Matrix linear(const ReferenceEncoder& encoder, const Matrix& x, const std::string& name) {
  const EncoderTensor& weight = tensor(encoder, name + ".weight");
  const EncoderTensor& bias = tensor(encoder, name + ".bias");
  const auto out = static_cast<std::size_t>(weight.shape[0]);
  const auto in = static_cast<std::size_t>(weight.shape[1]);
  Matrix y(x.size(), std::vector<double>(out));
  for (std::size_t s = 0; s < x.size(); ++s) {
    for (std::size_t o = 0; o < out; ++o) {
      double sum = bias.values[o];
      for (std::size_t i = 0; i < in; ++i) sum += weight.values[o * in + i] * x[s][i];
      y[s][o] = sum;
    }
  }
  return y;
}

// (x - mean) / sqrt(variance + epsilon) * gamma + beta, the variance biased
Matrix layer_norm(const ReferenceEncoder& encoder, Matrix x, const std::string& name) {
  const std::vector<float>& gamma = tensor(encoder, name + ".weight").values;
  const std::vector<float>& beta = tensor(encoder, name + ".bias").values;
  for (std::vector<double>& row : x) {
    const double count = static_cast<double>(row.size());
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / count;
    double variance = 0;
    for (const double value : row) variance += (value - mean) * (value - mean) / count;
    const double scale = 1 / std::sqrt(variance + encoder.shape.epsilon);
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = (row[i] - mean) * scale * gamma[i] + beta[i];
  }
  return x;
}

double activate(double x, const std::string& kind) {
  if (kind == "relu") return std::max(x, 0.0);
  if (kind == "gelu") return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  CFAA_ASSERT(kind == "gelu_new" || kind == "gelu_pytorch_tanh");
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

// softmax(Q K' / sqrt(d)) V for each head of d features
Matrix attention(const Matrix& q, const Matrix& k, const Matrix& v, std::size_t heads) {
  const std::size_t d = q[0].size() / heads;
  Matrix out(q.size(), std::vector<double>(q[0].size(), 0));
  std::vector<double> weight(k.size());
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t s = 0; s < q.size(); ++s) {
      for (std::size_t t = 0; t < k.size(); ++t) {
        double dot = 0;
        for (std::size_t i = head * d; i < (head + 1) * d; ++i) dot += q[s][i] * k[t][i];
        weight[t] = dot / std::sqrt(static_cast<double>(d));
      }
      const double largest = *std::max_element(weight.begin(), weight.end());
      double total = 0;
      for (double& w : weight) total += w = std::exp(w - largest);
      for (std::size_t t = 0; t < k.size(); ++t) {
        for (std::size_t i = head * d; i < (head + 1) * d; ++i) {
          out[s][i] += weight[t] / total * v[t][i];
        }
      }
    }
  }
  return out;
}

Matrix sum_of(Matrix a, const Matrix& b) {
  for (std::size_t s = 0; s < a.size(); ++s) {
    for (std::size_t i = 0; i < a[s].size(); ++i) a[s][i] += b[s][i];
  }
  return a;
}

Matrix embeddings(const ReferenceEncoder& encoder, const std::vector<int32_t>& ids) {
  const auto hidden = static_cast<std::size_t>(encoder.shape.hidden);
  const auto& words = tensor(encoder, "embeddings.word_embeddings.weight").values;
  const auto& places = tensor(encoder, "embeddings.position_embeddings.weight").values;
  Matrix x(ids.size(), std::vector<double>(hidden));
  for (std::size_t s = 0; s < ids.size(); ++s) {
    const std::size_t place = s + static_cast<std::size_t>(encoder.shape.first_position());
    for (std::size_t i = 0; i < hidden; ++i) {
      x[s][i] = static_cast<double>(words[static_cast<std::size_t>(ids[s]) * hidden + i]) +
                places[place * hidden + i];
      if (encoder.shape.token_types > 0) {
        x[s][i] += tensor(encoder, "embeddings.token_type_embeddings.weight").values[i];
      }
    }
  }
  return layer_norm(encoder, x, "embeddings.LayerNorm");
}

Matrix block(const ReferenceEncoder& encoder, const Matrix& x, int64_t index) {
  const std::string name = "encoder.layer." + std::to_string(index);
  const Matrix context = attention(linear(encoder, x, name + ".attention.self.query"),
                                   linear(encoder, x, name + ".attention.self.key"),
                                   linear(encoder, x, name + ".attention.self.value"),
                                   static_cast<std::size_t>(encoder.shape.heads));
  const Matrix attended = linear(encoder, context, name + ".attention.output.dense");
  const Matrix h = layer_norm(encoder, sum_of(attended, x), name + ".attention.output.LayerNorm");
  Matrix wide = linear(encoder, h, name + ".intermediate.dense");
  for (auto& row : wide) {
    for (double& value : row) value = activate(value, encoder.shape.activation);
  }
  return layer_norm(encoder, sum_of(linear(encoder, wide, name + ".output.dense"), h),
                    name + ".output.LayerNorm");
}

nlohmann::json config_of(const EncoderShape& shape) {
  return {{"model_type", shape.family},
          {"vocab_size", shape.vocabulary},
          {"hidden_size", shape.hidden},
          {"num_hidden_layers", shape.layers},
          {"num_attention_heads", shape.heads},
          {"intermediate_size", shape.intermediate},
          {"max_position_embeddings", shape.positions},
          {"type_vocab_size", shape.token_types},
          {"pad_token_id", shape.pad_id},
          {"hidden_act", shape.activation},
          {"layer_norm_eps", shape.epsilon}};
}

std::string stored_name(const std::string& name, const EncoderFiles& files) {
  std::string stored = files.prefix + name;
  const std::size_t at = stored.find("LayerNorm.");
  if (files.old_names && at != std::string::npos) {
    const std::size_t end = at + std::string("LayerNorm.").size();
    stored.replace(end, std::string::npos, stored.ends_with("weight") ? "gamma" : "beta");
  }
  return stored;
}

}  // namespace

ReferenceEncoder random_encoder(const EncoderShape& shape, uint64_t seed, DType stored) {
  ReferenceEncoder encoder{shape, {}};
  const Philox random{seed};
  uint64_t stream = 0;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& extents, double mean,
                       double spread) {
    EncoderTensor values{extents, {}};
    int64_t count = 1;
    for (const int64_t extent : extents) count *= extent;
    ++stream;
    for (int64_t i = 0; i < count; ++i) {
      const double n = standard_normal(random(static_cast<uint64_t>(i), stream));
      values.values.push_back(rounded_to(stored, static_cast<float>(mean + spread * n)));
    }
    encoder.tensors[name] = std::move(values);
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {shape.hidden}, 1, 0.3);
    add(name + ".bias", {shape.hidden}, 0, 0.2);
  };
  const auto dense = [&](const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", {out, in}, 0, 0.2);
    add(name + ".bias", {out}, 0, 0.2);
  };
  add("embeddings.word_embeddings.weight", {shape.vocabulary, shape.hidden}, 0, 0.4);
  add("embeddings.position_embeddings.weight", {shape.positions, shape.hidden}, 0, 0.4);
  if (shape.token_types > 0) {
    add("embeddings.token_type_embeddings.weight", {shape.token_types, shape.hidden}, 0, 0.4);
  }
  norm("embeddings.LayerNorm");
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string name = "encoder.layer." + std::to_string(i);
    for (const char* part : {"query", "key", "value"}) {
      dense(name + ".attention.self." + part, shape.hidden, shape.hidden);
    }
    dense(name + ".attention.output.dense", shape.hidden, shape.hidden);
    norm(name + ".attention.output.LayerNorm");
    dense(name + ".intermediate.dense", shape.intermediate, shape.hidden);
    dense(name + ".output.dense", shape.hidden, shape.intermediate);
    norm(name + ".output.LayerNorm");
  }
  return encoder;
}

std::vector<double> encode(const ReferenceEncoder& encoder, const std::vector<int32_t>& ids,
                           int64_t layer, Pooling pooling, bool unit_length) {
  Matrix x = embeddings(encoder, ids);
  for (int64_t i = 0; i < layer; ++i) x = block(encoder, x, i);
  std::vector<double> pooled = x[0];
  for (std::size_t s = 1; s < x.size() && pooling != Pooling::cls; ++s) {
    for (std::size_t i = 0; i < pooled.size(); ++i) {
      pooled[i] = pooling == Pooling::max ? std::max(pooled[i], x[s][i]) : pooled[i] + x[s][i];
    }
  }
  double scale = pooling == Pooling::mean ? 1.0 / static_cast<double>(x.size()) : 1.0;
  if (unit_length) {
    double squares = 0;
    for (const double value : pooled) squares += value * value;
    scale = 1 / std::sqrt(squares);
  }
  for (double& value : pooled) value *= scale;
  return pooled;
}

void write_encoder(const ReferenceEncoder& encoder, const std::string& folder,
                   const EncoderFiles& files) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json") << config_of(encoder.shape).dump(2) << "\n";
  std::vector<SafetensorsWriter> writers(static_cast<std::size_t>(files.shards));
  std::vector<std::vector<uint16_t>> halves;
  halves.reserve(encoder.tensors.size());
  nlohmann::json map;
  std::size_t next = 0;
  const auto shard_name = [&](std::size_t shard) {
    return "model-" + std::to_string(shard) + ".safetensors";
  };
  for (const auto& [name, values] : encoder.tensors) {
    const std::string stored = stored_name(name, files);
    const std::size_t shard = next++ % writers.size();
    map[stored] = shard_name(shard);
    const void* data = values.values.data();
    if (files.stored != DType::f32) {
      halves.emplace_back();
      for (const float value : values.values) {
        halves.back().push_back(files.stored == DType::f16 ? float_to_half(value)
                                                           : float_to_bfloat16(value));
      }
      data = halves.back().data();
    }
    writers[shard].add(stored, files.stored, values.shape, data);
  }
  std::vector<int64_t> position_ids(static_cast<std::size_t>(encoder.shape.positions));
  std::iota(position_ids.begin(), position_ids.end(), 0);
  if (files.old_names) {
    writers[0].add(files.prefix + "embeddings.position_ids", {1, encoder.shape.positions},
                   position_ids.data());
  }
  if (writers.size() == 1) {
    writers[0].write(folder + "/model.safetensors");
    return;
  }
  for (std::size_t i = 0; i < writers.size(); ++i) writers[i].write(folder + "/" + shard_name(i));
  std::ofstream(folder + "/model.safetensors.index.json")
      << nlohmann::json{{"weight_map", map}}.dump(2) << "\n";
}

std::vector<int32_t> random_ids(const EncoderShape& shape, int64_t length, uint64_t seed) {
  const Philox random{seed};
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) {
    ids.push_back(static_cast<int32_t>(
        random.below(static_cast<uint64_t>(shape.vocabulary), static_cast<uint64_t>(i), 3)));
  }
  return ids;
}

}  // namespace cfaa::reference
