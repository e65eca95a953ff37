#pragma once

// Which review embeddings a run was trained on: what `embed` was told, and the arrays' hashes.

#include <map>
#include <string>

#include "host/data/dataset.h"
#include "host/model/model_options.h"

namespace cfaa {

// By name, such as "source layer" or "target review_sums.npy"; empty for a model without reviews,
// and for runs of version 0.1.0, which did not keep it.
using EmbeddingIdentity = std::map<std::string, std::string>;

// Reads the arrays once. Error where there are no embeddings.
EmbeddingIdentity embedding_identity(const Dataset& data);
// Of what a model reads of the reviews: embeddings, words, or nothing.
EmbeddingIdentity embedding_identity(const Dataset& data, const ModelOptions& model);

// "source layer was 5 and is 6", of every difference; "" where there is none, or nothing is known.
std::string embedding_difference(const EmbeddingIdentity& trained, const EmbeddingIdentity& now);

}  // namespace cfaa
