// The covariance loss on the CPU: blocks of columns are centred, blocks of rows of the difference
// of covariances and of the gradients are products. Every block is one thread's.

#include "host/ops/covariance_loss.h"

#include <algorithm>

#include "host/cpu/blas.h"
#include "host/ops/sum.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kBlock = 64;

// Calls body(first, last) for the blocks of [0, count).
template <class Body>
void for_each_block(Context& context, int64_t count, Body body) {
  context.threads().parallel_for(count, kBlock,
                                 [&](int64_t first, int64_t last, int) { body(first, last); });
}

// z with the mean taken out of every column.
template <class T>
MatrixView<const T> centred(Context& context, MatrixView<const T> z) {
  const auto out = context.scratch().template take<T, 2>(z.shape);
  for_each_block(context, z.cols(), [&](int64_t first, int64_t last) {
    double mean[kBlock] = {};
    for (int64_t i = 0; i < z.rows(); ++i) {
      for (int64_t q = first; q < last; ++q) mean[q - first] += z(i, q);
    }
    for (int64_t q = first; q < last; ++q) mean[q - first] /= static_cast<double>(z.rows());
    for (int64_t i = 0; i < z.rows(); ++i) {
      for (int64_t q = first; q < last; ++q) out(i, q) = static_cast<T>(z(i, q) - mean[q - first]);
    }
  });
  return out;
}

// dz += factor z difference
template <class T>
void add_gradient(Context& context, MatrixView<const T> z, MatrixView<const T> difference,
                  double factor, MatrixView<T> dz) {
  const int64_t d = z.cols();
  for_each_block(context, z.rows(), [&](int64_t first, int64_t last) {
    gemm(Transpose::no, Transpose::no, last - first, d, d, static_cast<T>(factor), &z(first, 0), d,
         difference.data, d, T(1), &dz(first, 0), dz.stride[0]);
  });
}

}  // namespace

template <class T>
void covariance_loss(Context& context, EmbeddingPairs<T> pairs, double scale, VectorView<T> loss,
                     GradientPairs<T> gradients) {
  use_one_blas_thread();
  const int64_t d = pairs[0].source.cols();
  const double of_pair = 1.0 / static_cast<double>(d * d);
  const auto rows = context.scratch().template take<T, 2>({static_cast<int64_t>(pairs.size()), d});
  const auto difference = context.scratch().template take<T, 2>({d, d});
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const Arena::Scope scope(context.scratch());
    const auto source = centred(context, pairs[p].source);
    const auto target = centred(context, pairs[p].target);
    const double degrees_source = static_cast<double>(source.rows() - 1);
    const double degrees_target = static_cast<double>(target.rows() - 1);

    for_each_block(context, d, [&](int64_t first, int64_t last) {
      gemm(Transpose::yes, Transpose::no, last - first, d, source.rows(),
           static_cast<T>(1 / degrees_source), source.data + first, d, source.data, d, T(0),
           &difference(first, 0), d);
      gemm(Transpose::yes, Transpose::no, last - first, d, target.rows(),
           static_cast<T>(-1 / degrees_target), target.data + first, d, target.data, d, T(1),
           &difference(first, 0), d);
      for (int64_t i = first; i < last; ++i) {
        rows(static_cast<int64_t>(p), i) =
            static_cast<T>(dot(d, &difference(i, 0), &difference(i, 0)));
      }
    });
    const double factor = 4 * scale * of_pair;
    add_gradient<T>(context, source, difference, factor / degrees_source, gradients[p].source);
    add_gradient<T>(context, target, difference, -factor / degrees_target, gradients[p].target);
  }
  cpu::sum<T>(context, {rows.data, {rows.size()}}, of_pair, loss);
}

CFAA_FOR_FLOAT_AND_DOUBLE(covariance_loss);

}  // namespace cfaa::cpu
