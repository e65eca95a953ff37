#include "host/device/caller_stream.h"

#if CFAA_HAS_CUDA
#include "cuda/device.h"
#include "cuda/stream.h"
#endif

namespace cfaa {
namespace {

#if CFAA_HAS_CUDA
// Later work of `second` waits for what `first` holds.
void put_behind(cudaStream_t first, cudaStream_t second) {
  cuda::Event event;
  event.record(first);
  event.hold(second);
}

// The caller's stream waits for the context's also where an op throws: it may have queued others.
class InOrder {
 public:
  InOrder(cudaStream_t caller, cudaStream_t ours) : caller_(caller), ours_(ours) {
    put_behind(caller_, ours_);
  }
  ~InOrder() {
    try {
      put_behind(ours_, caller_);
    } catch (...) {
      CFAA_CUDA_WARN(cudaStreamSynchronize(ours_));
    }
  }

 private:
  cudaStream_t caller_, ours_;
};
#endif

}  // namespace

CallerStream::CallerStream(Context& context)
    : context_(context),
      faults_(static_cast<Fault*>(context.runtime().allocate_host(kRuns * sizeof(Fault)))) {}

CallerStream::~CallerStream() {
  context_.runtime().release_host(faults_);
}

void CallerStream::run([[maybe_unused]] std::uintptr_t stream, const std::function<void()>& work) {
#if CFAA_HAS_CUDA
  if (context_.device() == DeviceKind::cuda) {
    if (runs_ - looked_at_ == kRuns) look_at_the_oldest();
    DeviceRuntime& runtime = context_.runtime();
    const InOrder order(reinterpret_cast<cudaStream_t>(stream), cuda::device_of(context_).stream());
    work();
    runtime.copy_to_host(&faults_[runs_ % kRuns], context_.fault_latch(), sizeof(Fault));
    marks_[runs_ % kRuns] = runtime.mark();
    ++runs_;
    return;
  }
#endif
  work();
  context_.check_faults();
}

void CallerStream::look_at_the_oldest() {
  const std::uint64_t slot = looked_at_ % kRuns;
  context_.runtime().wait_for(marks_[slot]);
  ++looked_at_;
  if (faults_[slot].code != static_cast<int32_t>(FaultCode::none)) check();
}

void CallerStream::check() {
  looked_at_ = runs_;
  context_.check_faults();
}

}  // namespace cfaa
