// Both alignment losses of two embedding sets, and their gradients.
//
//   example_losses            on synthetic arrays
//
// A set is one domain's users (or items), a row each; the columns are attributes and mean the same
// in both domains. The vertical loss compares the distribution of each attribute, the horizontal
// one how the attributes hang together.

#include <cfaa/core/tensor.h>
#include <cfaa/device/make_context.h>
#include <cfaa/ops/horizontal_loss.h>
#include <cfaa/ops/vertical_loss.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

// Waves, moved by `shift`: two sets that differ.
std::vector<float> wave(int64_t rows, int64_t columns, double shift) {
  std::vector<float> values;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      values.push_back(static_cast<float>(std::sin(0.7 * r * (c + 1) + 0.3 * c) + shift));
    }
  }
  return values;
}

double norm(const std::vector<float>& gradient) {
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * g;
  return std::sqrt(squares);
}

}  // namespace

int main() {
  const auto context = cfaa::make_context("auto");  // a GPU where there is one
  const int64_t rows = 64, columns = 8;
  const cfaa::Tensor<float, 2> source(*context, {rows, columns}, wave(rows, columns, 0).data());
  const cfaa::Tensor<float, 2> target(*context, {rows, columns}, wave(rows, columns, 0.5).data());
  const cfaa::EmbeddingPair<float> pair{source.view(), target.view()};
  const cfaa::AlignmentOptions options;

  // Backward passes add to what is there.
  cfaa::Tensor<float, 2> source_gradient(*context, {rows, columns});
  cfaa::Tensor<float, 2> target_gradient(*context, {rows, columns});
  source_gradient.fill_zero();
  target_gradient.fill_zero();
  const cfaa::GradientPair<float> gradient{source_gradient.view(), target_gradient.view()};

  // What the forward passes keep for the backward ones lives in the context's scratch memory.
  const cfaa::Arena::Scope scope(context->scratch());
  const auto vertical = cfaa::vertical_loss<float>(*context, {&pair, 1}, options);
  cfaa::vertical_loss_backward<float>(*context, {&pair, 1}, vertical, 1.0, {&gradient, 1});
  const auto horizontal = cfaa::horizontal_loss<float>(*context, {&pair, 1}, options);
  cfaa::horizontal_loss_backward<float>(*context, {&pair, 1}, options, horizontal, 1.0,
                                        {&gradient, 1});
  context->check_faults();  // NaN, or a matrix that could not be factored, becomes an Error here

  std::printf("vertical loss   %.6f\n", cfaa::to_host(*context, vertical.loss)[0]);
  std::printf("horizontal loss %.6f\n", cfaa::to_host(*context, horizontal.loss)[0]);
  std::printf("gradient norms  %.6f source, %.6f target\n", norm(source_gradient.to_host()),
              norm(target_gradient.to_host()));
}
