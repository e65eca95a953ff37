// Losses for a caller who has a stream of their own: the emulated device refuses whatever is not in
// order, and counts how often the host waits.

#if CFAA_HAS_CUDA

#include "host/device/caller_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cuda/stream.h"
#include "host/core/error.h"
#include "host/core/tensor.h"
#include "host/ops/vertical_loss.h"
#include "tests/on_cuda.h"
#if CFAA_EMULATED
#include "emulator/control.h"
#endif

namespace cfaa::test {
namespace {

constexpr int64_t kRows = 6, kColumns = 3;

class CallersStream : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      sent_[i] = std::sin(static_cast<float>(i * i));
    }
    for (Tensor<float, 2>* z : {&zs_, &zt_, &gs_, &gt_}) {
      *z = Tensor<float, 2>(context(), {kRows, kColumns});
    }
    loss_ = Tensor<float, 1>(context(), {1});
    device().synchronize();
  }

  // As PyTorch does: fills the inputs on its stream, asks for the loss, reads it on its stream.
  void queue(CallerStream& caller, cudaStream_t stream) {
    const std::size_t bytes = zs_.bytes();
    CFAA_CUDA_CHECK(
        cudaMemcpyAsync(zs_.view().data, sent_.data(), bytes, cudaMemcpyHostToDevice, stream));
    CFAA_CUDA_CHECK(cudaMemcpyAsync(zt_.view().data, sent_.data() + kRows * kColumns, bytes,
                                    cudaMemcpyHostToDevice, stream));
    CFAA_CUDA_CHECK(cudaMemsetAsync(gs_.view().data, 0, bytes, stream));
    CFAA_CUDA_CHECK(cudaMemsetAsync(gt_.view().data, 0, bytes, stream));
    caller.run(reinterpret_cast<std::uintptr_t>(stream), [&] {
      const Arena::Scope scope(context().scratch());
      const EmbeddingPair<float> pair{zs_.view(), zt_.view()};
      const GradientPair<float> gradient{gs_.view(), gt_.view()};
      const auto forward = vertical_loss<float>(context(), {&pair, 1}, {});
      vertical_loss_backward<float>(context(), {&pair, 1}, forward, 1.0, {&gradient, 1});
      context().runtime().copy(loss_.view().data, forward.loss.data, sizeof(float));
    });
    CFAA_CUDA_CHECK(cudaMemcpyAsync(received_.data(), loss_.view().data, sizeof(float),
                                    cudaMemcpyDeviceToHost, stream));
  }

  cuda::Pinned<float> sent_{2 * kRows * kColumns}, received_{1};
  Tensor<float, 2> zs_, zt_, gs_, gt_;
  Tensor<float, 1> loss_;
};

TEST_F(CallersStream, IsPutInOrderWithoutTheHost) {
  CallerStream caller(context());
  cuda::Stream stream;
  queue(caller, stream);  // what it needs is allocated
  stream.synchronize();
  const float expected = received_[0];
#if CFAA_EMULATED
  const std::uint64_t before = emulator::counters().synchronisations;
#endif

  for (std::uint64_t run = 2; run <= DeviceRuntime::kMarks; ++run) queue(caller, stream);

#if CFAA_EMULATED
  EXPECT_EQ(emulator::counters().synchronisations, before);
#endif
  stream.synchronize();
  EXPECT_GT(expected, 0);
  EXPECT_EQ(received_[0], expected);
  EXPECT_NO_THROW(caller.check());
}

TEST_F(CallersStream, AFaultIsTheLosssValueAtOnceAndThrownByALaterRun) {
  CallerStream caller(context());
  cuda::Stream stream;
  sent_[4] = std::numeric_limits<float>::quiet_NaN();

  for (std::uint64_t run = 0; run < DeviceRuntime::kMarks; ++run) queue(caller, stream);
  stream.synchronize();

  EXPECT_TRUE(std::isnan(received_[0]));
  EXPECT_THROW(queue(caller, stream), Error);
  sent_[4] = 0;
  stream.synchronize();
  EXPECT_NO_THROW(queue(caller, stream));
  EXPECT_NO_THROW(caller.check());
  sent_[4] = std::numeric_limits<float>::infinity();
  EXPECT_NO_THROW(queue(caller, stream));
  EXPECT_THROW(caller.check(), Error);
  stream.synchronize();
}

}  // namespace
}  // namespace cfaa::test

#endif
