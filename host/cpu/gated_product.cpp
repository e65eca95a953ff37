#include "host/ops/gated_product.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 32;
constexpr int64_t kColumnsAtOnce = 16;

}  // namespace

template <class T>
void gated_product(Context& context, MatrixView<const T> x, MatrixView<const T> y,
                   VectorView<const T> weight, VectorView<const T> bias, const Dropout& dropout,
                   VectorView<T> score) {
  const DropoutDraw mask(context.random(), dropout);
  context.threads().parallel_for(x.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      double total = bias.data[0];
      for (int64_t k = 0; k < x.cols(); ++k) {
        const T product = x(r, k) * y(r, k);
        if (product <= T(0)) continue;  // NaN stays NaN
        total += static_cast<double>(weight.data[k] * product) * mask.factor(r * x.cols() + k);
      }
      score.data[r] += static_cast<T>(total);
    }
  });
}

template <class T>
void gated_product_backward(Context& context, MatrixView<const T> x, MatrixView<const T> y,
                            VectorView<const T> weight, const Dropout& dropout,
                            VectorView<const T> dscore, MatrixView<T> dx, MatrixView<T> dy,
                            VectorView<T> dweight, VectorView<T> dbias) {
  const DropoutDraw mask(context.random(), dropout);
  // By columns: each thread adds up its own weights in the order of the rows.
  context.threads().parallel_for(x.cols(), kColumnsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = 0; r < x.rows(); ++r) {
      for (int64_t k = begin; k < end; ++k) {
        const T product = x(r, k) * y(r, k);
        T through = 0;
        if (product > T(0)) {
          through = dscore.data[r] * static_cast<T>(mask.factor(r * x.cols() + k));
        }
        dx(r, k) = through * weight.data[k] * y(r, k);
        dy(r, k) = through * weight.data[k] * x(r, k);
        dweight.data[k] += through * product;
      }
    }
  });
  double sum = 0;
  for (int64_t r = 0; r < x.rows(); ++r) sum += static_cast<double>(dscore.data[r]);
  dbias.data[0] += static_cast<T>(sum);
}

template <class T>
void gated_product_rows(Context& context, MatrixView<const T> x, VectorView<const T> weight,
                        MatrixView<T> out) {
  const int64_t columns = x.cols();
  context.threads().parallel_for(x.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t k = 0; k < columns; ++k) {
        const T value = (weight.data == nullptr ? T(1) : weight.data[k]) * x(r, k);
        out(r, k) = x(r, k) > T(0) ? value : T(0);
        out(r, columns + k) = x(r, k) > T(0) ? T(0) : -value;
      }
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(gated_product);
CFAA_FOR_FLOAT_AND_DOUBLE(gated_product_backward);
CFAA_FOR_FLOAT_AND_DOUBLE(gated_product_rows);

}  // namespace cfaa::cpu
