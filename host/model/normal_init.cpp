#include "host/model/normal_init.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace cfaa {

template <class T>
void fill_normal(Context& context, MatrixView<T> array, double scale, uint64_t seed,
                 uint64_t stream) {
  const Philox random{seed};
  std::vector<T> values(static_cast<std::size_t>(array.size()));
  context.threads().parallel_for(
      static_cast<int64_t>(values.size() + 1) / 2, 1 << 14, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const Philox::Block block = random(static_cast<uint64_t>(i), stream);
          const double u = (block.word[0] + 0.5) / 4294967296.0;
          const double angle = 2 * std::numbers::pi * block.word[1] / 4294967296.0;
          const double radius = scale * std::sqrt(-2 * std::log(u));
          const std::size_t at = 2 * static_cast<std::size_t>(i);
          values[at] = static_cast<T>(radius * std::cos(angle));
          if (at + 1 < values.size()) values[at + 1] = static_cast<T>(radius * std::sin(angle));
        }
      });
  context.runtime().copy_from_host(array.data, values.data(), values.size() * sizeof(T));
  context.runtime().synchronize();
}

template void fill_normal<float>(Context&, MatrixView<float>, double, uint64_t, uint64_t);
template void fill_normal<double>(Context&, MatrixView<double>, double, uint64_t, uint64_t);

}  // namespace cfaa
