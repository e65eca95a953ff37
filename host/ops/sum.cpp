#include "host/ops/sum.h"

#include "host/core/error.h"

namespace cfaa {

template <class T>
void sum(Context& context, VectorView<const T> values, double scale, VectorView<T> out) {
  CFAA_ASSERT(values.contiguous() && out.size() == 1);
  CFAA_DISPATCH(context, sum<T>)(context, values, scale, out);
}

CFAA_FOR_FLOAT_AND_DOUBLE(sum);

}  // namespace cfaa
