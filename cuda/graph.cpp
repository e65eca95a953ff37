#include "cuda/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/check.h"
#include "host/core/error.h"
#include "host/core/log.h"

namespace cfaa::cuda {
namespace {

// Thrown through the step when a call turns out not to be capturable.
struct CaptureRefused {
  std::string name;
  std::string reason;
};

}  // namespace

Graph::Graph(Device& device) : device_(device) {}

Graph::~Graph() {
  clear();
}

void Graph::destroy(const Segment& segment) noexcept {
  if (segment.graph != nullptr) CFAA_CUDA_WARN(cudaGraphExecDestroy(segment.graph));
  if (segment.captured != nullptr) CFAA_CUDA_WARN(cudaGraphDestroy(segment.captured));
}

void Graph::clear() noexcept {
  for (const Segment& segment : segments_) destroy(segment);
  for (const Segment& segment : joined_) destroy(segment);
  segments_.clear();
  joined_.clear();
  boundary_ = 0;
  owned_.clear();
}

void Graph::begin_segment() {
  CFAA_CUDA_CHECK(cudaStreamBeginCapture(device_.stream(), cudaStreamCaptureModeThreadLocal));
}

// An empty segment (two refused calls in a row) is left out.
void Graph::end_segment() {
  cudaGraph_t graph = nullptr;
  CFAA_CUDA_CHECK(cudaStreamEndCapture(device_.stream(), &graph));
  std::size_t nodes = 0;
  cudaGraphExec_t executable = nullptr;
  cudaError_t status = cudaGraphGetNodes(graph, nullptr, &nodes);
  if (status == cudaSuccess && nodes > 0) status = cudaGraphInstantiate(&executable, graph, 0);
  if (executable == nullptr) CFAA_CUDA_WARN(cudaGraphDestroy(graph));
  CFAA_CUDA_CHECK(status);
  if (executable != nullptr) segments_.push_back({executable, graph, {}});
}

void Graph::capture(const std::function<void()>& step) {
  CFAA_ASSERT(device_.recorder() == nullptr);
  const auto stop = [this] {
    device_.set_recorder(nullptr);
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(device_.stream(), &graph) == cudaSuccess && graph != nullptr) {
      CFAA_CUDA_WARN(cudaGraphDestroy(graph));
    }
    cudaGetLastError();  // the refusal is dealt with here, not at somebody else's next check
    clear();
  };

  // Each round either ends, or learns of one more call that is refused: their number is finite.
  for (;;) {
    clear();
    device_.set_recorder(this);
    begin_segment();
    try {
      step();
      end_segment();
      device_.set_recorder(nullptr);
      return;
    } catch (const CaptureRefused& refusal) {
      stop();
      refused_.push_back(refusal.name);
      log_info(fmt::format("{} cannot be captured in a CUDA graph ({}); it runs between two graphs",
                           refusal.name, refusal.reason));
    } catch (...) {
      stop();
      throw;
    }
  }
}

void Graph::record(const std::string& name, Capturing capturing, std::function<void()> call) {
  if (capturing == Capturing::never) {
    log_once(name +
             " runs between two CUDA graphs: NVIDIA does not promise that it can be captured");
  }
  if (capturing == Capturing::never ||
      std::find(refused_.begin(), refused_.end(), name) != refused_.end()) {
    CFAA_ASSERT(device_.lane() == 0);
    end_segment();
    segments_.push_back({nullptr, nullptr, std::move(call)});
    begin_segment();
    return;
  }
  try {
    call();
  } catch (const Error& error) {
    throw CaptureRefused{name, error.what()};
  }
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CFAA_CUDA_CHECK(cudaStreamIsCapturing(device_.stream(), &status));
  if (status != cudaStreamCaptureStatusActive) {
    throw CaptureRefused{name, "it invalidated the capture"};
  }
  owned_.push_back(std::move(call));
}

void Graph::boundary() {
  CFAA_ASSERT(device_.recorder() == this && boundary_ == 0);
  end_segment();
  boundary_ = segments_.size();
  begin_segment();
}

void Graph::replay(std::size_t first, std::size_t last) {
  CFAA_ASSERT(!empty());
  for (std::size_t i = first; i < last; ++i) {
    if (segments_[i].graph != nullptr) {
      CFAA_CUDA_CHECK(cudaGraphLaunch(segments_[i].graph, device_.stream()));
    } else {
      segments_[i].call();
    }
  }
}

void Graph::replay() {
  replay(0, segments_.size());
}

void Graph::replay_to_boundary() {
  replay(0, boundary_);
}

void Graph::replay_from_boundary() {
  replay(boundary_, segments_.size());
}

void Graph::join_at_boundary() {
  if (boundary_ == 0 || boundary_ == segments_.size()) return;
  const auto before = segments_.begin() + static_cast<std::ptrdiff_t>(boundary_) - 1;
  const auto behind = before + 1;
  if (before->graph == nullptr || behind->graph == nullptr) return;
  Segment whole;
  CFAA_CUDA_CHECK(cudaGraphCreate(&whole.captured, 0));
  cudaGraphNode_t first = nullptr, second = nullptr;
  cudaError_t status =
      cudaGraphAddChildGraphNode(&first, whole.captured, nullptr, 0, before->captured);
  if (status == cudaSuccess) {
    status = cudaGraphAddChildGraphNode(&second, whole.captured, &first, 1, behind->captured);
  }
  if (status == cudaSuccess) status = cudaGraphInstantiate(&whole.graph, whole.captured, 0);
  if (status != cudaSuccess) destroy(whole);
  CFAA_CUDA_CHECK(status);
  joined_ = {*before, *behind};
  *before = whole;
  segments_.erase(behind);
  boundary_ = 0;
}

std::size_t Graph::captured_segments() const {
  return static_cast<std::size_t>(std::count_if(
      segments_.begin(), segments_.end(), [](const Segment& s) { return s.graph != nullptr; }));
}

std::size_t Graph::calls_between_segments() const {
  return segments_.size() - captured_segments();
}

void library_call(Device& device, const std::string& name, Capturing capturing,
                  std::function<void()> call) {
  if (Graph* graph = device.recorder()) {
    graph->record(name, capturing, std::move(call));
  } else {
    call();
  }
}

}  // namespace cfaa::cuda
