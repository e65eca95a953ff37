// Problems that do not fit in shared memory take other paths through the kernels (recomputed
// kernels, vectors in global scratch): they must give what the CPU gives.

#if CFAA_HAS_CUDA

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "host/core/tensor.h"
#include "host/device/make_context.h"
#include "host/ops/coupling.h"
#include "host/ops/typical_samples.h"
#include "tests/compare.h"
#include "tests/on_cuda.h"
#if CFAA_EMULATED
#include "emulator/control.h"
#endif

namespace cfaa::test {
namespace {

class LargeProblem : public OnCuda {
 protected:
  void SetUp() override {
#if CFAA_EMULATED
    emulator::set_shared_memory(48 << 10);
#endif
    OnCuda::SetUp();
    cpu_ = make_context("cpu", {.threads = 2, .seed = 1});
  }
#if CFAA_EMULATED
  void TearDown() override {
    emulator::set_architecture(emulator::Architecture::sm_80);
  }
#endif
  Context& cpu() {
    return *cpu_;
  }

  // How many T the shared memory of a block can hold at most.
  template <class T>
  int64_t shared_elements() {
    return static_cast<int64_t>(device().shared_limit() / sizeof(T));
  }

 private:
  std::unique_ptr<Context> cpu_;
};

struct CouplingValues {
  std::vector<double> loss, gradient;
  std::vector<int32_t> iterations;
};

CouplingValues couple(Context& context, int64_t k, const CouplingOptions& options) {
  const Tensor<double, 2> source(context, {1, k}, normal<double>(k, 1).data());
  const Tensor<double, 2> target(context, {1, k}, normal<double>(k, 2, 0.5, 2).data());
  const Arena::Scope scope(context.scratch());
  const auto result = coupling<double>(context, source.view(), target.view(), options);
  context.check_faults();
  return {to_host(context, result.loss), to_host(context, result.gradient),
          to_host(context, result.iterations)};
}

void expect_equal(const CouplingValues& a, const CouplingValues& b) {
  EXPECT_TRUE(close(a.loss, b.loss, 1e-10));
  EXPECT_TRUE(close(a.gradient, b.gradient, 1e-9));
  EXPECT_EQ(a.iterations, b.iterations);
}

TEST_F(LargeProblem, AKernelThatDoesNotFitIsMadeAnewAtEveryUse) {
  int64_t k = 1;
  while (k * k <= shared_elements<double>()) ++k;

  for (const double epsilon : {0.05, 1e-3}) {
    CouplingOptions options;
    options.epsilon = epsilon;
    options.iterations = 20;
    expect_equal(couple(context(), k, options), couple(cpu(), k, options));
  }
}

TEST_F(LargeProblem, VectorsThatDoNotFitLieInScratch) {
  const int64_t k = shared_elements<double>() / 7 + 1;
  CouplingOptions options;
  options.iterations = 1;

  expect_equal(couple(context(), k, options), couple(cpu(), k, options));
}

TEST_F(LargeProblem, SamplesThatDoNotFitAreSortedInScratch) {
  const int64_t k = shared_elements<double>() / 4 + 1;
  CouplingOptions options;
  options.solver = OtSolver::exact;

  expect_equal(couple(context(), k, options), couple(cpu(), k, options));
}

struct TypicalValues {
  std::vector<float> samples, weight, source_gradient;
};

TypicalValues typical(Context& context, int64_t n, int64_t k) {
  const int64_t d = 2;
  const Tensor<float, 2> source(context, {n, d}, normal<float>(n * d, 1).data());
  const Tensor<float, 2> target(context, {40, d}, normal<float>(40 * d, 2, 0.5, 2).data());
  Tensor<float, 2> source_gradient(context, {n, d}), target_gradient(context, {40, d});
  source_gradient.fill_zero();
  target_gradient.fill_zero();
  const EmbeddingPair<float> pair{source.view(), target.view()};
  const GradientPair<float> gradients{source_gradient.view(), target_gradient.view()};
  const Tensor<float, 3> dm(context, {2, d, k}, normal<float>(2 * d * k, 3).data());
  TypicalSamplesOptions options;
  options.k = k;
  options.iterations = 2;

  const Arena::Scope scope(context.scratch());
  const auto forward = typical_samples<float>(context, {&pair, 1}, options);
  typical_samples_backward<float>(context, {&pair, 1}, forward, dm.view(), 1.0, {&gradients, 1});
  context.check_faults();
  return {to_host(context, forward.samples), to_host(context, forward.weight),
          source_gradient.to_host()};
}

void expect_equal(const TypicalValues& a, const TypicalValues& b) {
  EXPECT_TRUE(close(a.samples, b.samples, 1e-4));
  EXPECT_TRUE(close(a.weight, b.weight, 1e-3));
  EXPECT_TRUE(close(a.source_gradient, b.source_gradient, 2e-3));
}

TEST_F(LargeProblem, ColumnsThatDoNotFitLieInScratch) {
  const int64_t n = shared_elements<float>() / 3 + 1;

  expect_equal(typical(context(), n, 7), typical(cpu(), n, 7));
}

TEST_F(LargeProblem, SamplesThatDoNotFitAreMadeAnewInTheBackward) {
  const int64_t k = shared_elements<float>() / 2 + 1;

  expect_equal(typical(context(), 50, k), typical(cpu(), 50, k));
}

}  // namespace
}  // namespace cfaa::test

#endif
