#include "host/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/io/json_file.h"
#include "host/train/checkpoint.h"
#include "host/train/trainer.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_run_json(const fs::path& path) {
  const json fields = read_json(path / "run.json");
  if (!fields.is_object() || !fields.contains("config") || !fields.contains("data") ||
      !fields.contains("dataset")) {
    throw Error((path / "run.json").string() + ": is not the description of a run");
  }
  return fields;
}

RunConfig config_of(const fs::path& path, const json& fields) {
  RunConfig config;
  config.read(fields["config"], (path / "run.json").string());
  return config;
}

Dataset dataset_of(const fs::path& path, const json& fields, const std::string& data) {
  const std::string place = data.empty() ? fields["data"].get<std::string>() : data;
  if (!fs::exists(place)) {
    throw Error(fmt::format("{}: its data is no longer at {}; say where with --data", path.string(),
                            place));
  }
  Dataset dataset = load_dataset(place);
  if (dataset.hash != fields["dataset"].get<std::string>()) {
    throw Error(fmt::format("{}: is not the data that {} was trained on", place, path.string()));
  }
  return dataset;
}

}  // namespace

bool is_run(const fs::path& path) {
  return fs::exists(path / "run.json");
}

std::vector<fs::path> seeds_of(const fs::path& path) {
  std::vector<std::pair<int64_t, fs::path>> seeds;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(path, absent)) {
    const std::string name = entry.path().filename().string();
    const std::string_view number =
        std::string_view(name).substr(std::min<std::size_t>(5, name.size()));
    int64_t seed = 0;
    const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), seed);
    if (!name.starts_with("seed-") || failure != std::errc() ||
        end != number.data() + number.size()) {
      continue;
    }
    seeds.emplace_back(seed, entry.path());
  }
  std::sort(seeds.begin(), seeds.end());
  std::vector<fs::path> paths;
  for (auto& [seed, place] : seeds) paths.push_back(std::move(place));
  return paths;
}

// Rankings are made in float, so a run in double is read as float too.
struct Run::State {
  State(Context& where, const fs::path& path, const json& fields, const std::string& place)
      : context(where),
        config(config_of(path, fields)),
        dataset(dataset_of(path, fields, place)),
        data(load_training_data(dataset, config.model)),
        assembler(data, config.model, config.train),
        model(context, config.model, config.alignment, model_shape(data), assembler.shape()) {
    if (!fs::exists(path / "best.json")) {
      throw Error(path.string() +
                  ": has no best parameters yet; let 'cfaa_gpu train' reach its first validation");
    }
    ArraysFile::check(path / "best");
    restore_parameters<float>(context, (path / "best.safetensors").string(), model.parameters(),
                              false);
  }

  Context& context;
  RunConfig config;
  Dataset dataset;
  TrainingData data;
  BatchAssembler<float> assembler;
  Cfaa<float> model;
};

Run::Run(Context& context, const fs::path& path, const std::string& data)
    : state_(std::make_unique<State>(context, path, read_run_json(path), data)) {}
Run::~Run() = default;

const RunConfig& Run::config() const {
  return state_->config;
}
const Dataset& Run::dataset() const {
  return state_->dataset;
}
const Domain& Run::domain(std::size_t which) const {
  return state_->data.domain(which);
}
DomainEmbeddings Run::embed(std::size_t domain) {
  return embed_domain<float>(state_->context, state_->model, state_->assembler, domain);
}
ScorerArrays Run::scorer() {
  return scorer_arrays<float>(state_->context, state_->model);
}

}  // namespace cfaa
