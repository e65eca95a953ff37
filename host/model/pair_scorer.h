#pragma once

// G_C, shared by both domains: the score (a logit) of a pair of embeddings (`model.scorer`).
//
//   mlp, dot, mlp+dot   an MLP on (u, v), their product <u, v>, or the sum of both
//   fm                  a factorisation machine on max(0, (u, v))       (DeepCoNN)
//   gated_product       b + sum_k w_k max(0, u_k v_k) + u_K + v_K       (NARRE)
//
// The last column of a gated product's embeddings, u_K and v_K, is the user's and the item's own
// bias. Where the score is a dot product of other rows than Z's, the scorer makes those for
// ranking.

#include <memory>
#include <vector>

#include "host/core/context.h"
#include "host/core/math_mode.h"
#include "host/model/batch.h"
#include "host/model/model_options.h"
#include "host/model/parameters.h"

namespace cfaa {

template <class T>
class PairScorer {
 public:
  virtual ~PairScorer() = default;
  PairScorer() = default;
  PairScorer(const PairScorer&) = delete;
  PairScorer& operator=(const PairScorer&) = delete;

  // z (R, 2 D): user and item side by side, contiguous. Writes score (R); returns what the backward
  // wants, in the arena. With `state`, dropout is applied.
  virtual std::vector<MatrixView<T>> forward(Context& context, MatrixView<T> z, VectorView<T> score,
                                             const StepState* state, MathMode math) const = 0;

  // Writes dz (R, 2 D) and adds to the layers' gradients.
  virtual void backward(Context& context, MatrixView<T> z, const std::vector<MatrixView<T>>& kept,
                        VectorView<T> score, VectorView<T> dscore, MatrixView<T> dz,
                        const StepState* state, MathMode math) const = 0;

  // Layers first to last, to be started by random numbers and from 0.
  const std::vector<int>& weights() const { return weight_; }
  const std::vector<int>& biases() const { return bias_; }

  // Columns of the rows whose dot product is the score; 0: those of Z (dot), or there are none.
  virtual int64_t ranking_columns() const { return 0; }
  // z (R, D) of one side -> rows (R, ranking_columns()), contiguous.
  virtual void ranking_rows(Context&, std::size_t /*side*/, MatrixView<T> /*z*/,
                            MatrixView<T> /*rows*/) const {}

 protected:
  std::vector<int> weight_, bias_;
};

template <class T>
std::unique_ptr<PairScorer<T>> make_pair_scorer(Context& context, const ModelOptions& options,
                                                Parameters<T>& parameters);

}  // namespace cfaa
