#include <algorithm>

#include "bench/cases.h"
#include "bench/peaks/peak_rates.h"
#include "host/core/tensor.h"

namespace cfaa::bench {
namespace {

constexpr int64_t kCopyBytes = 128 << 20;
constexpr double kMultiplyAdds = 2e8;
constexpr double kExponentials = 2e7;

// The best of several runs: a peak is what was reached once.
template <class Run>
double best_rate(Context& context, const Plan& plan, Run run) {
  double done = 0;
  const Timing timing = measure(
      context, [&] { done = run(); }, plan);
  return done / timing.low;
}

double copy_rate(Context& context, const Plan& plan) {
  Tensor<char, 1> from(context, {kCopyBytes}), to(context, {kCopyBytes});
  from.fill_zero();
  const auto copy = [&] {
    if (context.device() != DeviceKind::cpu) {
      context.runtime().copy(to.view().data, from.view().data, kCopyBytes);
      return;
    }
    // One thread seldom fills the memory bus.
    context.threads().parallel_for(kCopyBytes, 1 << 20, [&](int64_t begin, int64_t end, int) {
      context.runtime().copy(to.view().data + begin, from.view().data + begin,
                             static_cast<std::size_t>(end - begin));
    });
  };
  return best_rate(context, plan, [&] {
    copy();
    return 2.0 * kCopyBytes;
  });
}

}  // namespace

Peaks measure_peaks(Context& context, const Plan& plan) {
  Tensor<float, 1> sink_float(context, {1});
  Tensor<double, 1> sink_double(context, {1});
  // The emulated device does what it is told, slowly: its peaks mean nothing, so little work is
  // enough.
  const double share = context.runtime().description().starts_with("emulated") ? 1e-3 : 1;
  Peaks peaks;
  peaks.bytes_per_second = copy_rate(context, plan);
  peaks.flops_float =
      2 * best_rate(context, plan, [&] {
        return run_multiply_adds<float>(context, share * kMultiplyAdds, sink_float.view());
      });
  peaks.flops_double =
      2 * best_rate(context, plan, [&] {
        return run_multiply_adds<double>(context, share * kMultiplyAdds / 2, sink_double.view());
      });
  peaks.exponentials = best_rate(context, plan, [&] {
    return run_exponentials<float>(context, share * kExponentials, sink_float.view());
  });
  return peaks;
}

}  // namespace cfaa::bench
