#pragma once

// Where the users, and the items, of both domains lie beside each other: a sample of their
// embeddings in the plane (host/eval/tsne.h), and what is known of those who are shown.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/train/trained_model.h"

namespace cfaa {

// Users, or items, of both domains: all, or as many of each domain as are shown, drawn at random;
// the same whatever run embeds them.
struct MapSample {
  struct Member {
    std::string id, title;
    std::string words;     // that set its reviews apart, up to five
    std::string sentence;  // the first of a review
  };
  std::string side;  // "users", "items"
  PerDomain<std::vector<int64_t>> rows;
  std::vector<Member> members;  // of the source, then of the target
};

// Users, then items.
std::vector<MapSample> draw_map_samples(Context& context, const Domain& source,
                                        const Domain& target, int64_t most = 1000);

// Points in the plane, two numbers for each member.
std::vector<float> map_embeddings(Context& context, const PerDomain<DomainEmbeddings>& embeddings,
                                  std::size_t side, const MapSample& sample);

}  // namespace cfaa
