#include "host/run/directory/run_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"
#include "host/train/checkpoint.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kSeedPrefix = "seed-";

// "seed-12" -> true and 12.
bool parse_seed(std::string_view name, int64_t& seed) {
  if (!name.starts_with(kSeedPrefix)) return false;
  name.remove_prefix(kSeedPrefix.size());
  const char* end = name.data() + name.size();
  const auto [next, failure] = std::from_chars(name.data(), end, seed);
  return failure == std::errc() && next == end;
}

constexpr std::array kNames = {
    "run.json",    "run.lock",  "result.json",  "metrics.jsonl",    "tensorboard",
    "checkpoints", "best.json", "signals.json", "target_users.tsv", "source_users.tsv"};

// What a killed writer of one of the run's files left.
bool is_temporary(const std::string& name) {
  if (!name.ends_with(".tmp")) return false;
  return name.starts_with("best") || name.starts_with("step-") ||
         std::any_of(kNames.begin(), kNames.end(),
                     [&](const char* known) { return name.starts_with(known); });
}

bool is_entry_of_run(const std::string& name) {
  const bool best_arrays = name == "best.safetensors" ||  // of version 0.1.0
                           (name.starts_with("best-") && name.ends_with(".safetensors"));
  return best_arrays || is_temporary(name) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

fs::path RunDirectory::user_metrics(const std::string& domain) const {
  return path_ / (domain + "_users.tsv");
}

TrainFiles RunDirectory::train_files() const {
  return {path_, path_ / "checkpoints", best(), path_ / "metrics.jsonl", path_ / "tensorboard"};
}

fs::path RunDirectory::replaced() const {
  fs::path place = fs::absolute(path_).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();  // "run/" is "run"
  return place.parent_path() / fmt::format(".{}.replaced", place.filename().string());
}

std::string RunDirectory::foreign_entry() const {
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(path_, absent)) {
    const std::string name = entry.path().filename().string();
    if (!is_entry_of_run(name)) return name;
  }
  return "";
}

void RunDirectory::sweep() const {
  std::error_code ignored;
  const TrainFiles files = train_files();
  for (const fs::path& folder : {path_, files.checkpoints}) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (is_temporary(name)) fs::remove(entry.path(), ignored);
    }
  }
  sweep_arrays(files.best, files.checkpoints);
}

std::vector<RunDirectory> RunDirectory::seeds() const {
  std::vector<std::pair<int64_t, fs::path>> found;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(path_, absent)) {
    int64_t seed = 0;
    if (parse_seed(entry.path().filename().string(), seed)) found.emplace_back(seed, entry.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<RunDirectory> runs;
  for (auto& [seed, place] : found) runs.emplace_back(std::move(place));
  return runs;
}

RunDirectory RunDirectory::seed(int64_t number) const {
  return RunDirectory(path_ / fmt::format("{}{}", kSeedPrefix, number));
}

RunDescription read_description(const RunDirectory& run) {
  const fs::path path = run.description();
  const json fields = read_json_object(path);
  RunDescription description;
  const auto text = [&](const char* key) {
    const std::string value = field<std::string>(fields, key, "", path);
    if (value.empty()) throw Error(path.string() + ": is not the description of a run");
    return value;
  };
  description.data = text("data");
  description.dataset = text("dataset");
  description.version = field<std::string>(fields, "version", "", path);
  if (!fields.contains("config") || !fields["config"].is_object()) {
    throw Error(path.string() + ": is not the description of a run");
  }
  description.config.read(fields["config"], path.string());
  description.embeddings = field<EmbeddingIdentity>(fields, "embeddings", {}, path);
  return description;
}

void write_description(const RunDirectory& run, RunDescription description) {
  json fields = {{"config", description.config.to_json()},
                 {"data", description.data},
                 {"dataset", description.dataset},
                 {"version", description.version}};
  if (!description.embeddings.empty()) fields["embeddings"] = description.embeddings;
  write_file(run.description().string(), fields.dump(2) + "\n");
}

}  // namespace cfaa
