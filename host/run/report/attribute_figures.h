#pragma once

// What the alignment losses see of the embeddings of both domains: the attributes that differ most
// with their typical samples and the transport between them (the paper's Figure 3), and the graphs
// of which attribute says what of which (Figure 4).

#include <cstdint>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/ops/alignment_options.h"
#include "host/train/trained_model.h"

namespace cfaa {

struct ShownAttribute {
  int64_t number = 0;
  double distance = 0;       // between the typical samples, over the mean of both variances
  double low = 0, high = 0;  // of the bins, which are alike in both domains
  PerDomain<std::vector<double>> share;    // (kBins) of the rows
  PerDomain<std::vector<double>> typical;  // (K) ascending
  std::vector<double> plan;                // (K, K) from a source's sample to a target's
  static constexpr int64_t kBins = 36, kTypical = 12;
};

struct AttributionEdge {
  int64_t from = 0, to = 0;  // attributes, from < to
  PerDomain<double> weight{};
};

struct AttributeFigures {
  std::string run, side;  // "users", "items"
  bool trained = false;
  double vertical = 0, horizontal = 0;     // d_O over the attributes, and d_W
  std::vector<ShownAttribute> attributes;  // those that differ most where training begins
  std::vector<AttributionEdge> edges;  // the strongest of either domain, and those that differ most
};

// Users before and after, then items. `before` may have dim 0: then there is no before.
std::vector<AttributeFigures> draw_attributes(Context& context,
                                              const PerDomain<DomainEmbeddings>& before,
                                              const PerDomain<DomainEmbeddings>& after,
                                              AlignmentOptions options);

}  // namespace cfaa
