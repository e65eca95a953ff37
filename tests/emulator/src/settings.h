#pragma once
// The chosen architecture, the switches of emulator/control.h, and the last CUDA error.

#include <atomic>
#include <cstdint>
#include <mutex>

#include "cuda_runtime_api.h"
#include "emulator/control.h"

namespace emulator {

inline constexpr int device_count = 2;

struct Limits {
  const char* name;
  int major, minor;
  int max_threads;             // per block
  std::size_t shared_default;  // per block without asking
  std::size_t shared_optin;    // per block after cudaFuncSetAttribute
  std::size_t shared_per_multiprocessor;
  int max_threads_per_multiprocessor;
  int max_blocks_per_multiprocessor;
  int multiprocessors;
  int l2_bytes;
  int single_to_double;  // speed of float over that of double
};

struct Settings {
  Settings();  // reads the environment

  Limits limits;
  std::atomic<std::uint64_t> seed{1};
  int threads;
  bool shared_checks = true;
  bool merged_arena = false;
  bool refuse_blas_capture = false;
  bool refuse_tensorrt_capture = false;
  bool refuse_attention_lengths = false;
  int tensorrt_version = 110100;
  std::size_t memory_limit = std::size_t{8} << 30;
  Counters counters;
};
Settings& settings();

// One lock for the whole runtime: every API call takes it, so work runs one operation at a time.
std::recursive_mutex& runtime_lock();
using Locked = std::lock_guard<std::recursive_mutex>;

// Remembers `error` for cudaGetLastError and returns it.
cudaError_t remember(cudaError_t error);

int current_device();

}  // namespace emulator
