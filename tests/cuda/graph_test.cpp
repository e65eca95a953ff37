// Capture and replay: a captured step does again what it did, on what its buffers hold then; a
// library call that cannot be captured runs between two graphs.

#if CFAA_HAS_CUDA

#include "cuda/graph.h"

#include <gtest/gtest.h>

#include <vector>

#include "cuda/check.h"
#include "host/core/error.h"
#include "host/core/tensor.h"
#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"
#include "tests/compare.h"
#include "tests/on_cuda.h"
#if CFAA_EMULATED
#include "emulator/control.h"
#endif

namespace cfaa::test {
namespace {

constexpr int64_t kRows = 24, kAttributes = 6;

// A loss with its gradient on buffers that stay where they are.
class CapturedLoss : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    for (Tensor<double, 2>* z : {&source_, &target_, &source_gradient_, &target_gradient_}) {
      *z = Tensor<double, 2>(context(), {kRows, kAttributes});
    }
    loss_ = Tensor<double, 1>(context(), {1});
    use_inputs(1);
  }

  void TearDown() override {
#if CFAA_EMULATED
    emulator::set_library_capture_refused(false);
#endif
  }

  void use_inputs(uint64_t seed) {
    const std::vector<double> s = normal<double>(kRows * kAttributes, 2 * seed);
    const std::vector<double> t = normal<double>(kRows * kAttributes, 2 * seed + 1, 0.5, 2.0);
    device().copy_from_host(source_.view().data, s.data(), source_.bytes());
    device().copy_from_host(target_.view().data, t.data(), target_.bytes());
    device().synchronize();
  }

  void vertical() {
    const Arena::Scope scope(context().scratch());
    const EmbeddingPair<double> pair = pair_of();
    clear_gradients();
    const auto forward = vertical_loss<double>(context(), {&pair, 1}, {});
    finish(forward.loss, [&](const GradientPair<double>& gradient) {
      vertical_loss_backward<double>(context(), {&pair, 1}, forward, 1.0, {&gradient, 1});
    });
  }

  void horizontal() {
    const Arena::Scope scope(context().scratch());
    const EmbeddingPair<double> pair = pair_of();
    clear_gradients();
    const auto forward = horizontal_loss<double>(context(), {&pair, 1}, {});
    finish(forward.loss, [&](const GradientPair<double>& gradient) {
      horizontal_loss_backward<double>(context(), {&pair, 1}, {}, forward, 1.0, {&gradient, 1});
    });
  }

  // Loss and gradients as they stand, one after the other.
  std::vector<double> results() {
    std::vector<double> all = loss_.to_host();
    for (const Tensor<double, 2>* g : {&source_gradient_, &target_gradient_}) {
      const std::vector<double> values = g->to_host();
      all.insert(all.end(), values.begin(), values.end());
    }
    context().check_faults();
    return all;
  }

  // What the step gives on the inputs of `seed`, without a graph.
  template <class Step>
  std::vector<double> direct(uint64_t seed, Step step) {
    use_inputs(seed);
    step();
    return results();
  }

 private:
  EmbeddingPair<double> pair_of() const {
    return {source_.view(), target_.view()};
  }

  void clear_gradients() {
    source_gradient_.fill_zero();
    target_gradient_.fill_zero();
  }

  template <class Backward>
  void finish(VectorView<double> loss, Backward backward) {
    backward({source_gradient_.view(), target_gradient_.view()});
    device().copy(loss_.view().data, loss.data, sizeof(double));
  }

  Tensor<double, 2> source_, target_, source_gradient_, target_gradient_;

 protected:
  Tensor<double, 1> loss_;
};

TEST_F(CapturedLoss, TheVerticalLossReplaysOnChangedInputs) {
  const std::vector<double> first = direct(1, [&] { vertical(); });
  const std::vector<double> second = direct(2, [&] { vertical(); });
  cuda::Graph graph(device());
  use_inputs(1);

  graph.capture([&] { vertical(); });
  graph.replay();
  const std::vector<double> replayed_first = results();
  use_inputs(2);
  graph.replay();
  const std::vector<double> replayed_second = results();

  EXPECT_EQ(replayed_first, first) << "same device, same work: same bits";
  EXPECT_EQ(replayed_second, second);
  EXPECT_NE(first, second);
  EXPECT_EQ(graph.captured_segments(), 1u);
}

TEST_F(CapturedLoss, CapturingRunsNothing) {
  direct(1, [&] { vertical(); });
  const std::vector<double> before = results();
  use_inputs(2);
  cuda::Graph graph(device());

  graph.capture([&] { vertical(); });

  EXPECT_EQ(results(), before);
}

TEST_F(CapturedLoss, TheHorizontalLossReplaysOnChangedInputs) {
  direct(1, [&] { horizontal(); });
  const std::vector<double> second = direct(2, [&] { horizontal(); });
  use_inputs(1);
  cuda::Graph graph(device());

  graph.capture([&] { horizontal(); });
  use_inputs(2);
  graph.replay();

  EXPECT_TRUE(close(results(), second, 1e-12));
}

TEST_F(CapturedLoss, AStepThatThrowsLeavesTheGraphEmptyAndTheStreamFree) {
  const std::vector<double> before = direct(1, [&] { vertical(); });
  cuda::Graph graph(device());

  EXPECT_THROW(graph.capture([&] {
    vertical();
    throw Error("the step gave up");
  }),
               Error);

  EXPECT_TRUE(graph.empty());
  EXPECT_EQ(direct(1, [&] { vertical(); }), before);
}

TEST_F(CapturedLoss, ACallThatCannotBeCapturedRunsBetweenTwoGraphs) {
  const std::vector<double> second = direct(2, [&] { vertical(); });
  use_inputs(1);
  Tensor<double, 1> after(context(), {1});
  cuda::Graph graph(device());
  int made = 0;

  graph.capture([&] {
    vertical();
    cuda::library_call(device(), "a call that waits", cuda::Capturing::allowed, [&] {
      CFAA_CUDA_CHECK(cudaStreamSynchronize(device().stream()));
      ++made;
    });
    after.fill_zero();
  });
  use_inputs(2);
  graph.replay();

  EXPECT_EQ(made, 1) << "made by the replay, not by the capture";
  EXPECT_EQ(graph.captured_segments(), 2u);
  EXPECT_EQ(graph.calls_between_segments(), 1u);
  EXPECT_EQ(results(), second);
}

#if CFAA_EMULATED
TEST_F(CapturedLoss, ReplaysWhereTheDriverRefusesToCaptureLibraries) {
  const std::vector<double> second = direct(2, [&] { horizontal(); });
  use_inputs(1);
  emulator::set_library_capture_refused(true);
  cuda::Graph graph(device());

  graph.capture([&] { horizontal(); });
  use_inputs(2);
  graph.replay();

  EXPECT_GT(graph.calls_between_segments(), 0u);
  EXPECT_TRUE(close(results(), second, 1e-12));
}

TEST_F(CapturedLoss, GraphsJoinedAtTheirBoundaryAreLaunchedAsOne) {
  const std::vector<double> second = direct(2, [&] { vertical(); });
  Tensor<double, 1> copy(context(), {1});
  use_inputs(1);
  cuda::Graph graph(device());
  graph.capture([&] {
    vertical();
    graph.boundary();
    device().copy(copy.view().data, loss_.view().data, copy.bytes());
  });
  graph.replay_to_boundary();
  graph.replay_from_boundary();
  EXPECT_EQ(graph.captured_segments(), 2u);
  graph.join_at_boundary();
  use_inputs(2);
  const int64_t before = static_cast<int64_t>(emulator::counters().graph_launches);

  graph.replay();

  EXPECT_EQ(static_cast<int64_t>(emulator::counters().graph_launches), before + 1);
  EXPECT_EQ(graph.captured_segments(), 1u);
  EXPECT_EQ(results(), second);
  EXPECT_EQ(copy.to_host()[0], second[0]);
}

TEST_F(CapturedLoss, AReplayNeitherAllocatesNorWaits) {
  direct(1, [&] { vertical(); });
  cuda::Graph graph(device());
  graph.capture([&] { vertical(); });
  const emulator::Counters before = emulator::counters();

  graph.replay();

  const emulator::Counters after = emulator::counters();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.synchronisations, before.synchronisations);
  EXPECT_EQ(after.graph_launches, before.graph_launches + 1);
}
#endif

}  // namespace
}  // namespace cfaa::test

#endif
