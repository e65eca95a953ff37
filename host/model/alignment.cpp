#include "host/model/alignment.h"

#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"

namespace cfaa {
namespace {

template <class T>
class Vertical final : public AlignmentLoss<T> {
 public:
  explicit Vertical(const AlignmentOptions& options) : options_(options) {}

  const char* name() const override { return "vertical"; }
  void apply(Context& context, EmbeddingPairs<T> pairs, GradientPairs<T> gradients,
             VectorView<T> loss) override {
    const Arena::Scope scope(context.scratch());
    const VerticalLoss<T> forward = vertical_loss<T>(context, pairs, options_);
    vertical_loss_backward<T>(context, pairs, forward, 1, gradients);
    context.runtime().copy(loss.data, forward.loss.data, sizeof(T));
  }

 private:
  AlignmentOptions options_;
};

template <class T>
class Horizontal final : public AlignmentLoss<T> {
 public:
  explicit Horizontal(const AlignmentOptions& options) : options_(options) {}

  const char* name() const override { return "horizontal"; }
  void apply(Context& context, EmbeddingPairs<T> pairs, GradientPairs<T> gradients,
             VectorView<T> loss) override {
    const Arena::Scope scope(context.scratch());
    const HorizontalLoss<T> forward = horizontal_loss<T>(context, pairs, options_);
    horizontal_loss_backward<T>(context, pairs, options_, forward, 1, gradients);
    context.runtime().copy(loss.data, forward.loss.data, sizeof(T));
  }

 private:
  AlignmentOptions options_;
};

}  // namespace

template <class T>
std::unique_ptr<AlignmentLoss<T>> make_vertical(const AlignmentOptions& options) {
  return std::make_unique<Vertical<T>>(options);
}
template <class T>
std::unique_ptr<AlignmentLoss<T>> make_horizontal(const AlignmentOptions& options) {
  return std::make_unique<Horizontal<T>>(options);
}

#define CFAA_INSTANTIATE(T)                                                             \
  template std::unique_ptr<AlignmentLoss<T>> make_vertical<T>(const AlignmentOptions&); \
  template std::unique_ptr<AlignmentLoss<T>> make_horizontal<T>(const AlignmentOptions&);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
