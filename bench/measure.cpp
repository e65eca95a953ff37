#include "bench/measure.h"

#include <algorithm>
#include <memory>

#include "host/core/stopwatch.h"
#include "host/core/tensor.h"
#if CFAA_HAS_CUDA
#include "cuda/event_timer.h"
#endif

namespace cfaa::bench {
namespace {

// Larger than the last-level cache of current machines, so that a write of it leaves nothing
// behind.
constexpr int64_t kSweepBytes = 64 << 20;

double percentile(const std::vector<double>& sorted, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[at];
}

double time_once(Context& context, const std::function<void()>& work) {
#if CFAA_HAS_CUDA
  if (context.device() == DeviceKind::cuda) return cuda::seconds_on_device(context, work);
#endif
  const Stopwatch watch;
  work();
  context.runtime().synchronize();
  return watch.seconds();
}

}  // namespace

Timing summarize(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {percentile(times, 0.5), percentile(times, 0.1), percentile(times, 0.9),
          static_cast<int>(times.size())};
}

Timing measure(Context& context, const std::function<void()>& work, const Plan& plan,
               bool back_to_back) {
  Tensor<char, 1> sweep(context, {kSweepBytes});
  for (int warm_up = 0; warm_up < 2; ++warm_up) work();
  context.runtime().synchronize();

  std::vector<double> times;
  const Stopwatch watch;
  while (static_cast<int>(times.size()) < plan.least_repetitions ||
         watch.seconds() < plan.seconds) {
    if (!back_to_back) {
      sweep.fill_zero();
      context.runtime().synchronize();
    }
    times.push_back(time_once(context, work));
  }
  return summarize(std::move(times));
}

}  // namespace cfaa::bench
