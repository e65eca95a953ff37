#pragma once

// The latch of work that ran beside other work (host/device/branch.h).

#include "cuda/device.h"
#include "host/core/fault.h"

namespace cfaa::cuda {

// Where `branch` holds a fault it becomes `latch`'s: the branch's work comes first in the order of
// the step, and its latch began as a copy of the other.
void join_faults(Device& device, const Fault* branch, Fault* latch);

}  // namespace cfaa::cuda
