#include "host/model/normal_init.h"

#include <cmath>
#include <vector>

#include "host/core/instantiate.h"
#include "host/core/normal.h"

namespace cfaa {

template <class T>
void fill_normal(Context& context, MatrixView<T> array, double scale, uint64_t seed,
                 uint64_t stream) {
  const Philox random{seed};
  std::vector<T> values(static_cast<std::size_t>(array.size()));
  context.threads().parallel_for(
      static_cast<int64_t>(values.size() + 1) / 2, 1 << 14, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const NormalPair pair(random(static_cast<uint64_t>(i), stream));
          const double radius = scale * pair.radius;
          const std::size_t at = 2 * static_cast<std::size_t>(i);
          values[at] = static_cast<T>(radius * std::cos(pair.angle));
          if (at + 1 < values.size())
            values[at + 1] = static_cast<T>(radius * std::sin(pair.angle));
        }
      });
  context.runtime().copy_from_host(array.data, values.data(), values.size() * sizeof(T));
  context.runtime().synchronize();
}

CFAA_FOR_FLOAT_AND_DOUBLE(fill_normal);

}  // namespace cfaa
