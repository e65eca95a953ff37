// The update of a table under a replayed graph: how many rows a batch touches, its step and its
// learning rate are what device memory holds at the replay, not what it held at the capture.

#if CFAA_HAS_CUDA

#include <gtest/gtest.h>

#include <cmath>

#include "bench/reference/bags.h"
#include "cuda/graph.h"
#include "host/ops/adam.h"
#include "host/ops/dropout.h"
#include "tests/on_cuda.h"

namespace cfaa::test {
namespace {

using namespace reference;

constexpr int64_t kRows = 12, kColumns = 33, kBags = 6, kCapacity = 12, kEntries = 40;

class ReplayedUpdate : public OnCuda {};

// A table and buffers with room for any batch of the test.
class Update {
 public:
  explicit Update(Context& context)
      : context_(context),
        count_(context, {1}),
        row_(context, {kCapacity}),
        offset_(context, {kCapacity + 1}),
        bag_(context, {kEntries}),
        weight_(context, {kEntries}),
        dout_(context, {kBags, kColumns}, normal<float>(kBags * kColumns, 1).data()),
        gradient_(context, {kCapacity, kColumns}),
        w_(context, {kRows, kColumns}, normal<float>(kRows * kColumns, 2).data()),
        m_(context, {kRows, kColumns}),
        v_(context, {kRows, kColumns}),
        state_(context, {1}) {
    m_.fill_zero();
    v_.fill_zero();
  }

  void load(const BagLists& lists, uint64_t step) {
    const RowLists rows = by_row(lists);
    const std::vector<int32_t> count = {static_cast<int32_t>(rows.row.size())};
    const std::vector<float> weight(rows.weight.begin(), rows.weight.end());
    StepState state;
    state.step = step;
    state.embedding_rate = 0.1 / static_cast<double>(step + 1);
    state.max_norm = 1;
    put(count_, count);
    put(row_, rows.row);
    put(offset_, rows.offset);
    put(bag_, rows.bag);
    put(weight_, weight);
    put(state_, std::vector<StepState>{state});
  }

  void run() {
    StepState* state = state_.view().data;
    const TouchedRows<float> touched{count_, row_, offset_, bag_, weight_};
    embedding_bag_backward<float>(context_, dout_, touched, gradient_);
    dropout<float>(context_, 0.25, state, 3, dout_);
    gradient_norm<float>(context_, gradient_, count_.view().data, &state->squared_norm);
    clip_gradient(context_, state);
    adam_rows<float>(context_, state, touched, gradient_, w_, m_, v_);
  }

  std::vector<std::vector<float>> results() const {
    return {w_.to_host(), m_.to_host(), v_.to_host(), dout_.to_host()};
  }

 private:
  template <class T>
  void put(const Tensor<T, 1>& to, const std::vector<T>& values) {
    CFAA_ASSERT(static_cast<int64_t>(values.size()) <= to.size());
    context_.runtime().copy_from_host(to.view().data, values.data(), values.size() * sizeof(T));
    context_.runtime().synchronize();
  }

  Context& context_;
  Tensor<int32_t, 1> count_, row_, offset_, bag_;
  Tensor<float, 1> weight_;
  Tensor<float, 2> dout_, gradient_, w_, m_, v_;
  Tensor<StepState, 1> state_;
};

TEST_F(ReplayedUpdate, ReadsTheBatchThatItFinds) {
  const std::vector<BagLists> batches = {random_bags(kBags, kRows, 2, 10),
                                         {{0, 0, 0, 0, 0, 0, 0}, {}, {}},
                                         random_bags(kBags, kRows, 6, 11),
                                         random_bags(kBags, kRows, 1, 12)};
  Update direct(context()), replayed(context());
  cuda::Graph graph(device());
  direct.load(batches[0], 0);
  replayed.load(batches[0], 0);
  direct.run();  // settles the arena
  graph.capture([&] { replayed.run(); });
  graph.replay();

  for (uint64_t step = 1; step < batches.size(); ++step) {
    ASSERT_EQ(replayed.results(), direct.results()) << "step " << step - 1;
    direct.load(batches[step], step);
    replayed.load(batches[step], step);
    direct.run();
    graph.replay();
  }

  EXPECT_EQ(replayed.results(), direct.results());
  EXPECT_EQ(graph.captured_segments(), 1u);
  EXPECT_NO_THROW(context().check_faults());
}

}  // namespace
}  // namespace cfaa::test

#endif  // CFAA_HAS_CUDA
