#pragma once

// Where the users, and the items, of both domains lie beside each other: a sample of their
// embeddings in the plane (host/eval/tsne.h), and how well a classifier tells the domains apart.

#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/eval/proxy_distance.h"
#include "host/run/ranking_model.h"

namespace cfaa {

struct EmbeddingMap {
  std::string run, side;  // "users", "items"
  ProxyDistance proxy;    // of all rows
  std::vector<std::string> ids;
  std::vector<bool> from_target;
  std::vector<float> points;  // (ids, 2)
};

// Of users, then of items; empty where the model does not embed both domains. `most` of each domain
// are shown, drawn at random.
std::vector<EmbeddingMap> map_embeddings(Context& context, RankingModel& model,
                                         int64_t most = 1000);

}  // namespace cfaa
