#include "host/run/run.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/train/checkpoint.h"
#include "host/train/trainer.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

Dataset dataset_of(const RunDirectory& run, const RunDescription& description,
                   const std::string& data) {
  const std::string place = data.empty() ? description.data : data;
  if (!fs::exists(place)) {
    throw Error(
        fmt::format("{}: its data is no longer at {}; say where with --data", run.name(), place));
  }
  Dataset dataset = load_dataset(place);
  if (dataset.hash != description.dataset) {
    throw Error(fmt::format("{}: is not the data that {} was trained on", place, run.name()));
  }
  return dataset;
}

}  // namespace

std::size_t domain_index(const std::string& name) {
  if (name == "source") return kSource;
  if (name == "target") return kTarget;
  throw Error(fmt::format("'{}' is not a domain; they are target and source", name));
}

// Rankings are made in float, so a run in double is read as float too.
struct Run::State {
  State(Context& where, const fs::path& path, const std::string& place)
      : context(where),
        directory(path),
        description(read_description(directory)),
        dataset(dataset_of(directory, description, place)),
        data(load_training_data(dataset, description.config.model)),
        assembler(data, description.config.model, description.config.train),
        model(context, description.config.model, description.config.alignment, model_shape(data),
              assembler.shape()) {
    check_embeddings();
    restore_best<float>(context, directory.best(), model.parameters());
  }

  void check_embeddings() const {
    if (description.embeddings.empty()) return;
    const std::string difference =
        embedding_difference(description.embeddings, embedding_identity(dataset));
    if (difference.empty()) return;
    throw Error(
        fmt::format("{}: was trained on other review embeddings: {}; embed as it was, or train "
                    "again",
                    directory.name(), difference));
  }

  Context& context;
  RunDirectory directory;
  RunDescription description;
  Dataset dataset;
  TrainingData data;
  BatchAssembler<float> assembler;
  Cfaa<float> model;
};

Run::Run(Context& context, const fs::path& path, const std::string& data)
    : state_(std::make_unique<State>(context, path, data)) {}
Run::~Run() = default;

const RunDirectory& Run::directory() const {
  return state_->directory;
}
const RunConfig& Run::config() const {
  return state_->description.config;
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
