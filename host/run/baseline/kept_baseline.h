#pragma once

// A baseline that `baseline --out` kept: baseline.json, its name, settings and data, and for mf
// baseline.safetensors, its embeddings. The others are made again from the data.

#include <memory>
#include <optional>
#include <string>

#include "host/run/baseline/baselines.h"
#include "host/run/ranking_model.h"

namespace cfaa {

struct BaselineDescription {
  std::string name, domain;
  BaselineOptions options;
  std::string data;     // where the data was, an absolute path
  std::string dataset;  // its hash
};

// `embeddings` has dim 0 but for mf.
void keep_baseline(const RunDirectory& place, BaselineDescription description,
                   const DomainEmbeddings& embeddings);

class KeptBaseline final : public RankingModel {
 public:
  // `data` overrides where its data is. Error where that is other data.
  KeptBaseline(Context& context, const RunDirectory& place, const std::string& data);

  const RunDirectory& directory() const override { return place_; }
  const std::string& dataset_hash() const override { return description_.dataset; }
  std::vector<std::size_t> domains() const override;
  // Error where it was made of the other domain.
  const Domain& domain(std::size_t which) const override;
  DomainEmbeddings embed(std::size_t which) override;
  ScorerArrays scorer() override { return {.dot = true, .layers = {}}; }
  const Scorer& ranking(std::size_t which) override;

 private:
  Context& context_;
  RunDirectory place_;
  BaselineDescription description_;
  Dataset dataset_;
  SignalBaselines signals_;
  DomainEmbeddings embeddings_;     // that scorer_ reads
  std::unique_ptr<Scorer> scorer_;  // made when it is first asked for
};

}  // namespace cfaa
