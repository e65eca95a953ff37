#pragma once

// Ranges that name the paper's steps in a profiler's timeline:
//
//   const cuda::Range range("typical samples");
//
// NVTX 3 is header-only: nothing to link, and nothing happens while no profiler listens.

#include <nvtx3/nvToolsExt.h>

namespace cfaa::cuda {

class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace cfaa::cuda
