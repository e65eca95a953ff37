// Work beside other work: what it computes, what it must not share, and which fault counts.

#if CFAA_HAS_CUDA

#include "host/device/branch.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "cuda/graph.h"
#include "host/core/error.h"
#include "host/ops/coupling.h"
#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"
#include "tests/on_cuda.h"
#include "tests/refusal.h"

namespace cfaa::test {
namespace {

constexpr int64_t kRows = 24, kAttributes = 6;

class Branches : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    ::testing::FLAGS_gtest_death_test_style = "fast";
    source_ = {context(), {kRows, kAttributes}, normal<double>(kRows * kAttributes, 1).data()};
    target_ = {context(), {kRows, kAttributes}, normal<double>(kRows * kAttributes, 2, 1).data()};
    for (Tensor<double, 1>& loss : loss_) loss = {context(), {1}};
  }

  void vertical() {
    const Arena::Scope scope(context().scratch());
    const EmbeddingPair<double> pair{source_.view(), target_.view()};
    const auto found = vertical_loss<double>(context(), {&pair, 1}, {});
    device().copy(loss_[0].view().data, found.loss.data, sizeof(double));
  }
  void horizontal() {
    const Arena::Scope scope(context().scratch());
    const EmbeddingPair<double> pair{source_.view(), target_.view()};
    const auto found = horizontal_loss<double>(context(), {&pair, 1}, {});
    device().copy(loss_[1].view().data, found.loss.data, sizeof(double));
  }
  std::vector<double> losses() { return {loss_[0].to_host()[0], loss_[1].to_host()[0]}; }
  void clear() {
    for (Tensor<double, 1>& loss : loss_) loss.fill_zero();
  }
  void both(bool beside) {
    const Arena::Scope scope(context().scratch());
    Branch branch(context(), beside);
    vertical();
    branch.leave();
    horizontal();
    branch.join();
  }

  // A coupling whose problem of this number has a sample that is not finite.
  void fail_at(int64_t problem) {
    std::vector<double> samples = normal<double>(3 * 8, 5);
    samples[static_cast<std::size_t>(problem) * 8] = std::numeric_limits<double>::quiet_NaN();
    bad_.emplace_back(context(), std::array<int64_t, 2>{3, 8}, samples.data());
    coupling<double>(context(), bad_.back().view(), bad_.back().view(), {});
  }
  std::string fault() {
    return error_of([&] { context().check_faults(); });
  }

  Tensor<double, 2> source_, target_;
  Tensor<double, 1> loss_[2];
  std::vector<Tensor<double, 2>> bad_;
};

TEST_F(Branches, ComputeWhatOneStreamComputes) {
  both(false);
  const std::vector<double> expected = losses();
  clear();

  both(true);

  EXPECT_EQ(losses(), expected);
  EXPECT_NE(expected[0], 0);
  EXPECT_NE(expected[1], 0);
}

TEST_F(Branches, AreReplayedFromOneGraph) {
  both(false);
  const std::vector<double> expected = losses();
  both(true);  // the arena settles
  cuda::Graph graph(device());

  graph.capture([&] { both(true); });
  clear();
  graph.replay();

  EXPECT_EQ(graph.captured_segments(), 1u);
  EXPECT_EQ(graph.calls_between_segments(), 0u);
  EXPECT_EQ(losses(), expected);
}

TEST_F(Branches, ShareNoScratch) {
  const Arena::Scope scope(context().scratch());
  Branch branch(context());
  const void* taken = nullptr;
  {
    const Arena::Scope first(context().scratch());
    taken = context().scratch().take_bytes(4096);
  }
  branch.leave();

  EXPECT_NE(context().scratch().take_bytes(4096), taken);

  branch.join();
}

TEST_F(Branches, TheFaultOfTheFirstPartCountsWhicheverComesFirst) {
  const Arena::Scope scope(context().scratch());
  Branch branch(context());
  fail_at(1);
  branch.leave();
  fail_at(2);
  branch.join();

  EXPECT_NE(fault().find("problem 1"), std::string::npos);
}

TEST_F(Branches, AFaultBeforeThemStays) {
  const Arena::Scope scope(context().scratch());
  fail_at(2);
  Branch branch(context());
  fail_at(1);
  branch.leave();
  branch.join();

  EXPECT_NE(fault().find("problem 2"), std::string::npos);
  EXPECT_EQ(fault(), "");
}

TEST_F(Branches, AreJoinedWhereAnExceptionLeavesThem) {
  const Arena::Scope scope(context().scratch());
  try {
    const Branch branch(context());
    vertical();
    throw Error("stop");
  } catch (const Error&) {
    EXPECT_EQ(device().lane(), 0u);
  }

  EXPECT_NE(loss_[0].to_host()[0], 0);
}

#if CFAA_EMULATED
TEST_F(Branches, AResultReadBeforeTheyAreJoinedIsFound) {
  const Arena::Scope scope(context().scratch());
  const Tensor<double, 1> copy(context(), {1});
  Branch branch(context());
  vertical();
  branch.leave();

  EXPECT_DEATH(device().copy(copy.view().data, loss_[0].view().data, sizeof(double)),
               "no event says which of them comes first");
}
#endif

}  // namespace
}  // namespace cfaa::test

#endif
