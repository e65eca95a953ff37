#include "host/ops/sparse_product.h"

#include "host/core/error.h"
#include "host/ops/dispatch.h"

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

template void sparse_product<float>(Context&, const SparseView&, VectorView<const int32_t>,
                                    const SparseView&, double, int64_t, bool, MatrixView<float>);
template void sparse_product<double>(Context&, const SparseView&, VectorView<const int32_t>,
                                     const SparseView&, double, int64_t, bool, MatrixView<double>);

}  // namespace cfaa
