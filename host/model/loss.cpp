#include "host/model/loss.h"

#include <utility>

#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"

namespace cfaa {
namespace {

template <class T>
void vertical(Context& context, const AlignmentOptions& options, const LossInput<T>& input) {
  const VerticalLoss<T> forward = vertical_loss<T>(context, input.pairs, options);
  vertical_loss_backward<T>(context, input.pairs, forward, 1, input.gradients);
  context.runtime().copy(input.value.data, forward.loss.data, sizeof(T));
}

template <class T>
void horizontal(Context& context, const AlignmentOptions& options, const LossInput<T>& input) {
  const HorizontalLoss<T> forward = horizontal_loss<T>(context, input.pairs, options);
  horizontal_loss_backward<T>(context, input.pairs, options, forward, 1, input.gradients);
  context.runtime().copy(input.value.data, forward.loss.data, sizeof(T));
}

}  // namespace

template <class T>
std::vector<Loss<T>> make_losses(const LossOptions& options, const AlignmentOptions& alignment) {
  std::vector<Loss<T>> losses;
  for (const LossTerm& term : options.used()) {
    const auto compute = term.name == "vertical" ? vertical<T> : horizontal<T>;
    losses.push_back({term.name, [compute, alignment](Context& context, const LossInput<T>& input) {
                        const Arena::Scope scope(context.scratch());
                        compute(context, alignment, input);
                      }});
  }
  return losses;
}

template std::vector<Loss<float>> make_losses<float>(const LossOptions&, const AlignmentOptions&);
template std::vector<Loss<double>> make_losses<double>(const LossOptions&, const AlignmentOptions&);

}  // namespace cfaa
