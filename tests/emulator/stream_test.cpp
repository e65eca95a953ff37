// Streams, events, copies and graphs of the emulated device: work happens in stream order, and not
// before somebody waits for it.

#include <thread>

#include "cublas_v2.h"
#include "cuda/launch.h"
#include "device_buffer.h"
#include "emulator/control.h"

namespace cfaa::cuda {
namespace {

__global__ void add_to(float* z, float value, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) z[i] += value;
}
__global__ void scale(float* z, float factor, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) z[i] *= factor;
}

template <typename T>
class Pinned {
 public:
  explicit Pinned(std::size_t size) { CFAA_CUDA_CHECK(cudaMallocHost(&data_, size * sizeof(T))); }
  ~Pinned() { CFAA_CUDA_WARN(cudaFreeHost(data_)); }
  Pinned(const Pinned&) = delete;
  T& operator[](std::size_t i) { return data_[i]; }
  T* data() { return data_; }

 private:
  T* data_ = nullptr;
};

class Streams : public ::testing::Test {
 protected:
  void SetUp() override {
    CFAA_CUDA_CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CFAA_CUDA_CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CFAA_CUDA_CHECK(cudaEventCreate(&event));
  }
  void TearDown() override {
    emulator::set_library_capture_refused(false);
    CFAA_CUDA_CHECK(cudaEventDestroy(event));
    CFAA_CUDA_CHECK(cudaStreamDestroy(first));
    CFAA_CUDA_CHECK(cudaStreamDestroy(second));
    cudaGetLastError();
  }

  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
};

TEST_F(Streams, WorkIsNotDoneBeforeSomebodyWaits) {
  DeviceBuffer<float> z(std::vector<float>(4, 1.0f));
  std::vector<float> seen(4);

  launch(first, add_to, 1, 32, 0, z.data(), 2.0f, 4);
  CFAA_CUDA_CHECK(cudaMemcpy(seen.data(), z, 16, cudaMemcpyDeviceToHost));
  EXPECT_EQ(seen[0], 1.0f) << "a synchronous copy does not wait for a non-blocking stream";

  CFAA_CUDA_CHECK(cudaStreamSynchronize(first));
  CFAA_CUDA_CHECK(cudaMemcpy(seen.data(), z, 16, cudaMemcpyDeviceToHost));
  EXPECT_EQ(seen[0], 3.0f);
}

TEST_F(Streams, TheDefaultStreamWaitsForBlockingStreams) {
  cudaStream_t blocking;
  CFAA_CUDA_CHECK(cudaStreamCreate(&blocking));
  DeviceBuffer<float> z(std::vector<float>(4, 1.0f));
  std::vector<float> seen(4);

  launch(blocking, add_to, 1, 32, 0, z.data(), 2.0f, 4);
  launch(nullptr, scale, 1, 32, 0, z.data(), 10.0f, 4);
  launch(blocking, add_to, 1, 32, 0, z.data(), 1.0f, 4);
  CFAA_CUDA_CHECK(cudaStreamSynchronize(blocking));
  CFAA_CUDA_CHECK(cudaMemcpy(seen.data(), z, 16, cudaMemcpyDeviceToHost));

  EXPECT_EQ(seen[0], 31.0f);
  CFAA_CUDA_CHECK(cudaStreamDestroy(blocking));
}

TEST_F(Streams, AnEventOrdersTwoStreams) {
  for (unsigned seed : {1u, 2u, 3u, 4u, 5u}) {
    emulator::set_seed(seed);
    DeviceBuffer<float> z(std::vector<float>(4, 1.0f));

    launch(first, add_to, 1, 32, 0, z.data(), 2.0f, 4);
    CFAA_CUDA_CHECK(cudaEventRecord(event, first));
    CFAA_CUDA_CHECK(cudaStreamWaitEvent(second, event));
    launch(second, scale, 1, 32, 0, z.data(), 10.0f, 4);

    EXPECT_EQ(z.values()[3], 30.0f);
  }
}

TEST_F(Streams, AWaitOfTheHostOrdersTwoStreams) {
  DeviceBuffer<float> z(std::vector<float>(4, 1.0f));

  launch(first, add_to, 1, 32, 0, z.data(), 2.0f, 4);
  CFAA_CUDA_CHECK(cudaEventRecord(event, first));
  CFAA_CUDA_CHECK(cudaEventSynchronize(event));
  launch(second, scale, 1, 32, 0, z.data(), 10.0f, 4);
  CFAA_CUDA_CHECK(cudaStreamSynchronize(second));
  launch(first, add_to, 1, 32, 0, z.data(), 1.0f, 4);

  EXPECT_EQ(z.values()[3], 31.0f);
}

TEST_F(Streams, TwoStreamsMayReadOneBuffer) {
  DeviceBuffer<float> z(std::vector<float>(4, 1.0f)), a(4), b(4);

  CFAA_CUDA_CHECK(cudaMemcpyAsync(a, z, 16, cudaMemcpyDeviceToDevice, first));
  CFAA_CUDA_CHECK(cudaMemcpyAsync(b, z, 16, cudaMemcpyDeviceToDevice, second));

  EXPECT_EQ(a.values(), b.values());
}

TEST_F(Streams, PinnedMemoryIsReadWhenTheCopyRuns) {
  DeviceBuffer<float> z(1);
  Pinned<float> pinned(1);
  const std::vector<float> pageable(1, 1.0f);

  pinned[0] = 1.0f;
  CFAA_CUDA_CHECK(cudaMemcpyAsync(z, pinned.data(), 4, cudaMemcpyHostToDevice, first));
  pinned[0] = 2.0f;
  EXPECT_EQ(z.values()[0], 2.0f) << "the buffer was reused too early";

  CFAA_CUDA_CHECK(cudaMemcpyAsync(z, pageable.data(), 4, cudaMemcpyHostToDevice, first));
  EXPECT_EQ(z.values()[0], 1.0f);
}

TEST_F(Streams, APinnedResultIsNotThereBeforeTheWait) {
  DeviceBuffer<float> z(std::vector<float>(1, 7.0f));
  Pinned<float> pinned(1);
  pinned[0] = 0.0f;

  CFAA_CUDA_CHECK(cudaMemcpyAsync(pinned.data(), z, 4, cudaMemcpyDeviceToHost, first));
  EXPECT_EQ(pinned[0], 0.0f);
  CFAA_CUDA_CHECK(cudaStreamSynchronize(first));
  EXPECT_EQ(pinned[0], 7.0f);
}

TEST_F(Streams, TwoDimensionalCopiesKeepTheirPitch) {
  const std::vector<float> host = {1, 2, 3, 4, 5, 6};        // (2, 3)
  DeviceBuffer<float> padded(std::vector<float>(8, -1.0f));  // (2, 4)

  CFAA_CUDA_CHECK(
      cudaMemcpy2DAsync(padded, 16, host.data(), 12, 12, 2, cudaMemcpyHostToDevice, first));

  EXPECT_EQ(padded.values(), (std::vector<float>{1, 2, 3, -1, 4, 5, 6, -1}));
}

TEST_F(Streams, QueriesLetTimePass) {
  DeviceBuffer<float> z(std::vector<float>(4, 1.0f));
  launch(first, add_to, 1, 32, 0, z.data(), 2.0f, 4);
  CFAA_CUDA_CHECK(cudaEventRecord(event, first));

  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  int polls = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady && polls < 100) ++polls;
  EXPECT_LT(polls, 100);
  EXPECT_EQ(cudaStreamQuery(first), cudaSuccess);
}

TEST_F(Streams, EventsMeasureTime) {
  cudaEvent_t end;
  CFAA_CUDA_CHECK(cudaEventCreate(&end));
  CFAA_CUDA_CHECK(cudaEventRecord(event, first));
  CFAA_CUDA_CHECK(cudaLaunchHostFunc(
      first, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
  CFAA_CUDA_CHECK(cudaEventRecord(end, first));
  float ms = 0;

  EXPECT_EQ(cudaEventElapsedTime(&ms, event, end), cudaErrorNotReady);
  CFAA_CUDA_CHECK(cudaEventSynchronize(end));
  CFAA_CUDA_CHECK(cudaEventElapsedTime(&ms, event, end));

  EXPECT_GE(ms, 20.0f);
  CFAA_CUDA_CHECK(cudaEventDestroy(end));
}

TEST_F(Streams, StreamOrderedFreesWaitForTheirStream) {
  float* z = nullptr;
  const std::size_t before = emulator::live_device_bytes();
  CFAA_CUDA_CHECK(cudaMallocAsync(&z, 16, first));
  CFAA_CUDA_CHECK(cudaMemsetAsync(z, 0, 16, first));
  launch(first, add_to, 1, 32, 0, z, 2.0f, 4);
  CFAA_CUDA_CHECK(cudaFreeAsync(z, first));

  EXPECT_EQ(emulator::live_device_bytes(), before + 16);
  CFAA_CUDA_CHECK(cudaStreamSynchronize(first));
  EXPECT_EQ(emulator::live_device_bytes(), before);
}

// Graphs.

class Graphs : public Streams {
 protected:
  template <typename Work>
  cudaGraphExec_t capture(Work work) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CFAA_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    work();
    CFAA_CUDA_CHECK(cudaStreamEndCapture(first, &graph));
    CFAA_CUDA_CHECK(cudaGraphInstantiate(&exec, graph));
    CFAA_CUDA_CHECK(cudaGraphDestroy(graph));
    return exec;
  }
};

TEST_F(Graphs, CaptureRecordsAndReplayRuns) {
  DeviceBuffer<float> z(std::vector<float>(4, 1.0f));
  Pinned<float> step(1);
  DeviceBuffer<float> device_step(1);

  cudaGraphExec_t exec = capture([&] {
    CFAA_CUDA_CHECK(cudaMemcpyAsync(device_step, step.data(), 4, cudaMemcpyHostToDevice, first));
    launch(first, add_to, 1, 32, 0, z.data(), 2.0f, 4);
    launch(first, scale, 1, 32, 0, z.data(), 10.0f, 4);
  });
  EXPECT_EQ(z.values()[0], 1.0f) << "capturing runs nothing";

  for (int i = 0; i < 3; ++i) {
    step[0] = static_cast<float>(i);
    CFAA_CUDA_CHECK(cudaGraphLaunch(exec, first));
    CFAA_CUDA_CHECK(cudaStreamSynchronize(first));
    EXPECT_EQ(device_step.values()[0], static_cast<float>(i));
  }
  EXPECT_EQ(z.values()[0], 3220.0f);
  CFAA_CUDA_CHECK(cudaGraphExecDestroy(exec));
}

TEST_F(Graphs, AForkAndAJoinByEventsAreCaptured) {
  cudaEvent_t joined;
  CFAA_CUDA_CHECK(cudaEventCreate(&joined));
  DeviceBuffer<float> a(std::vector<float>(4, 1.0f)), b(std::vector<float>(4, 1.0f));

  cudaGraphExec_t exec = capture([&] {
    launch(first, add_to, 1, 32, 0, a.data(), 1.0f, 4);
    CFAA_CUDA_CHECK(cudaEventRecord(event, first));
    CFAA_CUDA_CHECK(cudaStreamWaitEvent(second, event));
    launch(second, add_to, 1, 32, 0, b.data(), 4.0f, 4);
    launch(first, scale, 1, 32, 0, a.data(), 3.0f, 4);
    CFAA_CUDA_CHECK(cudaEventRecord(joined, second));
    CFAA_CUDA_CHECK(cudaStreamWaitEvent(first, joined));
    launch(first, scale, 1, 32, 0, b.data(), 2.0f, 4);
  });
  CFAA_CUDA_CHECK(cudaGraphLaunch(exec, first));

  EXPECT_EQ(a.values()[0], 6.0f);
  EXPECT_EQ(b.values()[0], 10.0f);
  CFAA_CUDA_CHECK(cudaGraphExecDestroy(exec));
  CFAA_CUDA_CHECK(cudaEventDestroy(joined));
}

TEST_F(Graphs, AnUnjoinedForkIsRefused) {
  DeviceBuffer<float> b(std::vector<float>(4, 1.0f));
  cudaGraph_t graph;
  CFAA_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  CFAA_CUDA_CHECK(cudaEventRecord(event, first));
  CFAA_CUDA_CHECK(cudaStreamWaitEvent(second, event));
  launch(second, add_to, 1, 32, 0, b.data(), 4.0f, 4);

  EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaErrorStreamCaptureUnjoined);
}

TEST_F(Graphs, CallsThatCannotBeCapturedInvalidateTheCapture) {
  float* p = nullptr;
  std::vector<float> pageable(4);
  DeviceBuffer<float> z(4);
  cudaGraph_t graph;
  const auto during_capture = [&](auto call) {
    CFAA_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    const cudaError_t error = call();
    cudaStreamCaptureStatus status;
    CFAA_CUDA_CHECK(cudaStreamIsCapturing(first, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    return error;
  };

  EXPECT_EQ(during_capture([&] { return cudaMalloc(&p, 4); }), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during_capture([&] { return cudaStreamSynchronize(first); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during_capture([&] { return cudaDeviceSynchronize(); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during_capture([&] {
              return cudaMemcpyAsync(z, pageable.data(), 16, cudaMemcpyHostToDevice, first);
            }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during_capture([&] {
              CFAA_CUDA_CHECK(cudaEventRecord(event, second));
              return cudaStreamWaitEvent(first, event);
            }),
            cudaErrorStreamCaptureIsolation);
}

TEST_F(Graphs, AEventOfACaptureCannotBeWaitedForByTheHost) {
  capture([&] { CFAA_CUDA_CHECK(cudaEventRecord(event, first)); });

  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorCapturedEvent);
}

TEST_F(Graphs, LibraryCallsAreCapturedOrRefusedAsAsked) {
  DeviceBuffer<float> a(std::vector<float>{4, 0, 0, 9});
  cublasHandle_t blas;
  CFAA_CUDA_CHECK(cublasCreate(&blas));
  CFAA_CUDA_CHECK(cublasSetStream(blas, first));
  const float two = 2;
  const auto twice = [&] { return cublasSscal(blas, 4, &two, a, 1); };

  cudaGraphExec_t exec = capture([&] { CFAA_CUDA_CHECK(twice()); });
  CFAA_CUDA_CHECK(cudaGraphLaunch(exec, first));
  EXPECT_EQ(a.values()[3], 18.0f);

  emulator::set_library_capture_refused(true);
  cudaGraph_t graph;
  CFAA_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(twice(), CUBLAS_STATUS_INTERNAL_ERROR);
  EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(twice(), CUBLAS_STATUS_SUCCESS) << "in stream order it still works";
  CFAA_CUDA_CHECK(cudaStreamSynchronize(first));

  CFAA_CUDA_CHECK(cudaGraphExecDestroy(exec));
  CFAA_CUDA_CHECK(cublasDestroy(blas));
}

TEST_F(Graphs, AReplayNeitherAllocatesNorSynchronises) {
  DeviceBuffer<float> z(std::vector<float>(4, 1.0f));
  cudaGraphExec_t exec = capture([&] { launch(first, add_to, 1, 32, 0, z.data(), 2.0f, 4); });
  const emulator::Counters before = emulator::counters();

  for (int i = 0; i < 5; ++i) CFAA_CUDA_CHECK(cudaGraphLaunch(exec, first));

  const emulator::Counters after = emulator::counters();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.synchronisations, before.synchronisations);
  EXPECT_EQ(after.graph_launches, before.graph_launches + 5);
  EXPECT_EQ(z.values()[0], 11.0f);
  CFAA_CUDA_CHECK(cudaGraphExecDestroy(exec));
}

}  // namespace
}  // namespace cfaa::cuda
