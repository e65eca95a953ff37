#pragma once

// A finished (or interrupted) run, opened again: its configuration, its data, and the best
// parameters. What `evaluate`, `recommend`, `export` and `discrepancy` read.

#include <filesystem>
#include <memory>

#include "host/core/context.h"
#include "host/run/ranking_model.h"
#include "host/run/signal_model.h"
#include "host/train/trained_model.h"

namespace cfaa {

// kSource or kTarget of "source" or "target"; Error for any other name.
std::size_t domain_index(const std::string& name);

class Run final : public RankingModel {
 public:
  // `data` overrides where the run says that its data is. Error where the run has no best
  // parameters yet, where they are damaged, or where the data is not what it was trained on.
  Run(Context& context, const std::filesystem::path& path, const std::string& data = "");
  ~Run() override;

  const RunDirectory& directory() const override;
  const RunConfig& config() const;
  const Dataset& dataset() const;
  const std::string& dataset_hash() const override { return dataset().hash; }
  std::vector<std::size_t> domains() const override;
  const Domain& domain(std::size_t which) const override;
  const Scorer& ranking(std::size_t domain) override;
  const SignalModel* signals(std::size_t domain) override;
  double residual_share() const override;
  // By the best parameters. Error in a run of signals alone, which has none.
  DomainEmbeddings embed(std::size_t domain) override;
  PerDomain<DomainEmbeddings> embed_untrained() override;
  DomainEmbeddings embed_later(Context& context, std::size_t domain, std::size_t side,
                               std::span<const LaterEntity> entities) override;
  bool reads_review_vectors() const override;
  ScorerArrays scorer() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
