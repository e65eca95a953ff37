#pragma once

// Sets the Context's fault latch (host/core/fault.h) from a kernel. The first fault wins; which of
// two blocks that fail in the same launch comes first is the only thing here that may differ
// between runs.

#include <cuda_runtime.h>

#include "host/core/fault.h"

namespace cfaa::cuda {

__device__ inline void latch_fault(Fault* latch, FaultCode code, FaultSite site, int problem,
                                   int detail) {
  const int none = static_cast<int>(FaultCode::none);
  if (atomicCAS(&latch->code, none, static_cast<int>(code)) != none) return;
  latch->site = static_cast<int32_t>(site);
  latch->problem = problem;
  latch->detail = detail;
}

}  // namespace cfaa::cuda
