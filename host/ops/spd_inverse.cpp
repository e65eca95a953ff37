#include "host/ops/spd_inverse.h"

#include "host/core/error.h"

namespace cfaa {

template <class T>
int64_t spd_inverse(Context& context, MatrixView<T> a) {
  CFAA_ASSERT(a.rows() == a.cols() && a.contiguous());
  if (a.rows() == 0) return 0;
  return CFAA_DISPATCH(context, spd_inverse<T>)(context, a);
}

CFAA_FOR_FLOAT_AND_DOUBLE(spd_inverse);

}  // namespace cfaa
