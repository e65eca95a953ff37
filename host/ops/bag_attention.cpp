#include "host/ops/bag_attention.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void bag_attention(Context& context, MatrixView<const T> x, VectorView<const T> logit,
                   const Bags<T>& bags, MatrixView<T> out, MatrixView<T> softmax) {
  CFAA_ASSERT(rows_are_dense(x) && rows_are_dense(out) && out.cols() == x.cols());
  CFAA_ASSERT(logit.size() == x.rows() && logit.contiguous());
  CFAA_ASSERT(softmax.rows() == out.rows() && softmax.cols() == 2 && softmax.contiguous());
  CFAA_ASSERT(bags.offset.contiguous() && bags.index.contiguous());
  CFAA_ASSERT(bags.offset.size() > out.rows());
  if (out.size() == 0) return;
  CFAA_DISPATCH(context, bag_attention<T>)(context, x, logit, bags, out, softmax);
}

template <class T>
void bag_attention_backward(Context& context, MatrixView<const T> x, VectorView<const T> logit,
                            MatrixView<const T> out, MatrixView<const T> softmax,
                            MatrixView<const T> dout, const TouchedRows<T>& touched,
                            MatrixView<T> dx, VectorView<T> dlogit) {
  CFAA_ASSERT(rows_are_dense(x) && rows_are_dense(out) && out.cols() == x.cols());
  CFAA_ASSERT(dout.shape == out.shape && rows_are_dense(dout));
  CFAA_ASSERT(dx.shape == x.shape && rows_are_dense(dx));
  CFAA_ASSERT(logit.size() == x.rows() && logit.contiguous());
  CFAA_ASSERT(dlogit.size() == x.rows() && dlogit.contiguous());
  CFAA_ASSERT(softmax.rows() == out.rows() && softmax.cols() == 2 && softmax.contiguous());
  CFAA_ASSERT(touched.count.size() == 1 && touched.row.contiguous());
  CFAA_ASSERT(touched.offset.contiguous() && touched.bag.contiguous());
  CFAA_ASSERT(touched.offset.size() > touched.row.size());
  if (out.size() == 0 || touched.row.size() == 0) return;

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, bag_attention_backward<T>)
  (context, x, logit, out, softmax, dout, touched, dx, dlogit);
}

CFAA_FOR_FLOAT_AND_DOUBLE(bag_attention);
CFAA_FOR_FLOAT_AND_DOUBLE(bag_attention_backward);

}  // namespace cfaa
