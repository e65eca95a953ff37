#include "host/ops/vertical_loss.h"

#include "host/ops/sum.h"

namespace cfaa {

template <class T>
VerticalLoss<T> vertical_loss(Context& context, EmbeddingPairs<T> pairs,
                              const AlignmentOptions& options, bool keep_plans) {
  VerticalLoss<T> result;
  result.loss = context.scratch().template take<T, 1>({1});
  result.typical = typical_samples<T>(context, pairs, options.typical);

  // The sources' samples come first: together they are the (P D, K) source side of the problems.
  const View<T, 3> samples = result.typical.samples;
  const int64_t problems = samples.shape[0] / 2 * samples.shape[1], k = samples.shape[2];
  const MatrixView<const T> source(samples.data, {problems, k});
  const MatrixView<const T> target(samples.data + problems * k, {problems, k});
  if (keep_plans) result.plan = context.scratch().template take<T, 3>({problems, k, k});
  result.coupling = coupling<T>(context, source, target, options.coupling, result.plan);

  sum<T>(context, result.coupling.loss, 1.0 / static_cast<double>(samples.shape[1]), result.loss);
  return result;
}

template <class T>
void vertical_loss_backward(Context& context, EmbeddingPairs<T> pairs,
                            const VerticalLoss<T>& forward, double scale,
                            GradientPairs<T> gradients) {
  const View<T, 3> samples = forward.typical.samples;
  const View<const T, 3> samples_gradient(forward.coupling.gradient.data, samples.shape);
  typical_samples_backward<T>(context, pairs, forward.typical, samples_gradient,
                              scale / static_cast<double>(samples.shape[1]), gradients);
}

CFAA_FOR_FLOAT_AND_DOUBLE(vertical_loss);
CFAA_FOR_FLOAT_AND_DOUBLE(vertical_loss_backward);

}  // namespace cfaa
