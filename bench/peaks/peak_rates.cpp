#include "bench/peaks/peak_rates.h"

namespace cfaa {

template <class T>
double run_multiply_adds(Context& context, double count, VectorView<T> sink) {
  return CFAA_DISPATCH(context, run_multiply_adds<T>)(context, count, sink);
}

template <class T>
double run_exponentials(Context& context, double count, VectorView<T> sink) {
  return CFAA_DISPATCH(context, run_exponentials<T>)(context, count, sink);
}

CFAA_FOR_FLOAT_AND_DOUBLE(run_multiply_adds);
CFAA_FOR_FLOAT_AND_DOUBLE(run_exponentials);

}  // namespace cfaa
