#include "host/ops/dropout.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void dropout(Context& context, double p, const StepState* state, uint64_t layer, MatrixView<T> x) {
  CFAA_ASSERT(p >= 0 && p < 1 && layer < 65536 && state != nullptr && rows_are_dense(x));
  CFAA_ASSERT(x.size() <= INT32_MAX);
  if (p == 0 || x.size() == 0) return;
  CFAA_DISPATCH(context, dropout<T>)(context, p, state, layer, x);
}

CFAA_FOR_FLOAT_AND_DOUBLE(dropout);

}  // namespace cfaa
