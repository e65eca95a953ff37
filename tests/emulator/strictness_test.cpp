// What a GPU lets pass in silence and the emulated device must not. Each test makes one mistake and
// expects to be told of that mistake, not merely to die.

#include <cstring>

#include "cublas_v2.h"
#include "cuda/launch.h"
#include "cusolverDn.h"
#include "device_buffer.h"
#include "emulator/control.h"
#include "host/core/error.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

class Strictness : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::FLAGS_gtest_death_test_style = "fast"; }
  void TearDown() override {
    emulator::set_seed(1);
    emulator::set_architecture(emulator::Architecture::sm_80);
  }
};

void finish() {
  CFAA_CUDA_CHECK(cudaDeviceSynchronize());
}

// Shared memory and barriers.

__global__ void neighbour(float* out, bool barrier) {
  CFAA_SHARED(float, slots, 64);
  const int i = static_cast<int>(threadIdx.x);
  slots[i] = static_cast<float>(i);
  if (barrier) __syncthreads();
  const float next = slots[(i + 1) % 64];
  out[i] = next;
}

TEST_F(Strictness, AMissingSyncthreadsIsFoundWhateverTheSeed) {
  DeviceBuffer<float> out(64);
  for (unsigned seed : {1u, 2u, 3u, 4u}) {
    emulator::set_seed(seed);
    EXPECT_DEATH(
        {
          launch(nullptr, neighbour, 1, 64, 0, out.data(), false);
          finish();
        },
        "kernel cfaa::cuda::neighbour block .0, 0, 0. thread .*(race in shared "
        "memory.*__syncthreads "
        "missing|uninitialised)");
  }

  launch(nullptr, neighbour, 1, 64, 0, out.data(), true);
  EXPECT_EQ(out.values()[63], 0.0f);
}

// The loop's second round overwrites what slower threads have yet to read.
__global__ void ring(float* out, bool second_barrier) {
  CFAA_SHARED(float, slots, 64);
  const int i = static_cast<int>(threadIdx.x);
  float value = static_cast<float>(i);
  for (int round = 0; round < 3; ++round) {
    slots[i] = value;
    __syncthreads();
    value = slots[(i + 1) % 64] + 1.0f;
    if (second_barrier) __syncthreads();
  }
  out[i] = value;
}

TEST_F(Strictness, AMissingBarrierBeforeAnOverwriteIsFound) {
  DeviceBuffer<float> out(64);

  EXPECT_DEATH(
      {
        launch(nullptr, ring, 1, 64, 0, out.data(), false);
        finish();
      },
      "kernel cfaa::cuda::ring .* race in shared memory: (overwrites|reads) element");

  launch(nullptr, ring, 1, 64, 0, out.data(), true);
  EXPECT_EQ(out.values()[0], 6.0f);
}

__global__ void warp_neighbour(float* out, bool sync) {
  CFAA_SHARED(float, slots, 32);
  slots[lane_index()] = static_cast<float>(lane_index());
  // A shuffle orders no memory; only __syncwarp does.
  const float unused = __shfl_sync(full_warp, 1.0f, 0);
  if (sync) __syncwarp();
  const float next = slots[lane_index() ^ 1];
  out[lane_index()] = next * unused;
}

TEST_F(Strictness, AMissingSyncwarpIsFound) {
  DeviceBuffer<float> out(32);

  EXPECT_DEATH(
      {
        launch(nullptr, warp_neighbour, 1, 32, 0, out.data(), false);
        finish();
      },
      "kernel cfaa::cuda::warp_neighbour .* race in shared memory: reads element");

  launch(nullptr, warp_neighbour, 1, 32, 0, out.data(), true);
  EXPECT_EQ(out.values()[0], 1.0f);
}

__global__ void same_flag(int* out, bool same) {
  CFAA_SHARED(int, flag, 1);
  flag[0] = same ? 1 : static_cast<int>(threadIdx.x);
  __syncthreads();
  const int seen = flag[0];
  out[threadIdx.x] = seen;
}

TEST_F(Strictness, ThreadsMayWriteOneValueToOneElementButNotTwo) {
  DeviceBuffer<int> out(64);

  launch(nullptr, same_flag, 1, 64, 0, out.data(), true);
  EXPECT_EQ(out.values()[5], 1);

  EXPECT_DEATH(
      {
        launch(nullptr, same_flag, 1, 64, 0, out.data(), false);
        finish();
      },
      "race in shared memory: writes element 0");
}

__global__ void sum_unwritten(float* out) {
  SharedArena arena;
  const Shared<float> values = arena.take<float>(64);
  if (threadIdx.x < 63) values[threadIdx.x] = 1.0f;
  __syncthreads();
  const float x = values[threadIdx.x];
  out[threadIdx.x] = x;
}

TEST_F(Strictness, AReadOfUninitialisedSharedMemoryIsFound) {
  DeviceBuffer<float> out(64);

  EXPECT_DEATH(
      {
        launch(nullptr, sum_unwritten, 1, 64, shared_bytes<float>(64), out.data());
        finish();
      },
      "kernel cfaa::cuda::sum_unwritten block .0, 0, 0. thread .63, 0, 0. read uninitialised "
      "shared memory: element 63 of 64");
}

__global__ void write_first_block_only(float* out) {
  CFAA_SHARED(float, value, 1);
  if (blockIdx.x == 0 && threadIdx.x == 0) value[0] = 3.0f;
  __syncthreads();
  const float x = value[0];
  out[blockIdx.x] = x;
}

TEST_F(Strictness, SharedMemoryOfAnEarlierBlockIsUninitialised) {
  DeviceBuffer<float> out(2);

  EXPECT_DEATH(
      {
        launch(nullptr, write_first_block_only, 2, 32, 0, out.data());
        finish();
      },
      "block .1, 0, 0. .* read uninitialised shared memory");
}

__global__ void off_by_one(float* out, int n) {
  SharedArena arena;
  const Shared<float> values = arena.take<float>(n);
  values[threadIdx.x + 1] = 1.0f;
  out[threadIdx.x] = 0.0f;
}

TEST_F(Strictness, AnIndexPastTheEndOfSharedMemoryIsFound) {
  DeviceBuffer<float> out(32);

  EXPECT_DEATH(
      {
        launch(nullptr, off_by_one, 1, 32, shared_bytes<float>(32), out.data(), 32);
        finish();
      },
      "kernel cfaa::cuda::off_by_one .* thread .31, 0, 0. reached element 32 of shared memory that "
      "has 32");
  EXPECT_DEATH(
      {
        launch(nullptr, off_by_one, 1, 32, shared_bytes<float>(31), out.data(), 64);
        finish();
      },
      "takes 256 bytes of dynamic shared memory, the launch gave 128");
}

__global__ void half_a_barrier(int* out) {
  if (threadIdx.x < 32) __syncthreads();
  out[threadIdx.x] = 1;
}
__global__ void two_barriers(int* out) {
  if (threadIdx.x < 32) {
    __syncthreads();
    out[threadIdx.x] = 1;
  } else {
    __syncthreads();
    out[threadIdx.x] = 2;
  }
}
__global__ void barrier_and_shuffle(int* out) {
  if (threadIdx.x < 16) __syncthreads();
  out[threadIdx.x] = __shfl_sync(full_warp, 1, 0);
  if (threadIdx.x >= 16) __syncthreads();
}

TEST_F(Strictness, ADivergentBarrierIsFound) {
  DeviceBuffer<int> out(64);

  EXPECT_DEATH(
      {
        launch(nullptr, half_a_barrier, 1, 64, 0, out.data());
        finish();
      },
      "kernel cfaa::cuda::half_a_barrier block .0, 0, 0.: divergent barrier, not reached by every "
      "thread: .* wait at __syncthreads .strictness_test.cpp:[0-9]+., .* exited");
  EXPECT_DEATH(
      {
        launch(nullptr, two_barriers, 1, 64, 0, out.data());
        finish();
      },
      "divergent barrier.*32 threads .*wait at __syncthreads .*32 threads .*wait at __syncthreads");
  EXPECT_DEATH(
      {
        launch(nullptr, barrier_and_shuffle, 1, 32, 0, out.data());
        finish();
      },
      "divergent barrier.*16 threads.* wait at __(syncthreads|shfl_sync).*16 threads");
}

// Masks of warp primitives.

__global__ void shuffle_with(unsigned mask, unsigned callers, unsigned leavers, int* out) {
  const unsigned bit = 1u << threadIdx.x;
  if ((leavers & bit) != 0) return;
  if ((callers & bit) != 0) out[threadIdx.x] = __shfl_sync(mask, 1, 0);
}
__global__ void two_masks(int* out) {
  out[threadIdx.x] = __shfl_sync(threadIdx.x == 3 ? 0x0000FFFFu : full_warp, 1, 0);
}
__global__ void two_kinds(int* out) {
  out[threadIdx.x] = threadIdx.x < 16 ? __shfl_sync(full_warp, 1, 0) : __any_sync(full_warp, 1);
}

TEST_F(Strictness, MasksOfWarpPrimitivesAreChecked) {
  DeviceBuffer<int> out(32);
  const auto run = [&](unsigned mask, unsigned callers, unsigned leavers, int threads) {
    launch(nullptr, shuffle_with, 1, threads, 0, mask, callers, leavers, out.data());
    finish();
  };

  EXPECT_DEATH(run(0xFFFFFFFE, full_warp, 0, 32), "leaves out its own lane 0");
  EXPECT_DEATH(run(full_warp, full_warp, 0, 20), "the warp has only lanes 0x000fffff");
  EXPECT_DEATH(run(full_warp, full_warp, 0x8, 32), "lanes 0x00000008 have exited|divergent");
  EXPECT_DEATH(run(full_warp, 0xFFFF, 0, 32), "have exited|divergent");
  EXPECT_DEATH(
      {
        launch(nullptr, two_masks, 1, 32, 0, out.data());
        finish();
      },
      "while lanes 0x[0-9a-f]+ of its warp wait for it at __shfl_sync with mask");
  EXPECT_DEATH(
      {
        launch(nullptr, two_kinds, 1, 32, 0, out.data());
        finish();
      },
      "called __(any|shfl)_sync .* wait for it at __(any|shfl)_sync");
  run(0xFFFF, 0xFFFF, 0, 32);
}

// Global memory.

__global__ void copy_all(const float* in, float* out, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    out[i] = in[i];
  }
}

void copy_on_device(const float* in, float* out, int n) {
  launch(nullptr, copy_all, 1, 32, 0, in, out, n);
  finish();
}

TEST_F(Strictness, AReadPastTheEndOfABufferIsFound) {
  DeviceBuffer<float> in(64), out(4096);  // 256 bytes: no slack behind them

  EXPECT_DEATH(
      copy_on_device(in, out, 65),
      "kernel cfaa::cuda::copy_all block .0, 0, 0. thread .0, 0, 0. read past the end of a "
      "buffer of 256 bytes");
}

TEST_F(Strictness, AWritePastTheEndOfABufferIsFoundToTheByte) {
  DeviceBuffer<float> in(std::vector<float>(4096, 1.0f)), out(63);  // 4 bytes of slack behind them

  copy_on_device(in, out, 63);
  EXPECT_DEATH(copy_on_device(in, out, 64),
               "kernel cfaa::cuda::copy_all.* wrote past the end of a buffer of 252 bytes");
}

TEST_F(Strictness, AWriteBeforeTheStartOfABufferIsFound) {
  DeviceBuffer<float> in(std::vector<float>(4096, 1.0f)), out(64);
  DeviceBuffer<float> page(1024);

  EXPECT_DEATH(copy_on_device(in, page.data() - 1, 1), "argument 1 points outside of every buffer");
}

__global__ void store_at(float* out, long long offset) {
  out[offset] = 1.0f;
}

TEST_F(Strictness, FarAndNegativeOffsetsAreFound) {
  DeviceBuffer<float> out(1024);
  const auto store = [&](long long offset) {
    launch(nullptr, store_at, 1, 1, 0, out.data(), offset);
    finish();
  };

  EXPECT_DEATH(store(-1), "wrote before the start of a buffer of 4096 bytes");
  EXPECT_DEATH(store(100000), "wrote past the end of a buffer of 4096 bytes, at offset 400000");
}

TEST_F(Strictness, FreshDeviceMemoryIsNotANumber) {
  DeviceBuffer<float> fresh(16);

  for (float value : fresh.values()) EXPECT_TRUE(value != value);
}

TEST_F(Strictness, AHostTouchOfDeviceMemoryIsFound) {
  DeviceBuffer<float> buffer(std::vector<float>(16, 2.0f));

  EXPECT_DEATH(
      {
        volatile float value = buffer.data()[3];
        (void)value;
      },
      "host touched device memory: read offset 12 of a buffer of 64 bytes");
  EXPECT_DEATH(*const_cast<volatile float*>(buffer.data()) = 1.0f,
               "host touched device memory: wrote offset 0");
}

TEST_F(Strictness, UseAfterFreeIsFound) {
  DeviceBuffer<float> out(64);
  float* gone = nullptr;
  CFAA_CUDA_CHECK(cudaMalloc(&gone, 256));
  CFAA_CUDA_CHECK(cudaFree(gone));

  EXPECT_DEATH(
      copy_on_device(gone, out, 64),
      "kernel cfaa::cuda::copy_all: argument 0 points to freed device memory .use after free");
  EXPECT_DEATH(
      {
        volatile float value = *gone;
        (void)value;
      },
      "use after free: the host read offset 0 of a freed buffer of 256 bytes");
  EXPECT_EQ(cudaFree(gone), cudaErrorInvalidValue);
  cudaGetLastError();
}

__global__ void follow(float* const* pointers, float* out) {
  out[0] = pointers[0][0];
}

TEST_F(Strictness, AFreedPointerInsideDeviceMemoryIsFoundWhenFollowed) {
  float* gone = nullptr;
  CFAA_CUDA_CHECK(cudaMalloc(&gone, 256));
  DeviceBuffer<float*> pointers(std::vector<float*>{gone});
  DeviceBuffer<float> out(1);
  CFAA_CUDA_CHECK(cudaFree(gone));

  EXPECT_DEATH(
      {
        launch(nullptr, follow, 1, 1, 0, pointers.data(), out.data());
        finish();
      },
      "use after free: kernel cfaa::cuda::follow .* read offset 0 of a freed buffer of 256 bytes");
}

TEST_F(Strictness, APointerOfTheHostOrOfAnotherDeviceIsFound) {
  std::vector<float> host(64);
  DeviceBuffer<float> out(64);
  CFAA_CUDA_CHECK(cudaSetDevice(1));
  float* other = nullptr;
  CFAA_CUDA_CHECK(cudaMalloc(&other, 256));
  CFAA_CUDA_CHECK(cudaSetDevice(0));

  EXPECT_DEATH(copy_on_device(host.data(), out, 64),
               "argument 0 is host memory, not device memory");
  EXPECT_DEATH(copy_on_device(out, other, 64),
               "argument 1 is memory of device 1, used on device 0");
  CFAA_CUDA_CHECK(cudaFree(other));
}

struct Views {
  const float* in;  // (n)
  float* out;       // (n)
  int n;
};
struct ListedViews : Views {
  template <class F>
  void for_each_pointer(F f) const {
    f(in);
    f(out);
  }
};
template <typename V>
__global__ void copy_views(V views) {
  views.out[threadIdx.x] = views.in[threadIdx.x];
}

TEST_F(Strictness, WrongPointersInAStructureAreFound) {
  std::vector<float> host(32);
  DeviceBuffer<float> out(32);
  float* gone = nullptr;
  CFAA_CUDA_CHECK(cudaMalloc(&gone, 256));
  CFAA_CUDA_CHECK(cudaFree(gone));

  EXPECT_DEATH(launch(nullptr, copy_views<Views>, 1, 32, 0, Views{gone, out, 32}),
               "byte 0 of argument 0 points to freed device memory");
  EXPECT_DEATH(
      launch(nullptr, copy_views<ListedViews>, 1, 32, 0, ListedViews{{host.data(), out, 32}}),
      "a pointer in argument 0 is host memory");
}

__device__ float sum_down(int n) {
  volatile float row[64];
  row[n % 64] = static_cast<float>(n);
  return n == 0 ? 0.0f : sum_down(n - 1) + row[n % 64];
}
__global__ void deep_calls(float* out, int n) {
  out[0] = sum_down(n);
}

TEST_F(Strictness, AThreadThatRunsOutOfStackIsFound) {
  DeviceBuffer<float> out(1);
  const auto run = [&](int depth) {
    launch(nullptr, deep_calls, 1, 1, 0, out.data(), depth);
    return out.values()[0];
  };

  EXPECT_EQ(run(100), 5050.0f);
  EXPECT_DEATH(run(100000), "kernel cfaa::cuda::deep_calls .* ran out of stack");
}

__global__ void follow_null(float* out) {
  *out = 1.0f;
}

TEST_F(Strictness, ANullPointerIsNamed) {
  EXPECT_DEATH(
      {
        launch(nullptr, follow_null, 1, 1, 0, nullptr);
        finish();
      },
      "kernel cfaa::cuda::follow_null .* wrote address .*null pointer|null pointer of type");
}

// Launch limits.

TEST_F(Strictness, ALaunchWithTooMuchSharedMemoryIsRefused) {
  DeviceBuffer<float> out(64);
  const auto with = [&](std::size_t bytes) {
    launch(nullptr, sum_unwritten, 1, 64, bytes, out.data());
  };
  const auto refused = [&](std::size_t bytes) {
    try {
      with(bytes);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };

  EXPECT_NE(refused(164 * 1024).find("sum_unwritten"), std::string::npos);
  EXPECT_NE(refused(164 * 1024).find("167936 bytes of dynamic shared memory"), std::string::npos);
  emulator::set_architecture(emulator::Architecture::sm_120);
  EXPECT_NE(refused(100 * 1024), "");
  emulator::set_architecture(emulator::Architecture::sm_90);
  EXPECT_NE(refused(228 * 1024), "");

  // Without cudaFuncSetAttribute, which launch() calls, the limit is 48 KiB.
  emulator::set_architecture(emulator::Architecture::sm_80);
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = 64;
  config.dynamicSmemBytes = 49 * 1024;
  EXPECT_EQ(cudaLaunchKernelEx(&config, write_first_block_only, out.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  config.dynamicSmemBytes = 0;
  config.blockDim = 1025;
  EXPECT_EQ(cudaLaunchKernelEx(&config, write_first_block_only, out.data()),
            cudaErrorInvalidConfiguration);
  config.blockDim = 32;
  config.gridDim = dim3(1, 65536);
  EXPECT_EQ(cudaLaunchKernelEx(&config, write_first_block_only, out.data()),
            cudaErrorInvalidConfiguration);
  cudaGetLastError();
}

TEST_F(Strictness, MemoryBeyondTheDeviceIsRefused) {
  emulator::set_memory_limit(1 << 20);
  void* p = nullptr;

  EXPECT_EQ(cudaMalloc(&p, 2 << 20), cudaErrorMemoryAllocation);
  EXPECT_EQ(p, nullptr);
  emulator::set_memory_limit(std::size_t{8} << 30);
  cudaGetLastError();
}

// Libraries.

TEST_F(Strictness, ALeadingDimensionInRowMajorOrderIsRefusedByCublas) {
  const int m = 5, n = 7, k = 3;
  DeviceBuffer<float> a(m * k), b(k * n), c(m * n);
  cublasHandle_t blas;
  CFAA_CUDA_CHECK(cublasCreate(&blas));
  const float one = 1, zero = 0;
  const auto gemm = [&](int rows, int columns, int lda, int ldb, int ldc) {
    return cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, rows, columns, k, &one, a, lda, b, ldb,
                       &zero, c, ldc);
  };

  // The leading dimension of a row-major matrix is its number of columns.
  EXPECT_EQ(gemm(m, n, k, n, n), CUBLAS_STATUS_INVALID_VALUE);
  // Where columns > rows the leading dimension is legal, but the matrix no longer fits its buffer.
  EXPECT_DEATH(
      gemm(m, n, m, n, n),
      "cublasSgemm: (B|C) needs [0-9]+ bytes, which run [0-9]+ bytes past the end of a buffer");
  EXPECT_EQ(gemm(m, n, m, k, m), CUBLAS_STATUS_SUCCESS);
  finish();
  CFAA_CUDA_CHECK(cublasDestroy(blas));
}

TEST_F(Strictness, AWrongLdaIsRefusedByCusolver) {
  const int n = 4;
  DeviceBuffer<double> a(n * n), w(n), work(1024);
  DeviceBuffer<int> info(1);
  cusolverDnHandle_t solver;
  CFAA_CUDA_CHECK(cusolverDnCreate(&solver));

  EXPECT_EQ(cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_LOWER, n, a, n - 1, work, 1024, info),
            CUSOLVER_STATUS_INVALID_VALUE);
  EXPECT_DEATH(cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_LOWER, n, a, n + 1, work, 1024, info),
               "cusolverDnDpotrf: A needs 152 bytes, which run 24 bytes past the end");
  EXPECT_EQ(cusolverDnDsyevd(solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, a, n, w,
                             work, 8, info),
            CUSOLVER_STATUS_INVALID_VALUE);
  CFAA_CUDA_CHECK(cusolverDnDestroy(solver));
}

TEST_F(Strictness, HostPointersAreRefusedByTheLibraries) {
  std::vector<float> host(16);
  DeviceBuffer<float> device(16);
  cublasHandle_t blas;
  CFAA_CUDA_CHECK(cublasCreate(&blas));
  const float one = 1;

  EXPECT_DEATH(cublasSaxpy(blas, 16, &one, host.data(), 1, device, 1),
               "cublasSaxpy: x is host memory, not device memory");
  EXPECT_DEATH(cublasSaxpy(blas, 16, device, device, 1, device, 1),
               "alpha is device memory, but the pointer mode is host");
  CFAA_CUDA_CHECK(cublasDestroy(blas));
}

TEST_F(Strictness, CopiesInTheWrongDirectionOrTooLongAreRefused) {
  std::vector<float> host(32);
  DeviceBuffer<float> device(16);

  EXPECT_EQ(cudaMemcpy(device, host.data(), 64, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(device, host.data(), 128, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(device, 0, 65), cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_F(Strictness, AGraphReplayedAfterAFreeIsFound) {
  DeviceBuffer<float> out(64);
  float* in = nullptr;
  CFAA_CUDA_CHECK(cudaMalloc(&in, 256));
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CFAA_CUDA_CHECK(cudaStreamCreate(&stream));
  CFAA_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launch(stream, copy_all, 1, 32, 0, in, out.data(), 64);
  CFAA_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CFAA_CUDA_CHECK(cudaGraphInstantiate(&exec, graph));
  CFAA_CUDA_CHECK(cudaFree(in));

  EXPECT_DEATH(
      {
        CFAA_CUDA_CHECK(cudaGraphLaunch(exec, stream));
        CFAA_CUDA_CHECK(cudaStreamSynchronize(stream));
      },
      "kernel cfaa::cuda::copy_all, replayed from a graph: argument 0 points to freed device "
      "memory");
  CFAA_CUDA_CHECK(cudaGraphExecDestroy(exec));
  CFAA_CUDA_CHECK(cudaGraphDestroy(graph));
  CFAA_CUDA_CHECK(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace cfaa::cuda
