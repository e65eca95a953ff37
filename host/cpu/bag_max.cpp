#include "host/ops/bag_max.h"

#include <algorithm>

namespace cfaa::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 16;  // bags, or touched rows: their lists differ in length

}

template <class T>
void bag_max(Context& context, MatrixView<const T> x, const Bags<T>& bags, MatrixView<T> out,
             MatrixView<int32_t> from) {
  const int64_t columns = out.cols();
  context.threads().parallel_for(out.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      T* most = out.data + r * out.stride[0];
      int32_t* giver = from.data + r * columns;
      std::fill_n(most, columns, T(0));
      std::fill_n(giver, columns, -1);
      for (int64_t e = bags.offset.data[r]; e < bags.offset.data[r + 1]; ++e) {
        const int32_t row = bags.index.data[e];
        const T* values = x.data + row * x.stride[0];
        for (int64_t c = 0; c < columns; ++c) {
          const bool is_larger = !(values[c] <= most[c]);  // NaN stays NaN
          most[c] = is_larger ? values[c] : most[c];
          giver[c] = is_larger ? row : giver[c];
        }
      }
    }
  });
}

template <class T>
void bag_max_backward(Context& context, MatrixView<const T> dout, MatrixView<const int32_t> from,
                      const TouchedRows<T>& touched, MatrixView<T> dx) {
  const int64_t columns = dout.cols();
  context.threads().parallel_for(
      touched.count.data[0], kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int32_t row = touched.row.data[i];
          T* sum = dx.data + row * dx.stride[0];
          for (int64_t e = touched.offset.data[i]; e < touched.offset.data[i + 1]; ++e) {
            const T* values = dout.data + touched.bag.data[e] * dout.stride[0];
            const int32_t* giver = from.data + touched.bag.data[e] * columns;
            for (int64_t c = 0; c < columns; ++c) {
              sum[c] += giver[c] == row ? values[c] : T(0);
            }
          }
        }
      });
}

CFAA_FOR_FLOAT_AND_DOUBLE(bag_max);
CFAA_FOR_FLOAT_AND_DOUBLE(bag_max_backward);

}  // namespace cfaa::cpu
