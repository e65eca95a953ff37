#include "host/ops/dropout.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"
#include "host/ops/dispatch.h"

namespace cfaa {

template <class T>
void dropout(Context& context, double p, const StepState* state, uint64_t layer, MatrixView<T> x) {
  CFAA_ASSERT(p >= 0 && p < 1 && layer < 65536 && state != nullptr && rows_are_dense(x));
  CFAA_ASSERT(x.size() <= INT32_MAX);
  if (p == 0 || x.size() == 0) return;
  CFAA_DISPATCH(context, dropout<T>)(context, p, state, layer, x);
}

template void dropout<float>(Context&, double, const StepState*, uint64_t, MatrixView<float>);
template void dropout<double>(Context&, double, const StepState*, uint64_t, MatrixView<double>);

}  // namespace cfaa
