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
// Library calls are made through library_call. One that must never be captured ends a segment, runs
// in stream order behind it, and another segment begins. cuSOLVER's are of that kind: NVIDIA does
// not promise that they can be captured, and a capture that succeeds may still be wrong. Where the
// driver refuses any other call, the capture starts again with that call between two segments too.
// The log says so once per call.

#include <functional>
#include <string>
#include <vector>

#include "cuda/device.h"

namespace cfaa::cuda {

// Whether the driver may put a library call into a graph.
enum class Capturing { allowed, never };

class Graph {
 public:
  explicit Graph(Device& device);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // `step` may be called several times, queues work on device.stream() only, or on a branch of it
  // that it joins again, and does not wait for it. What was captured before is dropped. An
  // exception of `step` leaves the graph empty.
  void capture(const std::function<void()>& step);

  void replay();

  // Called by the step, at most once: a segment ends here, so that what was computed so far can be
  // looked at between the two halves of a replay.
  void boundary();
  void replay_to_boundary();
  void replay_from_boundary();
  // From now on nobody looks there: the graphs on both sides of it, as they were captured, become
  // one.
  void join_at_boundary();

  // Whether no call of the step is known to stand between two graphs. Where one does, all that was
  // queued must be on one stream.
  bool is_whole() const { return refused_.empty(); }

  bool empty() const { return segments_.empty(); }
  std::size_t captured_segments() const;       // launched as a graph each
  std::size_t calls_between_segments() const;  // made by the host each

 private:
  struct Segment {
    cudaGraphExec_t graph = nullptr;  // made from
    cudaGraph_t captured = nullptr;   // or
    std::function<void()> call;
  };

  friend void library_call(Device&, const std::string&, Capturing, std::function<void()>);
  void record(const std::string& name, Capturing capturing, std::function<void()> call);
  void begin_segment();
  void end_segment();
  void replay(std::size_t first, std::size_t last);
  static void destroy(const Segment& segment) noexcept;
  void clear() noexcept;

  Device& device_;
  std::vector<Segment> segments_;
  std::vector<Segment> joined_;               // those that became one: launches may be under way
  std::size_t boundary_ = 0;                  // segments before it
  std::vector<std::function<void()>> owned_;  // captured calls: a node may read what they hold
  std::vector<std::string> refused_;          // names of calls that must stand between segments
};

// Makes a library call on the device's stream. `name` says in the log which. `call` must throw when
// the library refuses, is kept as long as the graph and may be made again at every replay: it owns
// what it needs on the host, and points to device memory that outlives the graph.
void library_call(Device& device, const std::string& name, Capturing capturing,
                  std::function<void()> call);

}  // namespace cfaa::cuda
