#pragma once

// G_C, shared by both domains: the score (a logit) of a pair of embeddings. An MLP on (u, v), their
// product, or the sum of both (`model.scorer`).

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
  PairScorer(const ModelOptions& options, Parameters<T>& parameters);

  // z (R, 2 D): user and item side by side, contiguous. Writes score (R); returns the hidden
  // layers, which the backward wants, in the arena.
  std::vector<MatrixView<T>> forward(Context& context, MatrixView<T> z, VectorView<T> score,
                                     MathMode math) const;

  // Writes dz (R, 2 D) and adds to the layers' gradients.
  void backward(Context& context, MatrixView<T> z, const std::vector<MatrixView<T>>& hidden,
                VectorView<T> score, VectorView<T> dscore, MatrixView<T> dz, MathMode math) const;

  const std::vector<int>& weights() const { return weight_; }
  const std::vector<int>& biases() const { return bias_; }

 private:
  const ModelOptions& options_;
  Parameters<T>& parameters_;
  std::vector<int> weight_, bias_;  // layers of the MLP; none for `dot`
};

}  // namespace cfaa
