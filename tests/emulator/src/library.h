#pragma once
// What the stand-ins of cuBLAS and cuSOLVER share: a call is checked as the library checks it, then
// every matrix it will touch must lie within a buffer of the handle's device, then it is enqueued
// on the handle's stream and runs on the host's BLAS or LAPACK.

#include <string>
#include <utility>
#include <vector>

#include "fail.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"

namespace emulator {

// Bytes from the first to the last element of a column-major matrix.
template <typename T>
std::size_t matrix_bytes(long long rows, long long columns, long long leading) {
  if (rows <= 0 || columns <= 0) return 0;
  return static_cast<std::size_t>((columns - 1) * leading + rows) * sizeof(T);
}

template <typename T>
std::size_t vector_bytes(long long n, long long increment) {
  if (n <= 0) return 0;
  return static_cast<std::size_t>((n - 1) * (increment < 0 ? -increment : increment) + 1) *
         sizeof(T);
}

class LibraryCall {
 public:
  LibraryCall(const char* name, cudaStream_t stream) : stream_(stream) { operation_.name = name; }

  const char* name() const { return operation_.name.c_str(); }
  cudaStream_t stream() const { return stream_; }

  // The library's own check: false, with the reason on stderr, when `holds` is false.
  bool require(bool holds, const char* what) {
    if (!holds) explain("%s: %s", name(), what);
    return holds;
  }
  bool require_leading(const char* matrix, long long leading, long long rows) {
    if (leading >= (rows > 1 ? rows : 1)) return true;
    explain("%s: the leading dimension of %s is %lld, but a column-major %s has %lld rows", name(),
            matrix, leading, matrix, rows);
    return false;
  }

  void uses(const char* what, const void* p, std::size_t bytes) {
    if (bytes > 0) operation_.pointers.push_back({p, bytes, what});
  }
  // Through a pointer to what is not const the call may write.
  void uses(const char* what, void* p, std::size_t bytes) {
    if (bytes > 0) operation_.pointers.push_back({p, bytes, what, false, true, true});
  }

  cudaError_t enqueue_work(std::function<void()> work) {
    ++settings().counters.library_calls;
    operation_.run = std::move(work);
    return enqueue(stream_, std::move(operation_));
  }

 private:
  cudaStream_t stream_;
  Operation operation_;
};

// The pointers of a batch lie in device memory, so each is checked while the call runs.
inline void check_batch_matrix(const std::string& name, const char* array, int index,
                               const void* matrix, std::size_t bytes, int device) {
  const std::string why = why_not_device_memory(matrix, bytes, device, false);
  if (bytes > 0 && !why.empty()) {
    fail("%s: %s[%d] %s", name.c_str(), array, index, why.c_str());
  }
}

}  // namespace emulator
