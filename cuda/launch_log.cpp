#include "cuda/launch_log.h"

#include <atomic>
#include <mutex>

#include "cuda/launch.h"

namespace cfaa::cuda {
namespace {

struct Entry {
  const void* kernel;
  int threads;
  std::size_t dynamic_shared_bytes;
};

std::atomic<bool> watching{false};
std::mutex mutex;
std::vector<Entry> entries;

}  // namespace

void watch_launches() {
  watching = true;
}

void note_launch(const void* kernel, dim3 block, std::size_t dynamic_shared_bytes) {
  if (!watching.load(std::memory_order_relaxed)) return;
  const int threads = static_cast<int>(block.x * block.y * block.z);
  const std::lock_guard<std::mutex> lock(mutex);
  for (const Entry& e : entries) {
    if (e.kernel == kernel && e.threads == threads &&
        e.dynamic_shared_bytes == dynamic_shared_bytes) {
      return;
    }
  }
  entries.push_back({kernel, threads, dynamic_shared_bytes});
}

std::vector<LaunchedKernel> launched_kernels() {
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<LaunchedKernel> kernels;
  int device = 0, most_threads = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
  for (const Entry& e : entries) {
    cudaFuncAttributes attributes{};
    int blocks = 0;
    if (cudaFuncGetAttributes(&attributes, e.kernel) != cudaSuccess) continue;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, e.kernel, e.threads,
                                                  e.dynamic_shared_bytes);
    kernels.push_back(
        {kernel_name(e.kernel), attributes.numRegs,
         attributes.sharedSizeBytes + e.dynamic_shared_bytes, e.threads,
         most_threads > 0 ? static_cast<double>(blocks) * e.threads / most_threads : 0});
  }
  return kernels;
}

}  // namespace cfaa::cuda
