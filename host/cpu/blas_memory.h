#pragma once

// OpenBLAS asks the system for a work buffer for each thread that computes, and asks again without
// end where the address space is limited (ulimit -v, a batch system) and used up. So under a limit
// the buffers are taken while it can still be seen whether they fit.

namespace cfaa::cpu {

// Nothing without a limit. Otherwise makes OpenBLAS take the buffers of as many threads as compute
// at once; Error that says how much is needed where the limit does not allow it.
void take_blas_buffers(int threads);

// Whether the address space of this process is limited.
bool address_space_is_limited();

}  // namespace cfaa::cpu
