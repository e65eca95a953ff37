// What the call that bench/peers/python_peers.py times costs in C++: microseconds on standard
// output.

#include <cstdio>
#include <vector>

#include "host/core/stopwatch.h"
#include "host/core/tensor.h"
#include "host/device/make_context.h"
#include "host/ops/vertical_loss.h"

int main() {
  using namespace cfaa;
  const auto context = make_context("cpu", {.threads = 1});
  std::vector<float> source = {0.1f, 1.2f, -0.5f, 0.4f, 2.0f, -1.0f, 0.7f, 0.3f}, target = source;
  for (float& value : target) value *= 1.5f;
  const EmbeddingPair<float> pair{{source.data(), {4, 2}}, {target.data(), {4, 2}}};
  AlignmentOptions options;
  options.typical.k = 2;
  options.coupling.solver = OtSolver::exact;
  const auto call = [&] {
    std::vector<float> source_gradient(8), target_gradient(8);
    const GradientPair<float> gradient{{source_gradient.data(), {4, 2}},
                                       {target_gradient.data(), {4, 2}}};
    const Arena::Scope scope(context->scratch());
    const auto forward = vertical_loss<float>(*context, {&pair, 1}, options);
    vertical_loss_backward<float>(*context, {&pair, 1}, forward, 1.0, {&gradient, 1});
    context->check_faults();
    return forward.loss.data[0];
  };
  call();
  constexpr int kCalls = 3000;
  const Stopwatch watch;
  for (int i = 0; i < kCalls; ++i) call();
  std::printf("%.3f\n", 1e6 * watch.seconds() / kCalls);
}
