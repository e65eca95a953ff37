#include "host/ops/typical_samples.h"

#include <algorithm>
#include <string>

#include "host/core/error.h"

namespace cfaa {
namespace {

void check_options(const TypicalSamplesOptions& options) {
  if (options.k < 0) {
    throw Error("k is " + std::to_string(options.k) + "; use a positive number, or 0 for half N");
  }
  if (!(options.alpha > 0)) throw Error("alpha must be greater than 0");
  if (options.iterations < 1) throw Error("typical_iterations must be at least 1");
}

}  // namespace

template <class T>
int64_t typical_sample_count(EmbeddingPairs<T> pairs, const TypicalSamplesOptions& options) {
  if (options.k > 0) return options.k;
  int64_t smallest = pairs[0].source.rows();
  for (const EmbeddingPair<T>& pair : pairs) {
    smallest = std::min({smallest, pair.source.rows(), pair.target.rows()});
  }
  return std::max<int64_t>(1, smallest / 2);
}

template <class T>
TypicalSamples<T> typical_samples(Context& context, EmbeddingPairs<T> pairs,
                                  const TypicalSamplesOptions& options) {
  check_pairs(pairs);
  check_options(options);
  const int64_t p = static_cast<int64_t>(pairs.size()), d = pairs[0].source.cols();
  const int64_t k = typical_sample_count(pairs, options);
  Arena& arena = context.scratch();

  TypicalSamples<T> result;
  result.samples = arena.take<T, 3>({2 * p, d, k});
  result.previous = arena.take<T, 3>({2 * p, d, k});
  result.weight = arena.take<T, 3>({2 * p, d, k});
  result.centre = arena.take<T, 2>({2 * p, d});
  result.spread = arena.take<T, 2>({p, d});
  result.bandwidth = arena.take<T, 2>({p, d});
  result.column_std = arena.take<T, 2>({2 * p, d});
  result.sample_std = arena.take<T, 2>({2 * p, d});

  const Arena::Scope scope(arena);
  CFAA_DISPATCH(context, typical_samples<T>)(context, pairs, options, result);
  return result;
}

template <class T>
void typical_samples_backward(Context& context, EmbeddingPairs<T> pairs,
                              const TypicalSamples<T>& forward, View<const T, 3> samples_gradient,
                              double scale, GradientPairs<T> gradients) {
  check_pairs(pairs);
  check_gradients(pairs, gradients);
  CFAA_ASSERT(samples_gradient.shape == forward.samples.shape && samples_gradient.contiguous());

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, typical_samples_backward<T>)
  (context, pairs, forward, samples_gradient, scale, gradients);
}

CFAA_FOR_FLOAT_AND_DOUBLE(typical_sample_count);
CFAA_FOR_FLOAT_AND_DOUBLE(typical_samples);
CFAA_FOR_FLOAT_AND_DOUBLE(typical_samples_backward);

}  // namespace cfaa
