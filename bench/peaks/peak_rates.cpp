#include "bench/peaks/peak_rates.h"

#include "host/ops/dispatch.h"

namespace cfaa {

template <class T>
double run_multiply_adds(Context& context, double count, VectorView<T> sink) {
  return CFAA_DISPATCH(context, run_multiply_adds<T>)(context, count, sink);
}

template <class T>
double run_exponentials(Context& context, double count, VectorView<T> sink) {
  return CFAA_DISPATCH(context, run_exponentials<T>)(context, count, sink);
}

#define CFAA_INSTANTIATE(T)                                              \
  template double run_multiply_adds<T>(Context&, double, VectorView<T>); \
  template double run_exponentials<T>(Context&, double, VectorView<T>);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
