#include "host/ops/review_input.h"

#include <algorithm>

namespace cfaa::cpu {

template <class T>
void review_input(Context& context, MatrixView<const float> review, MatrixView<T> out) {
  context.threads().parallel_for(out.rows(), 32, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      std::copy_n(review.data + r * review.stride[0], out.cols(), out.data + r * out.stride[0]);
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(review_input);

}  // namespace cfaa::cpu
