#include "host/ops/relu.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 64;

}

template <class T>
void relu(Context& context, MatrixView<T> x) {
  context.threads().parallel_for(x.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      T* row = x.data + r * x.stride[0];
      for (int64_t c = 0; c < x.cols(); ++c) row[c] = row[c] < T(0) ? T(0) : row[c];
    }
  });
}

template <class T>
void relu_backward(Context& context, MatrixView<const T> y, MatrixView<T> dx) {
  context.threads().parallel_for(y.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const T* left = y.data + r * y.stride[0];
      T* row = dx.data + r * dx.stride[0];
      for (int64_t c = 0; c < y.cols(); ++c) row[c] = left[c] > T(0) ? row[c] : T(0);
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(relu);
CFAA_FOR_FLOAT_AND_DOUBLE(relu_backward);

}  // namespace cfaa::cpu
