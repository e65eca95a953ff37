#pragma once

// Targets that read a directory of files which somebody else wrote. An input is the files' contents
// in a fixed order with the byte 0x1D between them; an empty one is a file that is not there.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "host/core/error.h"
#include "host/encoder/sentence_transformer.h"
#include "host/encoder/weights.h"
#include "host/eval/user_metrics_file.h"
#include "host/io/content_hash.h"
#include "host/io/json_file.h"
#include "host/run/directory/run_directory.h"
#include "host/run/result.h"
#include "host/text/tokenizer.h"
#include "host/train/checkpoint.h"

namespace cfaa::fuzz {

constexpr char kBetweenFiles = '\x1D';

// A folder in memory that one program keeps for all its inputs.
class MemoryFolder {
 public:
  MemoryFolder() {
    std::string name = "/dev/shm/cfaa-fuzz-XXXXXX";
    must(::mkdtemp(name.data()) != nullptr, "a folder in /dev/shm");
    path_ = name;
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;

  std::string path() const { return path_.string(); }

  // Makes the folder hold `content` under `name`, or nothing where it is empty. Most inputs change
  // one file of those before.
  void put(const std::string& name, std::string_view content) {
    std::string& held = held_[name];
    if (held == content) return;
    held = content;
    const std::filesystem::path file = path_ / name;
    if (content.empty()) {
      std::filesystem::remove(file);
      return;
    }
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }

 private:
  std::filesystem::path path_;
  std::map<std::string, std::string> held_;  // name to content; "": not there
};

// The next file of an input.
inline std::string_view take_file(std::string_view& bytes) {
  const std::size_t end = std::min(bytes.find(kBetweenFiles), bytes.size());
  const std::string_view file = bytes.substr(0, end);
  bytes.remove_prefix(std::min(end + 1, bytes.size()));
  return file;
}

inline void put_files(MemoryFolder& folder, std::string_view& bytes,
                      std::initializer_list<const char*> names) {
  for (const char* name : names) folder.put(name, take_file(bytes));
}

// A tokenizer that loads encodes every text, with ids of its vocabulary.
inline void tokenizer(std::string_view bytes) {
  static MemoryFolder folder;
  put_files(folder, bytes,
            {"tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt",
             "added_tokens.json"});
  try {
    const auto loaded = load_tokenizer(folder.path(), {SpecialLiterals::kParity, {}});
    TokenizerScratch scratch(*loaded);
    std::vector<std::int32_t> ids;
    for (const std::string_view text : {bytes, std::string_view("Unaffable, <mask> [SEP] naïve")}) {
      loaded->encode(text, Tokenizer::kNoLimit, scratch, ids);
      for (const std::int32_t id : ids) {
        must(id >= 0 && static_cast<std::size_t>(id) < loaded->vocabulary_size(), "an id in range");
      }
    }
  } catch (const Error&) {
  }
}

// The header of a .safetensors file is the input's; length and data are made to fit it, so that the
// fuzzer reaches what they protect.
inline std::string with_data(std::string_view header) {
  if (header.empty()) return "";
  constexpr std::size_t kMost = 1 << 16;
  std::size_t end = 0;
  for (const auto& entry : parse_json(header)) {
    const auto offsets = entry.find("data_offsets");
    if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2) continue;
    const auto& last = offsets->back();
    if (last.is_number_unsigned()) end = std::max(end, std::min(kMost, last.get<std::size_t>()));
  }
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return file.append(header).append(end, '\0');
}

// A model that opens has every weight of its network.
inline void model_directory(std::string_view bytes) {
  static MemoryFolder folder;
  put_files(folder, bytes, {"config.json"});
  folder.put("model.safetensors", with_data(take_file(bytes)));
  put_files(folder, bytes,
            {"model.safetensors.index.json", "modules.json", "pooling/config.json",
             "sentence_bert_config.json", "config_sentence_transformers.json"});
  try {
    const EncoderModel model(folder.path());
    must(model.weights("embeddings.word_embeddings.weight").shape.size() == 2, "a matrix");
    must(model.content_hash().size() == 32, "a hash");
  } catch (const Error&) {
  }
  try {
    const SentenceTransformer read = read_sentence_transformer(folder.path(), {});
    must(!read.model_directory.empty(), "a folder");
  } catch (const Error&) {
  }
}

// A run: what describes it, what came of it, and where it stood. The manifest's hash is made to fit
// the arrays, so that the fuzzer reaches what it protects.
inline void run_directory(std::string_view bytes) {
  static MemoryFolder folder;
  const RunDirectory run(folder.path());
  put_files(folder, bytes, {"run.json", "result.json", "target_users.tsv"});
  const auto quietly = [](const auto& read) {
    try {
      read();
    } catch (const Error&) {
    }
  };
  quietly([&] {
    RunDescription description = read_description(run);
    must(!description.data.empty() && !description.dataset.empty(), "a run names its data");
    (void)description.config.to_json();
  });
  quietly([&] { (void)read_result(run); });
  quietly([&] { (void)read_user_metrics(run.user_metrics("target").string()); });

  const std::string arrays = with_data("{}");
  folder.put("checkpoints/step-00000010.safetensors", arrays);
  nlohmann::json manifest = parse_json(take_file(bytes));
  if (manifest.is_object()) {
    ContentHash hash;
    hash.add(arrays.data(), arrays.size());
    if (manifest.contains("bytes")) manifest["bytes"] = arrays.size();
    if (manifest.contains("xxh3_128")) manifest["xxh3_128"] = hash.text();
  }
  folder.put("checkpoints/step-00000010.json",
             manifest.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  quietly([&] {
    const auto found = Checkpoints(run.train_files().checkpoints, 2).newest();
    must(found.has_value() && found->state.step >= 0, "a checkpoint has a step");
  });
}

}  // namespace cfaa::fuzz
