#include "host/ops/sparse_product.h"

#include <algorithm>

namespace cfaa::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 8;

}

template <class T>
void sparse_product(Context& context, const SparseView& a, VectorView<const int32_t> rows,
                    const SparseView& b, double alpha, int64_t first, bool add, MatrixView<T> out) {
  const int64_t last = first + out.cols();
  const bool all_columns = first == 0 && last == b.columns;
  context.threads().parallel_for(out.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      T* sums = out.data + r * out.stride[0];
      if (!add) std::fill_n(sums, out.cols(), T(0));
      const int64_t row = rows.data == nullptr ? r : rows.data[r];
      for (int64_t e = a.offset[row]; e < a.offset[row + 1]; ++e) {
        const T factor = static_cast<T>(alpha * a.value[e]);
        const int32_t k = a.column[e];
        const int32_t *from = b.column + b.offset[k], *to = b.column + b.offset[k + 1];
        if (!all_columns) {
          from = std::lower_bound(from, to, first);
          to = std::lower_bound(from, to, last);
        }
        const float* value = b.value + (from - b.column);
        for (const int32_t* c = from; c != to; ++c, ++value) sums[*c - first] += factor * *value;
      }
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(sparse_product);

}  // namespace cfaa::cpu
