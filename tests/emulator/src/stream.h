#pragma once
// Streams, events and graphs. A stream is a queue that nobody works on until somebody must wait for
// it: what the host forgot to wait for has not happened yet, so the mistake shows every time.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime_api.h"

namespace emulator {

// Device memory that an operation will touch. Checked when it is enqueued and when it runs: a graph
// may be replayed after a buffer was freed.
struct PointerUse {
  const void* address;
  std::size_t bytes;
  std::string what;             // "argument 2", "A"
  bool pinned_allowed = false;  // host memory the device can reach will do
  bool certain = true;          // false: only complain about freed memory and other devices
  bool written = false;         // otherwise read, as far as is known
};

// Host memory that a copy reads or writes when it runs, later than the call.
struct HostUse {
  const void* address = nullptr;
  std::size_t bytes = 0;
};

struct Operation {
  std::string name;  // "kernel axpy", "cublasSgemm", "cudaMemcpyAsync"
  int device = 0;
  std::vector<PointerUse> pointers;
  HostUse pinned;
  std::function<void()> run;
};
using OperationPtr = std::shared_ptr<const Operation>;

struct GraphNode {
  OperationPtr operation;
  std::vector<std::size_t> after;  // nodes that come first
};

struct Capture {
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool invalidated = false;
  std::vector<GraphNode> nodes;
  std::set<cudaStream_t> streams;  // that joined by an event
};

// A point in a stream: everything enqueued up to `number`.
struct StreamPoint {
  cudaStream_t stream;
  std::uint64_t number;
};

// What comes before an operation whatever the device does: of each stream, up to which number.
using Before = std::map<cudaStream_t, std::uint64_t>;

struct QueuedOperation {
  OperationPtr operation;  // null: only waits
  std::vector<StreamPoint> after;
};

// The stream itself for a handle (null and cudaStreamLegacy are the default stream), or null for a
// handle that is not alive.
cudaStream_t resolve(cudaStream_t stream);

// Enqueues, or records when the stream is capturing. Fails the program when a pointer is wrong.
cudaError_t enqueue(cudaStream_t stream, Operation operation);

bool is_capturing(cudaStream_t stream);
void invalidate_capture(cudaStream_t stream);

// What a call that CUDA forbids during capture (cudaMalloc and friends) must return.
cudaError_t unsafe_call(const char* name);

// Runs the stream, and all it waits for, up to now.
void drain(cudaStream_t stream);
void drain_device(int device);
// All that a synchronous call on the default stream waits for. Fails in the presence of a capture.
cudaError_t drain_blocking_streams(int device);

// Runs an operation at once.
void run_now(const Operation& operation);

int device_of_stream(cudaStream_t stream);

}  // namespace emulator
