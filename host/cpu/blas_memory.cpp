#include "host/cpu/blas_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <vector>

#include "host/core/error.h"

// Of OpenBLAS, which declares them in no installed header. Freed buffers stay with OpenBLAS.
extern "C" void* blas_memory_alloc(int position);
extern "C" void blas_memory_free(void* buffer);

namespace cfaa::cpu {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{128} << 20;  // the largest of any x86-64 kernels

bool would_fit(std::size_t bytes) {
  void* const room = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  ::munmap(room, bytes);
  return true;
}

}  // namespace

bool address_space_is_limited() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

void take_blas_buffers(int threads) {
  if (!address_space_is_limited()) return;
  const std::size_t bytes = static_cast<std::size_t>(threads) * kBufferBytes;
  if (!would_fit(bytes)) {
    throw Error(
        fmt::format("the address space is limited (ulimit -v), and matrix products on {} threads "
                    "need {} MiB of it; raise the limit, or use fewer --threads",
                    threads, bytes >> 20));
  }
  std::vector<void*> buffers;
  for (int i = 0; i < threads; ++i) buffers.push_back(blas_memory_alloc(0));
  for (void* const buffer : buffers) blas_memory_free(buffer);
}

}  // namespace cfaa::cpu
