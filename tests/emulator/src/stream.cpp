#include "stream.h"

#include <algorithm>
#include <map>

#include "fail.h"
#include "memory.h"
#include "random.h"
#include "settings.h"

struct CUstream_st {
  int device = 0;
  bool blocking = true;
  bool alive = true;
  bool legacy = false;
  std::deque<emulator::QueuedOperation> queue;
  std::uint64_t enqueued = 0;  // number of the last operation in the queue
  std::uint64_t done = 0;
  emulator::Before before;  // the next operation
  std::shared_ptr<emulator::Capture> capture;
  std::vector<std::size_t> frontier;  // nodes of the capture that the next one comes after
};

struct CUevent_st {
  bool alive = true;
  bool timing = true;
  bool recorded = false;
  emulator::StreamPoint point = {nullptr, 0};
  emulator::Before before;                     // it and what comes before it
  std::shared_ptr<emulator::Capture> capture;  // when recorded in one
  std::vector<std::size_t> frontier;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

struct CUgraph_st {
  std::vector<emulator::GraphNode> nodes;
};

struct CUgraphExec_st {
  std::vector<emulator::GraphNode> nodes;
};

namespace emulator {
namespace {

// Who touched a buffer last.
struct Accesses {
  struct By {
    std::uint64_t number = 0;
    std::string name;
  };
  std::map<cudaStream_t, By> writers, readers;
};

struct Streams {
  std::vector<std::unique_ptr<CUstream_st>> all;  // dead ones too: events may point at them
  CUstream_st* legacy[device_count];
  std::vector<std::shared_ptr<Capture>> captures;
  std::set<cudaEvent_t> events;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> executables;
  Before waited_for;                         // by the host
  std::map<const void*, Accesses> accesses;  // by the buffer's start
  int depth = 0;                             // of nested runs
  std::uint64_t operations = 0;

  Streams() {
    for (int device = 0; device < device_count; ++device) {
      all.push_back(std::make_unique<CUstream_st>());
      legacy[device] = all.back().get();
      legacy[device]->device = device;
      legacy[device]->legacy = true;
    }
  }
};

Streams& streams() {
  static Streams* instance = new Streams;  // outlives statics that still synchronise
  return *instance;
}

// While one lives, device memory is accessible; when the last goes it is not.
struct Working {
  explicit Working(int device) {
    ++streams().depth;
    open_devices(1u << device);
  }
  ~Working() {
    if (--streams().depth == 0) open_devices(0);
  }
};

void check_pointers(const Operation& operation, const char* when) {
  for (const PointerUse& use : operation.pointers) {
    if (use.address == nullptr && use.bytes == 0) continue;
    if (!use.certain && device_of(use.address) < 0) continue;
    if (!use.certain && find_allocation(use.address) == nullptr) continue;
    const std::string why =
        why_not_device_memory(use.address, use.bytes, operation.device, use.pinned_allowed);
    if (!why.empty()) {
      fail("%s%s: %s %s", operation.name.c_str(), when, use.what.c_str(), why.c_str());
    }
  }
}

void run_operation(const Operation& operation, const char* when) {
  open_devices(1u << operation.device);
  check_pointers(operation, when);
  const HostUse& host = operation.pinned;
  if (host.bytes > 0 && !is_pinned(host.address, host.bytes)) {
    fail("%s%s: its pinned host memory was freed", operation.name.c_str(), when);
  }
  operation.run();
  check_slack(operation.name);
}

void run_until(CUstream_st& stream, std::uint64_t number) {
  while (stream.done < number && !stream.queue.empty()) {
    QueuedOperation next = std::move(stream.queue.front());
    stream.queue.pop_front();
    for (const StreamPoint& point : next.after) run_until(*point.stream, point.number);
    if (next.operation) run_operation(*next.operation, "");
    ++stream.done;
  }
}

// Nodes in a random order that respects what comes after what.
void run_graph(const std::vector<GraphNode>& nodes) {
  Random random(settings().seed ^ ++streams().operations);
  std::vector<std::size_t> missing(nodes.size()), ready;
  std::vector<std::vector<std::size_t>> followers(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].after.size();
    if (missing[i] == 0) ready.push_back(i);
    for (std::size_t before : nodes[i].after) followers[before].push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[random.below(static_cast<std::uint32_t>(ready.size()))], ready.back());
    const std::size_t i = ready.back();
    ready.pop_back();
    if (nodes[i].operation) run_operation(*nodes[i].operation, ", replayed from a graph");
    for (std::size_t follower : followers[i]) {
      if (--missing[follower] == 0) ready.push_back(follower);
    }
  }
}

void add_node(CUstream_st& stream, OperationPtr operation) {
  auto& nodes = stream.capture->nodes;
  nodes.push_back({std::move(operation), stream.frontier});
  stream.frontier = {nodes.size() - 1};
}

void join(Before& before, const Before& more) {
  for (const auto& [stream, number] : more) {
    std::uint64_t& known = before[stream];
    known = std::max(known, number);
  }
}

// All of a stream so far, and what came before it.
Before all_of(const CUstream_st& stream) {
  Before before = stream.before;
  before[const_cast<cudaStream_t>(&stream)] = stream.enqueued;
  return before;
}

void host_waited_for(const Before& before) {
  join(streams().waited_for, before);
}

// What is told apart of the memory that operations use: allocations, or where the arena is one,
// whose parts may belong to several streams, places in them.
const void* buffer_of(const PointerUse& use) {
  if (!use.certain || use.address == nullptr || device_of(use.address) < 0) return nullptr;
  const Allocation* allocation = find_allocation(use.address);
  if (allocation == nullptr || !allocation->live) return nullptr;
  return merged_arena() ? use.address : reinterpret_cast<const void*>(allocation->base);
}

// Fails where another stream touches the same buffer, one of both writes it, and nothing says which
// comes first.
void check_order(const CUstream_st& stream, const Operation& operation) {
  const auto this_stream = const_cast<cudaStream_t>(&stream);
  const auto check = [&](const PointerUse& use, const std::map<cudaStream_t, Accesses::By>& others,
                         const char* did) {
    for (const auto& [other, by] : others) {
      if (other == this_stream) continue;
      const auto known = stream.before.find(other);
      if (known != stream.before.end() && known->second >= by.number) continue;
      fail("%s: %s is %s by %s on another stream, and no event says which of them comes first",
           operation.name.c_str(), use.what.c_str(), did, by.name.c_str());
    }
  };
  for (const PointerUse& use : operation.pointers) {
    const void* buffer = buffer_of(use);
    if (buffer == nullptr) continue;
    Accesses& accesses = streams().accesses[buffer];
    check(use, accesses.writers, "written");
    if (use.written) check(use, accesses.readers, "read");
    auto& mine = use.written ? accesses.writers : accesses.readers;
    mine[this_stream] = {stream.enqueued + 1, operation.name};
  }
}

// The same for the nodes of a graph.
void check_graph_order(const std::vector<GraphNode>& nodes) {
  std::vector<std::vector<bool>> comes_after(nodes.size(), std::vector<bool>(nodes.size()));
  std::map<const void*, std::vector<std::pair<std::size_t, const PointerUse*>>> uses;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::size_t before : nodes[i].after) {
      comes_after[i][before] = true;
      for (std::size_t j = 0; j < before; ++j) {
        if (comes_after[before][j]) comes_after[i][j] = true;
      }
    }
    if (!nodes[i].operation) continue;
    for (const PointerUse& use : nodes[i].operation->pointers) {
      const void* buffer = buffer_of(use);
      if (buffer == nullptr) continue;
      for (const auto& [j, other] : uses[buffer]) {
        if (j == i || comes_after[i][j] || !(use.written || other->written)) continue;
        fail(
            "%s and %s of a graph: %s of the one is %s of the other, and nothing says which of "
            "them comes first",
            nodes[j].operation->name.c_str(), nodes[i].operation->name.c_str(), other->what.c_str(),
            use.what.c_str());
      }
      uses[buffer].push_back({i, &use});
    }
  }
}

std::vector<StreamPoint> implicit_order(const CUstream_st& stream) {
  std::vector<StreamPoint> after;
  if (stream.legacy) {
    for (const auto& other : streams().all) {
      if (other->device == stream.device && other->blocking && other->alive &&
          other.get() != &stream) {
        after.push_back({other.get(), other->enqueued});
      }
    }
  } else if (stream.blocking) {
    CUstream_st* legacy = streams().legacy[stream.device];
    after.push_back({legacy, legacy->enqueued});
  }
  return after;
}

// What a whole graph touches. Written wins: one use a buffer is enough.
std::vector<PointerUse> uses_of(const std::vector<GraphNode>& nodes) {
  std::map<const void*, PointerUse> uses;
  for (const GraphNode& node : nodes) {
    if (!node.operation) continue;
    for (const PointerUse& use : node.operation->pointers) {
      const void* buffer = buffer_of(use);
      if (buffer == nullptr) continue;
      PointerUse& whole = uses[buffer];
      const bool written = whole.written || use.written;
      whole = {buffer, 0, use.what + " of " + node.operation->name, true, true, written};
    }
  }
  std::vector<PointerUse> all;
  for (auto& [buffer, use] : uses) all.push_back(std::move(use));
  return all;
}

// The default stream cannot be used while a stream that it waits for is being captured.
cudaError_t implicit_capture_error(int device) {
  for (const auto& capture : streams().captures) {
    if (capture->origin->blocking && capture->origin->device == device) {
      capture->invalidated = true;
      explain("the default stream was used while a blocking stream is captured");
      return cudaErrorStreamCaptureImplicit;
    }
  }
  return cudaSuccess;
}

}  // namespace

cudaStream_t resolve(cudaStream_t stream) {
  Streams& s = streams();
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    return s.legacy[current_device()];
  }
  for (const auto& known : s.all) {
    if (known.get() == stream) return known->alive ? stream : nullptr;
  }
  return nullptr;
}

int device_of_stream(cudaStream_t stream) {
  return stream->device;
}

bool is_capturing(cudaStream_t stream) {
  return stream->capture != nullptr;
}

void invalidate_capture(cudaStream_t stream) {
  if (stream->capture) stream->capture->invalidated = true;
}

cudaError_t unsafe_call(const char* name) {
  for (const auto& capture : streams().captures) {
    if (capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal &&
         capture->thread == std::this_thread::get_id())) {
      capture->invalidated = true;
      explain("%s is not allowed while a stream is being captured", name);
      return remember(cudaErrorStreamCaptureUnsupported);
    }
  }
  return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t stream, Operation operation) {
  CUstream_st& target = *stream;
  operation.device = target.device;
  check_pointers(operation, "");
  auto shared = std::make_shared<const Operation>(std::move(operation));
  if (target.capture) {
    if (target.capture->invalidated) return remember(cudaErrorStreamCaptureInvalidated);
    add_node(target, std::move(shared));
    return cudaSuccess;
  }
  if (target.legacy) {
    if (cudaError_t error = implicit_capture_error(target.device)) return remember(error);
  }
  std::vector<StreamPoint> after = implicit_order(target);
  join(target.before, streams().waited_for);
  for (const StreamPoint& point : after) join(target.before, all_of(*point.stream));
  check_order(target, *shared);
  target.queue.push_back({std::move(shared), std::move(after)});
  ++target.enqueued;
  return cudaSuccess;
}

void drain(cudaStream_t stream) {
  ++settings().counters.synchronisations;
  host_waited_for(all_of(*stream));
  Working working(stream->device);
  run_until(*stream, stream->enqueued);
}

void drain_device(int device) {
  ++settings().counters.synchronisations;
  Working working(device);
  Random random(settings().seed ^ ++streams().operations);
  for (;;) {  // one operation of a random stream at a time
    std::vector<CUstream_st*> waiting;
    for (const auto& stream : streams().all) {
      if (stream->device == device && !stream->queue.empty()) waiting.push_back(stream.get());
    }
    if (waiting.empty()) break;
    CUstream_st& stream = *waiting[random.below(static_cast<std::uint32_t>(waiting.size()))];
    run_until(stream, stream.done + 1);
  }
  for (const auto& stream : streams().all) {
    if (stream->device == device) host_waited_for(all_of(*stream));
  }
  std::erase_if(streams().accesses,
                [&](const auto& entry) { return device_of(entry.first) == device; });
}

cudaError_t drain_blocking_streams(int device) {
  if (cudaError_t error = implicit_capture_error(device)) return error;
  CUstream_st* legacy = streams().legacy[device];
  std::vector<StreamPoint> after = implicit_order(*legacy);
  for (const StreamPoint& point : after) join(legacy->before, all_of(*point.stream));
  legacy->queue.push_back({nullptr, std::move(after)});
  ++legacy->enqueued;
  drain(legacy);
  return cudaSuccess;
}

void run_now(const Operation& operation) {
  Working working(operation.device);
  run_operation(operation, "");
}

}  // namespace emulator

using namespace emulator;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* pStream) {
  return cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  Locked locked(runtime_lock());
  auto stream = std::make_unique<CUstream_st>();
  stream->device = current_device();
  stream->blocking = (flags & cudaStreamNonBlocking) == 0;
  *pStream = stream.get();
  streams().all.push_back(std::move(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr || target->legacy) return remember(cudaErrorInvalidResourceHandle);
  if (target->capture) target->capture->invalidated = true;
  drain(target);
  target->alive = false;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (target->capture) {
    target->capture->invalidated = true;
    explain("cudaStreamSynchronize is not allowed on a stream that is being captured");
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  if (target->legacy) return remember(drain_blocking_streams(target->device));
  drain(target);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (target->capture) {
    target->capture->invalidated = true;
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  // Time passes between two queries: one operation's worth.
  Working working(target->device);
  if (target->queue.empty()) {
    host_waited_for(all_of(*target));
    return cudaSuccess;
  }
  run_until(*target, target->done + 1);
  return cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize(void) {
  Locked locked(runtime_lock());
  if (cudaError_t error = unsafe_call("cudaDeviceSynchronize")) return error;
  drain_device(current_device());
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  Locked locked(runtime_lock());
  *event = new CUevent_st;
  (*event)->timing = (flags & cudaEventDisableTiming) == 0;
  streams().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Locked locked(runtime_lock());
  if (streams().events.erase(event) == 0) return remember(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr || streams().events.count(event) == 0) {
    return remember(cudaErrorInvalidResourceHandle);
  }
  event->recorded = true;
  if (target->capture) {
    event->capture = target->capture;
    event->frontier = target->frontier;
    return cudaSuccess;
  }
  event->capture = nullptr;
  auto time = std::make_shared<std::chrono::steady_clock::time_point>();
  event->time = time;
  Operation operation;
  operation.name = "cudaEventRecord";
  operation.run = [time] { *time = std::chrono::steady_clock::now(); };
  if (cudaError_t error = enqueue(target, std::move(operation))) return error;
  event->point = {target, target->enqueued};
  event->before = all_of(*target);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr || streams().events.count(event) == 0) {
    return remember(cudaErrorInvalidResourceHandle);
  }
  if (!event->recorded) return cudaSuccess;
  if (event->capture) {
    // An event of a capture draws the waiting stream into it.
    if (target->legacy) {
      event->capture->invalidated = true;
      return remember(cudaErrorStreamCaptureImplicit);
    }
    if (target->capture && target->capture != event->capture) {
      target->capture->invalidated = event->capture->invalidated = true;
      return remember(cudaErrorStreamCaptureMerge);
    }
    if (!target->capture) {
      target->capture = event->capture;
      target->frontier.clear();
      event->capture->streams.insert(target);
    }
    for (std::size_t node : event->frontier) {
      if (std::find(target->frontier.begin(), target->frontier.end(), node) ==
          target->frontier.end()) {
        target->frontier.push_back(node);
      }
    }
    return cudaSuccess;
  }
  if (target->capture) {
    target->capture->invalidated = true;
    explain("a captured stream waits for an event recorded outside of the capture");
    return remember(cudaErrorStreamCaptureIsolation);
  }
  std::vector<StreamPoint> after = implicit_order(*target);
  for (const StreamPoint& point : after) join(target->before, all_of(*point.stream));
  join(target->before, event->before);
  after.push_back(event->point);
  target->queue.push_back({nullptr, std::move(after)});
  ++target->enqueued;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Locked locked(runtime_lock());
  if (streams().events.count(event) == 0) return remember(cudaErrorInvalidResourceHandle);
  if (!event->recorded) return cudaSuccess;
  if (event->capture) return remember(cudaErrorCapturedEvent);
  ++settings().counters.synchronisations;
  host_waited_for(event->before);
  Working working(event->point.stream->device);
  run_until(*event->point.stream, event->point.number);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Locked locked(runtime_lock());
  if (streams().events.count(event) == 0) return remember(cudaErrorInvalidResourceHandle);
  if (!event->recorded) return cudaSuccess;
  if (event->capture) return remember(cudaErrorCapturedEvent);
  CUstream_st& stream = *event->point.stream;
  if (stream.done >= event->point.number) {
    host_waited_for(event->before);
    return cudaSuccess;
  }
  Working working(stream.device);
  run_until(stream, stream.done + 1);
  return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  Locked locked(runtime_lock());
  for (cudaEvent_t event : {start, end}) {
    if (streams().events.count(event) == 0 || !event->recorded || !event->timing) {
      return remember(cudaErrorInvalidResourceHandle);
    }
    if (event->capture) return remember(cudaErrorCapturedEvent);
    if (event->point.stream->done < event->point.number) return remember(cudaErrorNotReady);
  }
  *ms = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  Operation operation;
  operation.name = "cudaLaunchHostFunc";
  operation.run = [fn, userData] {
    open_devices(0);
    fn(userData);
  };
  return enqueue(target, std::move(operation));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (target->legacy) {
    explain("the default stream cannot be captured");
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  if (target->capture) return remember(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->origin = target;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  target->capture = capture;
  target->frontier.clear();
  streams().captures.push_back(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  Locked locked(runtime_lock());
  *pGraph = nullptr;
  cudaStream_t target = resolve(stream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (!target->capture) return remember(cudaErrorIllegalState);
  auto capture = target->capture;
  if (capture->origin != target) {
    capture->invalidated = true;
    return remember(cudaErrorStreamCaptureUnmatched);
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return remember(cudaErrorStreamCaptureWrongThread);
  }
  // Joined: every node is before, or is, one of the origin's last.
  std::vector<bool> joined(capture->nodes.size());
  for (std::size_t node : target->frontier) joined[node] = true;
  for (std::size_t i = capture->nodes.size(); i-- > 0;) {
    if (!joined[i]) continue;
    for (std::size_t before : capture->nodes[i].after) joined[before] = true;
  }
  const bool all_joined = std::find(joined.begin(), joined.end(), false) == joined.end();

  target->capture = nullptr;
  for (cudaStream_t other : capture->streams) other->capture = nullptr;
  std::erase(streams().captures, capture);
  if (capture->invalidated) return remember(cudaErrorStreamCaptureInvalidated);
  if (!all_joined) return remember(cudaErrorStreamCaptureUnjoined);
  check_graph_order(capture->nodes);
  *pGraph = new CUgraph_st{capture->nodes};
  streams().graphs.insert(*pGraph);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus* pCaptureStatus) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  *pCaptureStatus = !target->capture               ? cudaStreamCaptureStatusNone
                    : target->capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                                   : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t* pGraph, unsigned int flags) {
  Locked locked(runtime_lock());
  if (flags != 0) return remember(cudaErrorInvalidValue);
  *pGraph = new CUgraph_st{};
  streams().graphs.insert(*pGraph);
  return cudaSuccess;
}

// The child's nodes, behind what it depends on, and one behind all of them that stands for it.
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t* pDependencies,
                                       std::size_t numDependencies, cudaGraph_t childGraph) {
  Locked locked(runtime_lock());
  if (streams().graphs.count(graph) == 0 || streams().graphs.count(childGraph) == 0 ||
      graph == childGraph || (numDependencies > 0 && pDependencies == nullptr)) {
    return remember(cudaErrorInvalidValue);
  }
  std::vector<std::size_t> before;
  for (std::size_t i = 0; i < numDependencies; ++i) {
    const auto node = reinterpret_cast<std::uintptr_t>(pDependencies[i]);
    if (node == 0 || node > graph->nodes.size()) return remember(cudaErrorInvalidValue);
    before.push_back(node - 1);
  }
  const std::size_t first = graph->nodes.size();
  std::vector<std::size_t> all = before;
  for (const GraphNode& node : childGraph->nodes) {
    std::vector<std::size_t> after = before;
    for (const std::size_t i : node.after) after.push_back(first + i);
    all.push_back(graph->nodes.size());
    graph->nodes.push_back({node.operation, std::move(after)});
  }
  graph->nodes.push_back({nullptr, std::move(all)});
  *pGraphNode = reinterpret_cast<cudaGraphNode_t>(graph->nodes.size());
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* numNodes) {
  Locked locked(runtime_lock());
  if (streams().graphs.count(graph) == 0 || nodes != nullptr) {
    return remember(cudaErrorInvalidValue);
  }
  *numNodes = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                 unsigned long long) {
  Locked locked(runtime_lock());
  if (streams().graphs.count(graph) == 0) return remember(cudaErrorInvalidValue);
  check_graph_order(graph->nodes);
  *pGraphExec = new CUgraphExec_st{graph->nodes};
  streams().executables.insert(*pGraphExec);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t) {
  Locked locked(runtime_lock());
  return remember(streams().executables.count(graphExec) == 0 ? cudaErrorInvalidValue
                                                              : cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (streams().executables.count(graphExec) == 0) return remember(cudaErrorInvalidValue);
  if (target->capture) {
    target->capture->invalidated = true;
    explain("the emulated device does not capture a graph launch as a child graph");
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  ++settings().counters.graph_launches;
  Operation operation;
  operation.name = "cudaGraphLaunch";
  operation.pointers = uses_of(graphExec->nodes);
  operation.run = [nodes = graphExec->nodes] { run_graph(nodes); };
  return enqueue(target, std::move(operation));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  Locked locked(runtime_lock());
  if (streams().graphs.erase(graph) == 0) return remember(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  Locked locked(runtime_lock());
  if (streams().executables.erase(graphExec) == 0) return remember(cudaErrorInvalidValue);
  delete graphExec;
  return cudaSuccess;
}

}  // extern "C"
