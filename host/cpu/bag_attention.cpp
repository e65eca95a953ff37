#include "host/ops/bag_attention.h"

#include <algorithm>
#include <cmath>

#include "host/cpu/blas.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 16;  // bags, or touched rows: their lists differ in length

}

template <class T>
void bag_attention(Context& context, MatrixView<const T> x, VectorView<const T> logit,
                   const Bags<T>& bags, MatrixView<T> out, MatrixView<T> softmax) {
  const int32_t *offset = bags.offset.data, *index = bags.index.data;
  context.threads().parallel_for(out.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      T most = offset[r] < offset[r + 1] ? logit.data[index[offset[r]]] : T(0), sum = 0;
      for (int32_t e = offset[r]; e < offset[r + 1]; ++e) {
        most = std::max(most, logit.data[index[e]]);
      }
      for (int32_t e = offset[r]; e < offset[r + 1]; ++e) {
        sum += std::exp(logit.data[index[e]] - most);
      }
      softmax(r, 0) = most;
      softmax(r, 1) = sum;
      T* row = out.data + r * out.stride[0];
      std::fill_n(row, out.cols(), T(0));
      for (int32_t e = offset[r]; e < offset[r + 1]; ++e) {
        const T share = std::exp(logit.data[index[e]] - most) / sum;
        const T* values = x.data + index[e] * x.stride[0];
        for (int64_t c = 0; c < out.cols(); ++c) row[c] += share * values[c];
      }
    }
  });
}

template <class T>
void bag_attention_backward(Context& context, MatrixView<const T> x, VectorView<const T> logit,
                            MatrixView<const T> out, MatrixView<const T> softmax,
                            MatrixView<const T> dout, const TouchedRows<T>& touched,
                            MatrixView<T> dx, VectorView<T> dlogit) {
  use_one_blas_thread();
  const int64_t columns = x.cols();
  const auto along = context.scratch().template take<double, 1>({out.rows()});  // <dout, out>
  context.threads().parallel_for(out.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      along.data[r] = dot(columns, dout.data + r * dout.stride[0], out.data + r * out.stride[0]);
    }
  });
  context.threads().parallel_for(
      touched.count.data[0], kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = touched.row.data[i];
          const T* values = x.data + row * x.stride[0];
          T* gradient = dx.data + row * dx.stride[0];
          for (int64_t e = touched.offset.data[i]; e < touched.offset.data[i + 1]; ++e) {
            const int64_t r = touched.bag.data[e];
            const T* above = dout.data + r * dout.stride[0];
            const T share = std::exp(logit.data[row] - softmax(r, 0)) / softmax(r, 1);
            for (int64_t c = 0; c < columns; ++c) gradient[c] += share * above[c];
            dlogit.data[row] += share * static_cast<T>(dot(columns, above, values) - along.data[r]);
          }
        }
      });
}

CFAA_FOR_FLOAT_AND_DOUBLE(bag_attention);
CFAA_FOR_FLOAT_AND_DOUBLE(bag_attention_backward);

}  // namespace cfaa::cpu
