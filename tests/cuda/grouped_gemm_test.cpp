// The grouped product's problems are packed by a kernel: nothing waits for the host, and a graph
// may hold it.

#if CFAA_HAS_CUDA

#include "cuda/grouped_gemm.h"

#include <gtest/gtest.h>

#include "cuda/graph.h"
#include "host/core/tensor.h"
#include "tests/compare.h"
#include "tests/on_cuda.h"

namespace cfaa::test {
namespace {

class GroupedGemm : public OnCuda {};

TEST_F(GroupedGemm, ReplaysFromAGraphOnChangedInputs) {
  const std::vector<float> first = normal<float>(2 * 3, 1), second = normal<float>(2 * 3, 2),
                           b = normal<float>(3 * 4, 3);
  const Tensor<float, 2> a(context(), {2, 3}, first.data()), factor(context(), {3, 4}, b.data()),
      d(context(), {2, 4});
  const cuda::GemmProblem<float> problem{.m = 2,
                                         .n = 4,
                                         .k = 3,
                                         .a = a.view().data,
                                         .lda = 3,
                                         .b = factor.view().data,
                                         .ldb = 4,
                                         .c = nullptr,
                                         .ldc = 0,
                                         .d = d.view().data,
                                         .ldd = 4};
  const auto step = [&] {
    const Arena::Scope scope(context().scratch());
    cuda::grouped_gemm<float>(context(), cuda::Transpose::no, cuda::Transpose::no, {&problem, 1},
                              {}, MathMode::fp32);
  };
  step();
  const std::vector<float> of_first = d.to_host();
  cuda::Graph graph(device());

  graph.capture(step);
  device().copy_from_host(a.view().data, second.data(), a.bytes());
  graph.replay();
  const std::vector<float> of_second = d.to_host();
  device().copy_from_host(a.view().data, first.data(), a.bytes());
  graph.replay();

  EXPECT_EQ(d.to_host(), of_first);
  std::vector<double> expected(8, 0.0);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t l = 0; l < 3; ++l) expected[i * 4 + j] += second[i * 3 + l] * b[l * 4 + j];
    }
  }
  EXPECT_TRUE(close(of_second, expected, 1e-6));
}

// One row added to every row: the bias of the towers; C as D: the sum of two gradients.
TEST_F(GroupedGemm, AddsARowToEveryRowOrAMatrixToItself) {
  const std::vector<double> a = {1, 2, 3, 4}, b = {1, 0, 0, 1}, row = {10, 20},
                            start = {100, 200, 300, 400};
  const Tensor<double, 2> x(context(), {2, 2}, a.data()), y(context(), {2, 2}, b.data()),
      bias(context(), {1, 2}, row.data()), with_bias(context(), {2, 2}),
      added(context(), {2, 2}, start.data());
  cuda::GemmProblem<double> problems[2];
  for (cuda::GemmProblem<double>& problem : problems) {
    problem = {.m = 2,
               .n = 2,
               .k = 2,
               .a = x.view().data,
               .lda = 2,
               .b = y.view().data,
               .ldb = 2,
               .c = bias.view().data,
               .ldc = 0,
               .d = with_bias.view().data,
               .ldd = 2};
  }
  problems[1].c = added.view().data;
  problems[1].ldc = 2;
  problems[1].d = added.view().data;
  const Arena::Scope scope(context().scratch());

  cuda::grouped_gemm<double>(context(), cuda::Transpose::no, cuda::Transpose::no, problems,
                             {.relu = false, .beta = 1}, MathMode::fp32);

  EXPECT_EQ(with_bias.to_host(), (std::vector<double>{11, 22, 13, 24}));
  EXPECT_EQ(added.to_host(), (std::vector<double>{101, 202, 303, 404}));
}

}  // namespace
}  // namespace cfaa::test

#endif
