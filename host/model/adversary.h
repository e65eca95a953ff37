#pragma once

// Discriminators D that tell the domains apart by an embedding's layers, linear with ReLU between
// them, the last one a logit s; trained by the cross entropy, the source's label 1:
//
//   L = 1/(2 N) [ sum_S log(1 + e^-s) + sum_T log(1 + e^s) ]
//
// summed over the discriminators: one on users and one on items, or one on both side by side. The
// layers descend L. The embeddings work against them:
//
//   reverse   dZ = -dL/dZ                     (gradient reversal: DARec, TDAR)
//   confuse   dZ = dL'/dZ, L' being L with the labels exchanged (Rec-DAN)
//
// those of both domains, or of the target alone.

#include <vector>

#include "host/core/tensor.h"
#include "host/model/loss.h"

namespace cfaa {

template <class T>
class Adversary final : public Loss<T> {
 public:
  // Adds the layers `adversary.*` of a new group to `parameters`.
  Adversary(Context& context, const AdversaryOptions& options, int64_t dim, int64_t n,
            Parameters<T>& parameters);

  double sign() const override { return -1; }
  int group() const override { return group_; }
  std::vector<std::vector<int>> layers() const override;
  void apply(Context& context, const LossInput<T>& input) override;

 private:
  struct Discriminator {
    std::vector<int> weight, bias;
  };
  // What one discriminator saw and computed of both domains, in the arena.
  struct Run {
    PerDomain<MatrixView<T>> x;                    // (N, D), or (N, 2 D)
    PerDomain<std::vector<MatrixView<T>>> hidden;  // (N, layer) each
    VectorView<T> logit;                           // (2 N) of the source, of the target
  };

  Run forward(Context& context, const Discriminator& discriminator,
              const PerDomain<MatrixView<T>>& x, MathMode math) const;
  // dL/dx of a domain, (N, D) or (N, 2 D), from dlogit (2 N). With `train` the layers' gradients
  // are added to, else they go nowhere.
  MatrixView<T> backward(Context& context, const Discriminator& discriminator, const Run& run,
                         std::size_t domain, VectorView<T> dlogit, bool train, MathMode math) const;

  AdversaryOptions options_;
  Parameters<T>& parameters_;
  int group_;
  std::vector<Discriminator> discriminators_;  // of users and of items, or of pairs
  Tensor<T, 1> label_, other_label_, weight_;  // (2 N)
  Tensor<double, 1> minus_one_;                // (1)
};

}  // namespace cfaa
