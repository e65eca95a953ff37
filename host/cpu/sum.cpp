#include "host/ops/sum.h"

namespace cfaa::cpu {

template <class T>
void sum(Context&, VectorView<const T> values, double scale, VectorView<T> out) {
  double total = 0;
  for (int64_t i = 0; i < values.size(); ++i) total += values.data[i];
  out.data[0] = static_cast<T>(scale * total);
}

template void sum<float>(Context&, VectorView<const float>, double, VectorView<float>);
template void sum<double>(Context&, VectorView<const double>, double, VectorView<double>);

}  // namespace cfaa::cpu
