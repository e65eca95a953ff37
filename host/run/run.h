#pragma once

// A finished (or interrupted) run, opened again: its configuration, its data, and the best
// parameters. What `evaluate`, `recommend`, `export` and `discrepancy` read.

#include <filesystem>
#include <memory>

#include "host/core/context.h"
#include "host/run/run_directory.h"
#include "host/run/signal_model.h"
#include "host/train/trained_model.h"

namespace cfaa {

// kSource or kTarget of "source" or "target"; Error for any other name.
std::size_t domain_index(const std::string& name);

class Run {
 public:
  // `data` overrides where the run says that its data is. Error where the run has no best
  // parameters yet, where they are damaged, or where the data is not what it was trained on.
  Run(Context& context, const std::filesystem::path& path, const std::string& data = "");
  ~Run();

  const RunDirectory& directory() const;
  const RunConfig& config() const;
  const Dataset& dataset() const;
  const Domain& domain(std::size_t which) const;
  // Ranks a domain's items; valid as long as the run.
  const Scorer& ranking(std::size_t domain);
  // Not null for a run of signals, whose lists come from them.
  const SignalModel* signals(std::size_t domain);
  // Embeddings of a domain by the best parameters. Error in a run of signals, which has none.
  DomainEmbeddings embed(std::size_t domain);
  ScorerArrays scorer();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
