#include "host/ops/sum.h"

namespace cfaa::cpu {

template <class T>
void sum(Context&, VectorView<const T> values, double scale, VectorView<T> out) {
  double total = 0;
  for (int64_t i = 0; i < values.size(); ++i) total += values.data[i];
  out.data[0] = static_cast<T>(scale * total);
}

CFAA_FOR_FLOAT_AND_DOUBLE(sum);

}  // namespace cfaa::cpu
