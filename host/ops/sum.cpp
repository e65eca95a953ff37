#include "host/ops/sum.h"

#include "host/core/error.h"
#include "host/ops/dispatch.h"

namespace cfaa {

template <class T>
void sum(Context& context, VectorView<const T> values, double scale, VectorView<T> out) {
  CFAA_ASSERT(values.contiguous() && out.size() == 1);
  CFAA_DISPATCH(context, sum<T>)(context, values, scale, out);
}

template void sum<float>(Context&, VectorView<const float>, double, VectorView<float>);
template void sum<double>(Context&, VectorView<const double>, double, VectorView<double>);

}  // namespace cfaa
