#pragma once

// A trained model as arrays: the embeddings of one domain's users and items, and the scorer's
// layers. What rankings, lists and exports are made from.

#include <cstdint>
#include <memory>
#include <vector>

#include "host/core/context.h"
#include "host/core/tensor.h"
#include "host/eval/scorer.h"
#include "host/model/cfaa.h"
#include "host/train/batch_assembler.h"

namespace cfaa {

// Rows as in users.tsv and items.tsv.
struct DomainEmbeddings {
  int64_t dim = 0;
  PerSide<int64_t> count{};
  PerSide<std::vector<float>> z;  // (count, dim)
  // Rows whose dot products are the scores, where those of z are not: (count, ranking_dim).
  int64_t ranking_dim = 0;
  PerSide<std::vector<float>> ranking;

  MatrixView<const float> view(std::size_t side) const {
    return {z[side].data(), {count[side], dim}};
  }
  // What a scorer without an MLP ranks by.
  MatrixView<const float> ranking_view(std::size_t side) const {
    if (ranking_dim == 0) return view(side);
    return {ranking[side].data(), {count[side], ranking_dim}};
  }
};

struct ScorerLayer {
  int64_t out = 0, in = 0;
  std::vector<float> weight, bias;
};

struct ScorerArrays {
  bool dot = false;
  std::vector<ScorerLayer> layers;  // of the MLP, the last with one output; empty without
};

// Every user's and item's embedding with all they have in training: nothing is left out, and no
// unit dropped.
template <class T>
DomainEmbeddings embed_domain(Context& context, const Cfaa<T>& model, BatchAssembler<T>& assembler,
                              std::size_t domain);

// Those of entities of a side that training never saw; the other side has none.
template <class T>
DomainEmbeddings embed_later(Context& context, const Cfaa<T>& model, BatchAssembler<T>& assembler,
                             std::size_t domain, std::size_t side,
                             std::span<const LaterEntity> entities);

template <class T>
ScorerArrays scorer_arrays(Context& context, Cfaa<T>& model);

// Their scores block by block, and pair by pair on the host: what host/eval/scorer.h's BlockScorer
// takes. Each score has the same bits in every block. `embeddings` must outlive it.
struct BlockScores {
  BlockFunction block;
  PairFunction pairs;
};
BlockScores block_scores(Context& context, const DomainEmbeddings& embeddings,
                         const ScorerArrays& arrays);

// Ranks with them: exact dot products (host/ops/top_k.h) where the scorer has no MLP, otherwise
// blocks through host/ops/pair_scores.h. `embeddings` must outlive it.
std::unique_ptr<Scorer> make_scorer(Context& context, const DomainEmbeddings& embeddings,
                                    const ScorerArrays& arrays);

}  // namespace cfaa
