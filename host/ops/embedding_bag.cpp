#include "host/ops/embedding_bag.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void embedding_bag(Context& context, MatrixView<const T> table, const Bags<T>& bags,
                   MatrixView<T> out) {
  CFAA_ASSERT(rows_are_dense(table) && rows_are_dense(out) && out.cols() == table.cols());
  CFAA_ASSERT(bags.offset.contiguous() && bags.index.contiguous() && bags.weight.contiguous());
  CFAA_ASSERT(bags.offset.size() > out.rows() && bags.index.size() == bags.weight.size());
  if (out.size() == 0) return;
  CFAA_DISPATCH(context, embedding_bag<T>)(context, table, bags, out);
}

template <class T>
void embedding_bag_backward(Context& context, MatrixView<const T> dout,
                            const TouchedRows<T>& touched, MatrixView<T> gradient) {
  CFAA_ASSERT(rows_are_dense(dout) && rows_are_dense(gradient) && gradient.cols() == dout.cols());
  CFAA_ASSERT(touched.count.size() == 1 && touched.row.contiguous() && touched.offset.contiguous());
  CFAA_ASSERT(touched.bag.contiguous() && touched.weight.contiguous());
  CFAA_ASSERT(touched.offset.size() > touched.row.size() && gradient.rows() >= touched.row.size());
  CFAA_ASSERT(touched.bag.size() == touched.weight.size());
  if (gradient.size() == 0 || touched.row.size() == 0) return;
  CFAA_DISPATCH(context, embedding_bag_backward<T>)(context, dout, touched, gradient);
}

CFAA_FOR_FLOAT_AND_DOUBLE(embedding_bag);
CFAA_FOR_FLOAT_AND_DOUBLE(embedding_bag_backward);

}  // namespace cfaa
