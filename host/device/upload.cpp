#include "host/device/upload.h"

#include <vector>

#include "host/core/error.h"
#if CFAA_HAS_CUDA
#include "cuda/device.h"
#include "cuda/stream.h"
#endif

namespace cfaa {

struct Upload::State {
  Context& context;
  char* waiting;  // device memory
  struct Range {
    std::size_t offset, bytes;
  };
  std::vector<Range> ranges;
#if CFAA_HAS_CUDA
  cuda::Stream copies;
  cuda::Event copied, delivered;
  bool was_delivered = false;
#endif
};

Upload::Upload(Context& context, std::size_t bytes) {
  CFAA_ASSERT(context.device() == DeviceKind::cuda);
  auto* waiting = static_cast<char*>(context.runtime().allocate(bytes));
  state_.reset(new State{.context = context, .waiting = waiting, .ranges = {}});
}

Upload::~Upload() {
#if CFAA_HAS_CUDA
  CFAA_CUDA_WARN(cudaStreamSynchronize(state_->copies));
#endif
  state_->context.runtime().release(state_->waiting);
}

void Upload::begin() {
  state_->ranges.clear();
#if CFAA_HAS_CUDA
  if (state_->was_delivered) state_->delivered.hold(state_->copies);
#endif
}

void Upload::copy(std::size_t offset, const void* pinned, std::size_t bytes) {
  if (bytes == 0) return;
  state_->ranges.push_back({offset, bytes});
#if CFAA_HAS_CUDA
  CFAA_CUDA_CHECK(cudaMemcpyAsync(state_->waiting + offset, pinned, bytes, cudaMemcpyHostToDevice,
                                  state_->copies));
#else
  (void)pinned;
#endif
}

void Upload::deliver(void* batch) {
#if CFAA_HAS_CUDA
  const cudaStream_t stream = cuda::device_of(state_->context).stream();
  state_->copied.record(state_->copies);
  state_->copied.hold(stream);
#endif
  for (const State::Range& range : state_->ranges) {
    state_->context.runtime().copy(static_cast<char*>(batch) + range.offset,
                                   state_->waiting + range.offset, range.bytes);
  }
#if CFAA_HAS_CUDA
  state_->delivered.record(stream);
  state_->was_delivered = true;
#endif
}

}  // namespace cfaa
