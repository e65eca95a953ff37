#pragma once

// A step captured once and replayed: what it queues on the device's stream becomes CUDA graphs, so
// that a replay costs the host one call per segment instead of one per kernel.
//
//   Graph step(device);
//   step.capture([&] { loss(context, ...); });   // queues nothing, runs nothing
//   step.replay();                               // as often as wanted
//
// Addresses and scalars are those of the capture: run the step once before, so that the arena has
// settled, and keep what changes from step to step in device memory.
//
// Library calls are made through library_call. The driver may refuse to capture one (cuSOLVER's
// are not promised to be capturable). The capture then starts again, ends a segment before that
// call and begins another after it; the call itself runs in stream order between the two. The log
// says so once per call.

#include <functional>
#include <string>
#include <vector>

#include "cuda/device.h"

namespace cfaa::cuda {

class Graph {
 public:
  explicit Graph(Device& device);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // `step` may be called several times, queues work on device.stream() only and does not wait for
  // it. What was captured before is dropped. An exception of `step` leaves the graph empty.
  void capture(const std::function<void()>& step);

  void replay();

  bool empty() const { return segments_.empty(); }
  std::size_t captured_segments() const;       // launched as a graph each
  std::size_t calls_between_segments() const;  // made by the host each

 private:
  struct Segment {
    cudaGraphExec_t graph = nullptr;  // or
    std::function<void()> call;
  };

  friend void library_call(Device&, const std::string&, std::function<void()>);
  void record(const std::string& name, std::function<void()> call);
  void begin_segment();
  void end_segment();
  void clear() noexcept;

  Device& device_;
  std::vector<Segment> segments_;
  std::vector<std::string> refused_;  // names of calls that must stand between segments
};

// Makes a library call on the device's stream. `name` says in the log which. `call` must throw when
// the library refuses, may be kept to be made again at every replay, and so owns what it needs or
// points to memory that outlives the graph.
void library_call(Device& device, const std::string& name, std::function<void()> call);

}  // namespace cfaa::cuda
