#include "host/model/loss.h"

#include <utility>

#include "host/core/error.h"
#include "host/core/tensor.h"
#include "host/model/adversary.h"
#include "host/ops/center_loss.h"
#include "host/ops/covariance_loss.h"
#include "host/ops/horizontal_loss.h"
#include "host/ops/score_loss.h"
#include "host/ops/vertical_loss.h"

namespace cfaa {
namespace {

// Users and items, each of both domains; or one of them.
template <class T>
struct Pairs {
  explicit Pairs(const LossInput<T>& input) {
    for (const std::size_t side : {kUser, kItem}) {
      if (input.z[kSource][side].data == nullptr) continue;
      z.push_back({input.z[kSource][side], input.z[kTarget][side]});
      dz.push_back({input.dz[kSource][side], input.dz[kTarget][side]});
    }
  }
  std::vector<EmbeddingPair<T>> z;
  std::vector<GradientPair<T>> dz;
};

// L_O of the paper.
template <class T>
class Vertical final : public Loss<T> {
 public:
  explicit Vertical(const AlignmentOptions& options)
      : Loss<T>("vertical", LossRows::interactions), options_(options) {}

  LossPieces pieces() const override { return LossPieces::columns; }

  void apply(Context& context, const LossInput<T>& input) override {
    const Arena::Scope scope(context.scratch());
    const Pairs<T> pairs(input);
    const VerticalLoss<T> forward = vertical_loss<T>(context, pairs.z, options_);
    vertical_loss_backward<T>(context, pairs.z, forward, input.share, pairs.dz);
    context.runtime().copy(input.value.data, forward.loss.data, sizeof(T));
  }

 private:
  AlignmentOptions options_;
};

// L_A of the paper.
template <class T>
class Horizontal final : public Loss<T> {
 public:
  explicit Horizontal(const AlignmentOptions& options)
      : Loss<T>("horizontal", LossRows::interactions), options_(options) {}

  LossPieces pieces() const override { return LossPieces::sides; }

  void apply(Context& context, const LossInput<T>& input) override {
    const Arena::Scope scope(context.scratch());
    const Pairs<T> pairs(input);
    AlignmentOptions options = options_;
    options.slim.solver = input.solver;
    const HorizontalLoss<T> forward = horizontal_loss<T>(context, pairs.z, options);
    horizontal_loss_backward<T>(context, pairs.z, options, forward, input.share, pairs.dz);
    context.runtime().copy(input.value.data, forward.loss.data, sizeof(T));
  }

 private:
  AlignmentOptions options_;
};

// ESAM's alignment of attributes' correlations.
template <class T>
class Coral final : public Loss<T> {
 public:
  Coral() : Loss<T>("coral", LossRows::interactions) {}

  void apply(Context& context, const LossInput<T>& input) override {
    const Arena::Scope scope(context.scratch());
    const Pairs<T> pairs(input);
    covariance_loss<T>(context, pairs.z, 1, input.value, pairs.dz);
  }
};

// ESAM's clusters of the items that a user is compared with, in the source: its labels are whole.
template <class T>
class Center final : public Loss<T> {
 public:
  explicit Center(const CenterOptions& options)
      : Loss<T>("center", LossRows::all), margins_{options.inner, options.outer} {}

  void apply(Context& context, const LossInput<T>& input) override {
    const Arena::Scope scope(context.scratch());
    center_loss<T>(context, input.z[kSource][kItem], input.negatives[kSource], input.label[kSource],
                   input.weight[kSource], margins_, 1, input.value, input.dz[kSource][kItem]);
  }

 private:
  CenterMargins margins_;
};

// ESAM's self-training: the target's scores that are sure become surer.
template <class T>
class SelfTraining final : public Loss<T> {
 public:
  SelfTraining(Context& context, const SelfTrainingOptions& options, int64_t rows)
      : Loss<T>("self_training", LossRows::scores),
        sure_{options.low, options.high},
        ones_(context, {rows}, std::vector<T>(static_cast<std::size_t>(rows), T(1)).data()) {}

  void apply(Context& context, const LossInput<T>& input) override {
    const Arena::Scope scope(context.scratch());
    self_training_loss<T>(context, input.score[kTarget], ones_.view(), sure_, input.value,
                          input.dscore[kTarget]);
  }

 private:
  SureScores sure_;
  Tensor<T, 1> ones_;  // (rows of the target): every row counts, whatever its label's weight
};

template <class T>
std::unique_ptr<Loss<T>> make_loss(Context& context, const std::string& name,
                                   const LossOptions& options, const AlignmentOptions& alignment,
                                   int64_t dim, const BatchShape& shape,
                                   Parameters<T>& parameters) {
  if (name == "vertical") return std::make_unique<Vertical<T>>(alignment);
  if (name == "horizontal") return std::make_unique<Horizontal<T>>(alignment);
  if (name == "coral") return std::make_unique<Coral<T>>();
  if (name == "center") return std::make_unique<Center<T>>(options.center);
  if (name == "self_training") {
    return std::make_unique<SelfTraining<T>>(context, options.self_training, shape.rows(kTarget));
  }
  CFAA_ASSERT(name == "adversary");
  return std::make_unique<Adversary<T>>(context, options.adversary, dim, shape.n, parameters);
}

}  // namespace

template <class T>
std::vector<std::unique_ptr<Loss<T>>> make_losses(Context& context, const LossOptions& options,
                                                  const AlignmentOptions& alignment, int64_t dim,
                                                  const BatchShape& shape,
                                                  Parameters<T>& parameters) {
  std::vector<std::unique_ptr<Loss<T>>> losses;
  for (const LossTerm& term : options.used()) {
    losses.push_back(make_loss<T>(context, term.name, options, alignment, dim, shape, parameters));
  }
  return losses;
}

#define CFAA_INSTANTIATE(T)                                                              \
  template std::vector<std::unique_ptr<Loss<T>>> make_losses<T>(                         \
      Context&, const LossOptions&, const AlignmentOptions&, int64_t, const BatchShape&, \
      Parameters<T>&);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
