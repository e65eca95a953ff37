#include "host/ops/bag_max.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void bag_max(Context& context, MatrixView<const T> x, const Bags<T>& bags, MatrixView<T> out,
             MatrixView<int32_t> from) {
  CFAA_ASSERT(rows_are_dense(x) && rows_are_dense(out) && out.cols() == x.cols());
  CFAA_ASSERT(from.shape == out.shape && from.contiguous());
  CFAA_ASSERT(bags.offset.contiguous() && bags.index.contiguous());
  CFAA_ASSERT(bags.offset.size() > out.rows());
  if (out.size() == 0) return;
  CFAA_DISPATCH(context, bag_max<T>)(context, x, bags, out, from);
}

template <class T>
void bag_max_backward(Context& context, MatrixView<const T> dout, MatrixView<const int32_t> from,
                      const TouchedRows<T>& touched, MatrixView<T> dx) {
  CFAA_ASSERT(rows_are_dense(dout) && rows_are_dense(dx) && dx.cols() == dout.cols());
  CFAA_ASSERT(from.shape == dout.shape && from.contiguous());
  CFAA_ASSERT(touched.count.size() == 1 && touched.row.contiguous());
  CFAA_ASSERT(touched.offset.contiguous() && touched.bag.contiguous());
  CFAA_ASSERT(touched.offset.size() > touched.row.size());
  if (dx.size() == 0 || touched.row.size() == 0) return;
  CFAA_DISPATCH(context, bag_max_backward<T>)(context, dout, from, touched, dx);
}

CFAA_FOR_FLOAT_AND_DOUBLE(bag_max);
CFAA_FOR_FLOAT_AND_DOUBLE(bag_max_backward);

}  // namespace cfaa
