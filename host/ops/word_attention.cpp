#include "host/ops/word_attention.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {
namespace {

template <class T>
void check(MatrixView<const T> query, MatrixView<const T> key, MatrixView<const T> value,
           const Bags<T>& bags) {
  CFAA_ASSERT(rows_are_dense(query) && rows_are_dense(key) && rows_are_dense(value));
  CFAA_ASSERT(key.cols() == query.cols() && value.rows() == key.rows());
  CFAA_ASSERT(bags.offset.contiguous() && bags.index.contiguous());
  CFAA_ASSERT(bags.offset.size() > query.rows());
}

}  // namespace

template <class T>
void word_attention(Context& context, MatrixView<const T> query, MatrixView<const T> key,
                    MatrixView<const T> value, double scale, const Bags<T>& bags, MatrixView<T> out,
                    VectorView<T> share) {
  check(query, key, value, bags);
  CFAA_ASSERT(rows_are_dense(out) && out.rows() == query.rows() && out.cols() == value.cols());
  CFAA_ASSERT(share.contiguous() && share.size() >= bags.index.size());
  if (out.size() == 0) return;
  CFAA_DISPATCH(context, word_attention<T>)
  (context, query, key, value, scale, bags, out, share);
}

template <class T>
void word_attention_backward(Context& context, MatrixView<const T> query, MatrixView<const T> key,
                             MatrixView<const T> value, double scale, const Bags<T>& bags,
                             VectorView<const T> share, MatrixView<const T> dout,
                             const TouchedRows<T>& touched, MatrixView<T> dquery,
                             MatrixView<T> gradient) {
  check(query, key, value, bags);
  CFAA_ASSERT(share.contiguous() && share.size() >= bags.index.size());
  CFAA_ASSERT(rows_are_dense(dout) && dout.rows() == query.rows() && dout.cols() == value.cols());
  CFAA_ASSERT(dquery.shape == query.shape && rows_are_dense(dquery));
  CFAA_ASSERT(gradient.cols() == key.cols() && rows_are_dense(gradient));
  CFAA_ASSERT(touched.count.size() == 1 && touched.row.contiguous());
  CFAA_ASSERT(touched.offset.contiguous() && touched.bag.contiguous());
  CFAA_ASSERT(touched.offset.size() > touched.row.size() && gradient.rows() >= touched.row.size());
  if (dout.size() == 0) return;

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, word_attention_backward<T>)
  (context, query, key, value, scale, bags, share, dout, touched, dquery, gradient);
}

CFAA_FOR_FLOAT_AND_DOUBLE(word_attention);
CFAA_FOR_FLOAT_AND_DOUBLE(word_attention_backward);

}  // namespace cfaa
