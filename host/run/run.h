#pragma once

// A finished (or interrupted) run, opened again: its configuration, its data, and the best
// parameters. What `evaluate`, `recommend`, `export` and `discrepancy` read.

#include <filesystem>
#include <memory>
#include <vector>

#include "host/core/context.h"
#include "host/train/run_config.h"
#include "host/train/trained_model.h"

namespace cfaa {

// True where `path` is a run's directory: it holds run.json.
bool is_run(const std::filesystem::path& path);

// The folders seed-0, seed-1, ... of a run of several seeds, by seed; empty where there are none.
std::vector<std::filesystem::path> seeds_of(const std::filesystem::path& path);

class Run {
 public:
  // `data` overrides where the run says that its data is. Error where the run has no best
  // parameters yet, where they are damaged, or where the data is not what it was trained on.
  Run(Context& context, const std::filesystem::path& path, const std::string& data = "");
  ~Run();

  const RunConfig& config() const;
  const Dataset& dataset() const;
  const Domain& domain(std::size_t which) const;
  // Embeddings of a domain by the best parameters.
  DomainEmbeddings embed(std::size_t domain);
  ScorerArrays scorer();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
