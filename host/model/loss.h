#pragma once

// A loss beside L_C. The model keeps a list of them by name and knows no more of one than this:
// another loss is another class. A loss may own layers, which lie in a group of parameters of their
// own (host/model/parameters.h): with a learning rate of their own, and out of the clipped norm.

#include <memory>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/math_mode.h"
#include "host/model/batch.h"
#include "host/model/loss_options.h"
#include "host/model/parameters.h"
#include "host/ops/alignment_options.h"

namespace cfaa {

// What a loss reads and writes in one step.
template <class T>
struct LossInput {
  // The rows of each tower, (R, D); R is N for a loss of interactions. Of a piece of the loss: some
  // of the columns, or one side alone and the other null.
  PerDomain<PerSide<MatrixView<T>>> z;
  // Gradients of the same, added to, without the loss's weight. Not for a loss of scores.
  PerDomain<PerSide<MatrixView<T>>> dz;
  // Of all rows, (N + N n) each; `dscore` is for losses of scores, and written by them.
  PerDomain<VectorView<T>> score, dscore, label, weight;
  PerDomain<int64_t> negatives{};
  VectorView<T> value;  // (1), written; without `share`
  double share = 1;     // factor of the gradients: of a piece in the whole loss
  MathMode math = MathMode::fp32;
  Solver solver = Solver::gemm;
};

// What a loss is a function of: the embeddings of the N interactions, those of all rows, or scores.
enum class LossRows { interactions, all, scores };

// How a loss falls into pieces that can be computed apart and add up to it: not at all, by the
// columns of Z, by users and items.
enum class LossPieces { none, columns, sides };

template <class T>
class Loss {
 public:
  Loss(std::string name, LossRows rows) : name_(std::move(name)), rows_(rows) {}
  virtual ~Loss() = default;
  Loss(const Loss&) = delete;
  Loss& operator=(const Loss&) = delete;

  const std::string& name() const { return name_; }  // "vertical"
  LossRows rows() const { return rows_; }

  virtual LossPieces pieces() const { return LossPieces::none; }
  // 1 where the embeddings descend the loss, -1 where they ascend it.
  virtual double sign() const { return 1; }
  // The group of parameters that its own layers are in; 0: it has none.
  virtual int group() const { return 0; }
  // Weights of its own layers, in groups of first to last, to be started by random numbers.
  virtual std::vector<std::vector<int>> layers() const { return {}; }

  virtual void apply(Context& context, const LossInput<T>& input) = 0;

 private:
  std::string name_;
  LossRows rows_;
};

// The losses that `options` uses, in its order. Layers that they need are added to `parameters`.
template <class T>
std::vector<std::unique_ptr<Loss<T>>> make_losses(Context& context, const LossOptions& options,
                                                  const AlignmentOptions& alignment, int64_t dim,
                                                  const BatchShape& shape,
                                                  Parameters<T>& parameters);

}  // namespace cfaa
