#include "host/ops/als.h"

#include <algorithm>
#include <vector>

#include "host/core/error.h"
#include "host/core/tensor.h"
#include "host/cpu/blas.h"

namespace cfaa {

namespace {

template <class T>
void check(const SparseView& rows, const AlsOptions& options, MatrixView<const T> h,
           MatrixView<T> w) {
  CFAA_ASSERT(rows.columns == h.rows() && rows.rows == w.rows() && w.cols() == h.cols());
  CFAA_ASSERT(h.contiguous() && w.contiguous() && h.cols() > 0);
  CFAA_ASSERT(options.alpha >= 0 && options.lambda > 0);
}

}  // namespace

template <class T>
std::vector<T> als_half_sweep(Context& context, const SparseView& rows, const AlsOptions& options,
                              MatrixView<T> h, MatrixView<T> w) {
  const int64_t d = h.cols();
  check<T>(rows, options, h, w);
  if (w.size() == 0) return std::vector<T>(static_cast<std::size_t>(d));
  const Arena::Scope scope(context.scratch());
  const auto gram = context.scratch().template take<T, 2>({d, d});
  CFAA_DISPATCH(context, als_gram<T>)(context, h, gram);

  const std::vector<T> on_host = to_host(context, gram);
  std::vector<double> vectors(on_host.begin(), on_host.end());
  std::vector<double> values(static_cast<std::size_t>(d));
  if (cpu::eigen_symmetric(d, vectors.data(), d, values.data()) != 0) {
    throw Error(
        "alternating least squares: the factors are not finite; use a larger regularisation");
  }
  std::vector<T> basis(vectors.begin(), vectors.end()), diagonal(values.size());
  for (std::size_t q = 0; q < values.size(); ++q) {
    diagonal[q] = static_cast<T>(options.alpha * std::max(values[q], 0.0));
  }
  context.runtime().copy_from_host(gram.data, basis.data(), basis.size() * sizeof(T));
  context.runtime().synchronize();
  CFAA_DISPATCH(context, als_turn<T>)(context, gram, h);
  als_later_rows<T>(context, rows, options, diagonal, h, w);
  return diagonal;
}

template <class T>
void als_later_rows(Context& context, const SparseView& rows, const AlsOptions& options,
                    std::span<const T> diagonal, MatrixView<const T> h, MatrixView<T> w) {
  check<T>(rows, options, h, w);
  CFAA_ASSERT(std::ssize(diagonal) == h.cols());
  if (w.size() == 0) return;
  const Arena::Scope scope(context.scratch());
  const auto base = context.scratch().template take<T, 1>({h.cols()});
  context.runtime().copy_from_host(base.data, diagonal.data(), diagonal.size_bytes());
  context.runtime().synchronize();
  CFAA_DISPATCH(context, als_solve<T>)(context, rows, options, base, h, w);
}

CFAA_FOR_FLOAT_AND_DOUBLE(als_half_sweep);
CFAA_FOR_FLOAT_AND_DOUBLE(als_later_rows);

}  // namespace cfaa
