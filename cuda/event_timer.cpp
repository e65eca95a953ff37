#include "cuda/event_timer.h"

#include "cuda/device.h"
#include "cuda/stream.h"

namespace cfaa::cuda {

double seconds_on_device(Context& context, const std::function<void()>& work) {
  const cudaStream_t stream = device_of(context).stream();
  Event begin, end;
  begin.record(stream);
  work();
  end.record(stream);
  end.synchronize();
  return 1e-3 * end.milliseconds_since(begin);
}

}  // namespace cfaa::cuda
