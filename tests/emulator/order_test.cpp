// What a GPU lets pass in silence when work is queued: two streams that nothing orders, host memory
// that does not last as long as its copy, a library in a graph that must not be there. Each test
// makes one mistake and expects to be told of that mistake.

#include <memory>

#include "cublas_v2.h"
#include "cuda/launch.h"
#include "cusolverDn.h"
#include "device_buffer.h"

namespace cfaa::cuda {
namespace {

__global__ void doubled(const float* in, float* out, int n) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < n) out[i] = 2 * in[i];
}

class Order : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "fast";
    CFAA_CUDA_CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CFAA_CUDA_CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CFAA_CUDA_CHECK(cudaEventCreate(&event));
  }
  void TearDown() override {
    CFAA_CUDA_CHECK(cudaEventDestroy(event));
    CFAA_CUDA_CHECK(cudaStreamDestroy(first));
    CFAA_CUDA_CHECK(cudaStreamDestroy(second));
  }

  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
};

TEST_F(Order, AReadOfWhatAnotherStreamWritesIsFound) {
  DeviceBuffer<float> a(std::vector<float>(4, 1.0f)), b(4), c(4);
  launch(first, doubled, 1, 32, 0, a.data(), b.data(), 4);

  EXPECT_DEATH(launch(second, doubled, 1, 32, 0, b.data(), c.data(), 4),
               "kernel cfaa::cuda::doubled: argument 0 is written by kernel cfaa::cuda::doubled on "
               "another stream, and no event says which of them comes first");
}

TEST_F(Order, AnOverwriteOfWhatAnotherStreamReadsIsFound) {
  DeviceBuffer<float> a(std::vector<float>(4, 1.0f)), b(4);
  launch(first, doubled, 1, 32, 0, a.data(), b.data(), 4);

  EXPECT_DEATH(CFAA_CUDA_CHECK(cudaMemsetAsync(a, 0, 16, second)),
               "cudaMemsetAsync: the destination is read by kernel cfaa::cuda::doubled on another "
               "stream");
}

TEST_F(Order, AnEventRecordedTooEarlyDoesNotHelp) {
  DeviceBuffer<float> a(std::vector<float>(4, 1.0f)), b(4), c(4);
  CFAA_CUDA_CHECK(cudaEventRecord(event, first));
  launch(first, doubled, 1, 32, 0, a.data(), b.data(), 4);
  CFAA_CUDA_CHECK(cudaStreamWaitEvent(second, event));

  EXPECT_DEATH(launch(second, doubled, 1, 32, 0, b.data(), c.data(), 4), "no event says");
}

TEST_F(Order, AGraphIsOrderedAsAWhole) {
  DeviceBuffer<float> a(std::vector<float>(4, 1.0f)), b(4), c(4);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CFAA_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  launch(first, doubled, 1, 32, 0, a.data(), b.data(), 4);
  CFAA_CUDA_CHECK(cudaStreamEndCapture(first, &graph));
  CFAA_CUDA_CHECK(cudaGraphInstantiate(&exec, graph));
  CFAA_CUDA_CHECK(cudaGraphLaunch(exec, first));

  EXPECT_DEATH(launch(second, doubled, 1, 32, 0, b.data(), c.data(), 4),
               "argument 0 is written by cudaGraphLaunch on another stream");

  CFAA_CUDA_CHECK(cudaGraphExecDestroy(exec));
  CFAA_CUDA_CHECK(cudaGraphDestroy(graph));
}

TEST_F(Order, BranchesOfAGraphThatShareABufferAreFound) {
  DeviceBuffer<float> a(std::vector<float>(4, 1.0f)), b(4), c(4);
  const auto fork = [&](float* zeroed) {
    cudaGraph_t graph;
    CFAA_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    CFAA_CUDA_CHECK(cudaEventRecord(event, first));
    CFAA_CUDA_CHECK(cudaStreamWaitEvent(second, event));
    launch(first, doubled, 1, 32, 0, a.data(), b.data(), 4);
    CFAA_CUDA_CHECK(cudaMemsetAsync(zeroed, 0, 16, second));
    CFAA_CUDA_CHECK(cudaEventRecord(event, second));
    CFAA_CUDA_CHECK(cudaStreamWaitEvent(first, event));
    CFAA_CUDA_CHECK(cudaStreamEndCapture(first, &graph));
    CFAA_CUDA_CHECK(cudaGraphDestroy(graph));
  };

  EXPECT_DEATH(fork(b),
               "kernel cfaa::cuda::doubled and cudaMemsetAsync of a graph: argument 1 of the one "
               "is the destination of the other, and nothing says which of them comes first");
  fork(c);
}

TEST_F(Order, ChildGraphsThatShareABufferWantADependency) {
  DeviceBuffer<float> a(std::vector<float>(4, 1.0f)), b(4), c(4);
  const auto captured = [&](const float* from, float* to) {
    cudaGraph_t graph;
    CFAA_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    launch(first, doubled, 1, 32, 0, from, to, 4);
    CFAA_CUDA_CHECK(cudaStreamEndCapture(first, &graph));
    return graph;
  };
  cudaGraph_t children[2] = {captured(a.data(), b.data()), captured(b.data(), c.data())};
  const auto run_both = [&](std::size_t dependencies) {
    cudaGraph_t both;
    cudaGraphNode_t node, last;
    cudaGraphExec_t exec;
    CFAA_CUDA_CHECK(cudaGraphCreate(&both, 0));
    CFAA_CUDA_CHECK(cudaGraphAddChildGraphNode(&node, both, nullptr, 0, children[0]));
    CFAA_CUDA_CHECK(cudaGraphAddChildGraphNode(&last, both, &node, dependencies, children[1]));
    CFAA_CUDA_CHECK(cudaGraphInstantiate(&exec, both));
    CFAA_CUDA_CHECK(cudaGraphLaunch(exec, first));
    CFAA_CUDA_CHECK(cudaGraphExecDestroy(exec));
    CFAA_CUDA_CHECK(cudaGraphDestroy(both));
  };

  EXPECT_DEATH(run_both(0), "argument 1 of the one is argument 0 of the other, and nothing says");
  run_both(1);
  EXPECT_EQ(c.values()[0], 4.0f);

  for (const cudaGraph_t child : children) CFAA_CUDA_CHECK(cudaGraphDestroy(child));
}

TEST_F(Order, APageableSourceThatChangesBeforeTheWaitIsFound) {
  DeviceBuffer<float> z(4);
  std::vector<float> pageable(4, 1.0f);
  CFAA_CUDA_CHECK(cudaMemcpyAsync(z, pageable.data(), 16, cudaMemcpyHostToDevice, first));

  EXPECT_DEATH(
      {
        pageable[2] = 2;
        CFAA_CUDA_CHECK(cudaStreamSynchronize(first));
      },
      "cudaMemcpyAsync: its pageable source was changed or freed before the copy was waited for");

  CFAA_CUDA_CHECK(cudaStreamSynchronize(first));
  pageable[2] = 2;
  EXPECT_EQ(z.values()[2], 1.0f);
}

TEST_F(Order, APageableSourceThatIsGoneBeforeTheWaitIsFound) {
  const std::size_t count = std::size_t{1} << 20;  // large enough to be unmapped when freed
  DeviceBuffer<float> z(count);
  auto pageable = std::make_unique<std::vector<float>>(count, 1.0f);
  CFAA_CUDA_CHECK(cudaMemcpyAsync(z, pageable->data(), count * 4, cudaMemcpyHostToDevice, first));

  EXPECT_DEATH(
      {
        pageable.reset();
        CFAA_CUDA_CHECK(cudaStreamSynchronize(first));
      },
      "its pageable source was (changed or )?freed before the copy was waited for");
  CFAA_CUDA_CHECK(cudaStreamSynchronize(first));
}

TEST_F(Order, PinnedMemoryFreedUnderAGraphIsFound) {
  DeviceBuffer<float> z(4);
  float* pinned = nullptr;
  CFAA_CUDA_CHECK(cudaMallocHost(&pinned, 16));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CFAA_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  CFAA_CUDA_CHECK(cudaMemcpyAsync(z, pinned, 16, cudaMemcpyHostToDevice, first));
  CFAA_CUDA_CHECK(cudaStreamEndCapture(first, &graph));
  CFAA_CUDA_CHECK(cudaGraphInstantiate(&exec, graph));
  CFAA_CUDA_CHECK(cudaFreeHost(pinned));

  EXPECT_DEATH(
      {
        CFAA_CUDA_CHECK(cudaGraphLaunch(exec, first));
        CFAA_CUDA_CHECK(cudaStreamSynchronize(first));
      },
      "cudaMemcpyAsync, replayed from a graph: its pinned host memory was freed");

  CFAA_CUDA_CHECK(cudaGraphExecDestroy(exec));
  CFAA_CUDA_CHECK(cudaGraphDestroy(graph));
}

TEST_F(Order, CusolverInACaptureIsFound) {
  DeviceBuffer<float> a(std::vector<float>{4, 0, 0, 9}), work(1024);
  DeviceBuffer<int> info(1);
  cusolverDnHandle_t solver;
  CFAA_CUDA_CHECK(cusolverDnCreate(&solver));
  CFAA_CUDA_CHECK(cusolverDnSetStream(solver, first));
  const auto factor = [&] {
    return cusolverDnSpotrf(solver, CUBLAS_FILL_MODE_LOWER, 2, a, 2, work, 1024, info);
  };

  EXPECT_DEATH(
      {
        CFAA_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
        CFAA_CUDA_CHECK(factor());
      },
      "cusolverDnSpotrf: cuSOLVER must not be captured in a graph");

  CFAA_CUDA_CHECK(factor());
  EXPECT_EQ(a.values()[3], 3.0f);
  CFAA_CUDA_CHECK(cusolverDnDestroy(solver));
}

}  // namespace
}  // namespace cfaa::cuda
