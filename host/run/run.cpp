#include "host/run/run.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/run/signal_fit_file.h"
#include "host/train/checkpoint.h"
#include "host/train/step_runner.h"
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
struct Network {
  Network(Context& context, const RunDirectory& directory, const RunConfig& config,
          const Dataset& dataset)
      : data(load_training_data(dataset, config.model)),
        assembler(data, config.model, config.train),
        model(context, config.model, config.alignment, model_shape(data), assembler.shape()) {
    restore_best<float>(context, directory.best(), model.parameters());
  }

  TrainingData data;
  BatchAssembler<float> assembler;
  Cfaa<float> model;
};

struct Run::State {
  State(Context& where, const fs::path& path, const std::string& place)
      : context(where),
        directory(path),
        description(read_description(directory)),
        dataset(dataset_of(directory, description, place)) {
    const RunConfig& config = description.config;
    check_embeddings();
    if (!config.signals.alone()) {
      network = std::make_unique<Network>(context, directory, config, dataset);
    }
    if (!config.signals.use.empty()) {
      fit = read_signal_fit(directory);
      reviewed = std::make_unique<ReviewedData>(context, dataset);
    }
  }

  void check_embeddings() const {
    const EmbeddingIdentity& before = description.embeddings;
    if (before.empty()) return;
    const ModelOptions& model = description.config.model;
    EmbeddingIdentity now;
    if (!description.config.signals.alone()) now = embedding_identity(dataset, model);
    if (now.size() < before.size()) now.merge(embedding_identity(dataset));
    const std::string difference = embedding_difference(before, now);
    if (difference.empty()) return;
    throw Error(
        fmt::format("{}: was trained on other review embeddings: {}; embed as it was, or train "
                    "again",
                    directory.name(), difference));
  }

  Network& embedding_network() {
    if (network == nullptr) {
      throw Error(
          fmt::format("{}: is a run of signals, which has no embeddings; give a run that "
                      "was trained with a configuration of CFAA",
                      directory.name()));
    }
    return *network;
  }

  Context& context;
  RunDirectory directory;
  RunDescription description;
  Dataset dataset;
  std::unique_ptr<Network> network;  // null in a run of signals alone
  SignalFit fit;
  std::unique_ptr<ReviewedData> reviewed;
  // Made when first asked for.
  PerDomain<std::unique_ptr<SignalModel>> signals;
  PerDomain<DomainEmbeddings> embeddings;
  PerDomain<std::unique_ptr<Scorer>> scorer;
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
  return which == kSource ? state_->dataset.source : state_->dataset.target;
}
std::vector<std::size_t> Run::domains() const {
  if (config().train.uses(kSource)) return {kSource, kTarget};
  return {kTarget};
}
const SignalModel* Run::signals(std::size_t domain) {
  if (state_->reviewed == nullptr) return nullptr;
  auto& model = state_->signals[domain];
  if (model == nullptr) {
    model = std::make_unique<SignalModel>(state_->context, *state_->reviewed, domain,
                                          config().signals, state_->fit.weights[domain]);
  }
  return model.get();
}
const Scorer& Run::ranking(std::size_t domain) {
  auto& scorer = state_->scorer[domain];
  if (scorer != nullptr) return *scorer;
  const SignalModel* model = signals(domain);
  if (config().signals.alone()) {
    scorer = model->scorer();
    return *scorer;
  }
  const DomainEmbeddings& embeddings = state_->embeddings[domain] = embed(domain);
  scorer = model == nullptr ? make_scorer(state_->context, embeddings, this->scorer())
                            : make_residual_scorer(state_->context, model->scores(), embeddings,
                                                   this->scorer(), residual_share());
  return *scorer;
}
double Run::residual_share() const {
  if (!config().signals.with_model()) return 0;
  return state_->fit.residual ? state_->fit.residual->beta : 1;
}
DomainEmbeddings Run::embed(std::size_t domain) {
  Network& network = state_->embedding_network();
  if (!config().train.uses(domain)) {
    throw Error(fmt::format("{}: was trained on the target alone (train.domains)",
                            state_->directory.name()));
  }
  return embed_domain<float>(state_->context, network.model, network.assembler, domain);
}
PerDomain<DomainEmbeddings> Run::embed_untrained() {
  Network& trained = state_->embedding_network();
  Context& context = state_->context;
  Cfaa<float> model(context, config().model, config().alignment, model_shape(trained.data),
                    trained.assembler.shape());
  StepRunner<float> runner(context, model, trained.assembler, config().train, false);
  runner.load(0);
  model.initialize(context, runner.batch(), static_cast<uint64_t>(config().train.seed));
  runner.pause();
  PerDomain<DomainEmbeddings> embeddings;
  for (const std::size_t domain : domains()) {
    embeddings[domain] = embed_domain<float>(context, model, trained.assembler, domain);
  }
  return embeddings;
}
DomainEmbeddings Run::embed_later(Context& context, std::size_t domain, std::size_t side,
                                  std::span<const LaterEntity> entities) {
  Network& network = state_->embedding_network();
  const ModelOptions& model = config().model;
  if (model.reads_words() || model.review_sentences == ReviewSentences::summary) {
    throw Error(
        fmt::format("{}: reads the {} of reviews, which newcomers are not placed by; give a run of "
                    "signals, or of towers over whole reviews",
                    state_->directory.name(), model.reads_words() ? "words" : "summaries"));
  }
  return cfaa::embed_later<float>(context, network.model, network.assembler, domain, side,
                                  entities);
}
bool Run::reads_review_vectors() const {
  return !config().signals.alone() && config().model.reads_vectors();
}
ScorerArrays Run::scorer() {
  return scorer_arrays<float>(state_->context, state_->embedding_network().model);
}

}  // namespace cfaa
