#pragma once

// Anything that ranks and can be opened again: a run, or a baseline that `baseline --out` kept.
// What lists, exports and evaluations are made from.

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/data/dataset.h"
#include "host/run/directory/run_directory.h"
#include "host/run/signal_model.h"
#include "host/train/trained_model.h"

namespace cfaa {

class RankingModel {
 public:
  virtual ~RankingModel() = default;

  virtual const RunDirectory& directory() const = 0;
  // Hash of the data.
  virtual const std::string& dataset_hash() const = 0;
  // kSource, kTarget: those that it ranks. A baseline is of one.
  virtual std::vector<std::size_t> domains() const = 0;
  virtual const Domain& domain(std::size_t which) const = 0;
  // Embeddings of a domain's users and items. A model without has dim 0, or says so by an Error.
  virtual DomainEmbeddings embed(std::size_t which) = 0;
  // Of both domains as training found them, before its first step; of dim 0 where nothing was
  // trained step by step.
  virtual PerDomain<DomainEmbeddings> embed_untrained() { return {}; }
  // Of users (`side` kUser) or items that training never saw. Error in a model without embeddings,
  // and in one that reads words, or summaries, of reviews. From one thread at a time, with a
  // context on the model's device.
  virtual DomainEmbeddings embed_later(Context& context, std::size_t which, std::size_t side,
                                       std::span<const LaterEntity> entities);
  // Whether those need the vectors of their reviews.
  virtual bool reads_review_vectors() const { return false; }
  // What makes scores of embeddings.
  virtual ScorerArrays scorer() = 0;
  // Ranks the items of a domain of domains(); valid as long as the model.
  virtual const Scorer& ranking(std::size_t which) = 0;
  // Not null for a run of signals, whose lists come from them.
  virtual const SignalModel* signals(std::size_t) { return nullptr; }
  // How much of the embeddings' score is added to the signals'; 0 where lists are of signals alone.
  virtual double residual_share() const { return 0; }
};

// True where `path` is a run or a kept baseline.
bool is_model(const std::filesystem::path& path);

// `data` overrides where its data is. Error where `path` is neither, naming what it is, or where
// its parameters or its data are not there as they were.
std::unique_ptr<RankingModel> open_model(Context& context, const std::filesystem::path& path,
                                         const std::string& data = "");

}  // namespace cfaa
