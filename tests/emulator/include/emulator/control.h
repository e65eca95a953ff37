#pragma once
// Switches of the emulated device that a real GPU does not have. Only tests include this, and
// cuda/device.cpp for its arena; kernels and the rest of cuda/ see nothing but CUDA's own names.
//
// Environment variables set the same things before the first call:
//   CFAA_EMULATOR_SEED=7          order in which threads, blocks and streams run
//   CFAA_EMULATOR_ARCH=sm_90      launch limits: sm_80 (default), sm_90, sm_120
//   CFAA_EMULATOR_THREADS=2       host threads that run blocks (default: all)
//   CFAA_EMULATOR_ARENA=merged    scratch as on a GPU; pieces (default): watched piece by piece
//   CFAA_EMULATOR_SHARED_CHECKS=0 leave out the per-element checks of shared memory (for speed)

#include <cstddef>
#include <cstdint>

namespace emulator {

enum class Architecture { sm_80, sm_90, sm_120 };

// The limits of later launches and the answers of cudaGetDeviceProperties.
void set_architecture(Architecture architecture);

// Less shared memory a block than the architecture has, for tests of what does not fit.
void set_shared_memory(std::size_t bytes);

// Threads of a block, blocks of a grid and independent streams run in an order drawn from `seed`.
void set_seed(std::uint64_t seed);

// How many host threads run blocks. 1 makes even atomics on global memory reproducible.
void set_threads(int threads);

// Uninitialised reads, bounds and races of Shared<T>. On unless told otherwise.
void set_shared_checks(bool on);

// Devices made from now on keep their scratch as a GPU does: in blocks that are merged into one and
// freed, so that an address kept past its time is found. Otherwise every piece of scratch is a
// buffer of its own that is never freed, and overruns and uninitialised reads are found.
void set_merged_arena(bool on);
bool merged_arena();

// From now on a cuBLAS (TensorRT) call on a capturing stream fails with the library's internal
// error and invalidates the capture, as some drivers do.
void set_library_capture_refused(bool cublas, bool tensorrt = false);

// From now on TensorRT builds no engine whose attention is told the keys' lengths.
void set_attention_lengths_refused(bool refused);

// What getInferLibVersion answers, and engines are marked with: 110100 (11.1.0) unless told
// otherwise.
void set_tensorrt_version(int version);

// The size of each device's memory; cudaMalloc beyond it gives cudaErrorMemoryAllocation.
void set_memory_limit(std::size_t bytes);

// What happened since the last reset. A step that must neither allocate nor synchronise is tested
// by the differences of two snapshots.
struct Counters {
  std::uint64_t allocations = 0;       // cudaMalloc, cudaMallocAsync, cudaMallocHost
  std::uint64_t launches = 0;          // kernel launches enqueued or captured
  std::uint64_t library_calls = 0;     // cuBLAS, cuSOLVER, TensorRT work enqueued or captured
  std::uint64_t copies = 0;            // copies and fills enqueued or captured
  std::uint64_t synchronisations = 0;  // calls that made the host wait for a device
  std::uint64_t kernels_run = 0;       // kernels executed, graph replays included
  std::uint64_t graph_launches = 0;
  std::uint64_t engines_built = 0;  // by TensorRT
};
Counters counters();

// Bytes of device memory allocated and not freed, all devices together.
std::size_t live_device_bytes();

}  // namespace emulator
