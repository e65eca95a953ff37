#include "cuda/event_timer.h"

#include "cuda/check.h"
#include "cuda/device.h"

namespace cfaa::cuda {
namespace {

class Event {
 public:
  Event() { CFAA_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

double seconds_on_device(Context& context, const std::function<void()>& work) {
  const cudaStream_t stream = device_of(context).stream();
  const Event begin, end;
  CFAA_CUDA_CHECK(cudaEventRecord(begin, stream));
  work();
  CFAA_CUDA_CHECK(cudaEventRecord(end, stream));
  CFAA_CUDA_CHECK(cudaEventSynchronize(end));
  float milliseconds = 0;
  CFAA_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  return 1e-3 * milliseconds;
}

}  // namespace cfaa::cuda
