#include "host/ops/gated_product.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {
namespace {

template <class T>
void check(MatrixView<const T> x, MatrixView<const T> y, VectorView<const T> weight,
           const Dropout& dropout) {
  CFAA_ASSERT(x.shape == y.shape && rows_are_dense(x) && rows_are_dense(y));
  CFAA_ASSERT(weight.size() == x.cols() && weight.contiguous());
  CFAA_ASSERT(dropout.p >= 0 && dropout.p < 1);
}

}  // namespace

template <class T>
void gated_product(Context& context, MatrixView<const T> x, MatrixView<const T> y,
                   VectorView<const T> weight, VectorView<const T> bias, const Dropout& dropout,
                   VectorView<T> score) {
  check(x, y, weight, dropout);
  CFAA_ASSERT(bias.size() == 1 && score.size() == x.rows() && score.contiguous());
  if (x.size() == 0) return;
  CFAA_DISPATCH(context, gated_product<T>)(context, x, y, weight, bias, dropout, score);
}

template <class T>
void gated_product_backward(Context& context, MatrixView<const T> x, MatrixView<const T> y,
                            VectorView<const T> weight, const Dropout& dropout,
                            VectorView<const T> dscore, MatrixView<T> dx, MatrixView<T> dy,
                            VectorView<T> dweight, VectorView<T> dbias) {
  check(x, y, weight, dropout);
  CFAA_ASSERT(dscore.size() == x.rows() && dscore.contiguous());
  CFAA_ASSERT(dx.shape == x.shape && rows_are_dense(dx));
  CFAA_ASSERT(dy.shape == y.shape && rows_are_dense(dy));
  CFAA_ASSERT(dweight.size() == weight.size() && dweight.contiguous() && dbias.size() == 1);
  if (x.size() == 0) return;
  CFAA_DISPATCH(context, gated_product_backward<T>)
  (context, x, y, weight, dropout, dscore, dx, dy, dweight, dbias);
}

template <class T>
void gated_product_rows(Context& context, MatrixView<const T> x, VectorView<const T> weight,
                        MatrixView<T> out) {
  CFAA_ASSERT(rows_are_dense(x) && rows_are_dense(out));
  CFAA_ASSERT(out.rows() == x.rows() && out.cols() == 2 * x.cols());
  CFAA_ASSERT(weight.data == nullptr || (weight.size() == x.cols() && weight.contiguous()));
  if (x.size() == 0) return;
  CFAA_DISPATCH(context, gated_product_rows<T>)(context, x, weight, out);
}

CFAA_FOR_FLOAT_AND_DOUBLE(gated_product);
CFAA_FOR_FLOAT_AND_DOUBLE(gated_product_backward);
CFAA_FOR_FLOAT_AND_DOUBLE(gated_product_rows);

}  // namespace cfaa
