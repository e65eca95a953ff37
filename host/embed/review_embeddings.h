#pragma once

// What `cfaa_gpu embed` left beside a prepared domain, for training: mapped, and checked to be of
// this very data.
//
//   const ReviewEmbeddings reviews = load_review_embeddings(data.target);
//   reviews.sums.mapped<float>()      // nullptr for float16: read<float>() converts
//   mean of row r's review: sums[r] / counts[r]; of a user but for row r:
//   (counts of the user's rows x user mean - sums[r]) / (those counts - counts[r])

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "host/data/dataset.h"
#include "host/io/npy.h"

namespace cfaa {

struct ReviewEmbeddings {
  NpyFile sums;    // (training interactions, width) float32 or float16; rows as in the train file
  NpyFile counts;  // (training interactions) int32
  NpyFile users;   // (users, width), rows as in users.tsv
  NpyFile items;   // (items, width), rows as in items.tsv
  int64_t width = 0;
  nlohmann::json description;  // embed.json
};

// Error where there are none, where they were made from other data (the domain was prepared again,
// or its text edited), or where a file does not fit the others.
ReviewEmbeddings load_review_embeddings(const Domain& domain);

// Of both domains; Error where they were made with different models or settings.
std::pair<ReviewEmbeddings, ReviewEmbeddings> load_review_embeddings(const Dataset& data);

// The settings that name the domain's data: "dataset" (ids, splits, rows) and "text".
nlohmann::json review_identity(const Domain& domain);

// embed.json of a domain. Error where it is absent or not what embed writes.
nlohmann::json read_embed_json(const Domain& domain);

}  // namespace cfaa
