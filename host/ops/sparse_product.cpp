#include "host/ops/sparse_product.h"

#include "host/core/error.h"

namespace cfaa {

template <class T>
void sparse_product(Context& context, const SparseView& a, VectorView<const int32_t> rows,
                    const SparseView& b, double alpha, int64_t first, bool add, MatrixView<T> out) {
  CFAA_ASSERT(a.columns == b.rows && out.stride[1] == 1);
  CFAA_ASSERT(rows.data == nullptr ? out.rows() == a.rows : out.rows() == rows.size());
  CFAA_ASSERT(first >= 0 && first + out.cols() <= b.columns);
  if (out.size() == 0) return;
  CFAA_DISPATCH(context, sparse_product<T>)(context, a, rows, b, alpha, first, add, out);
}

CFAA_FOR_FLOAT_AND_DOUBLE(sparse_product);

}  // namespace cfaa
