#pragma once
// Runs one kernel: block by block, each thread of a block a fibre, blocks spread over host threads.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "vector_types.h"

namespace emulator {

struct KernelCall {
  std::string name;
  dim3 grid;
  dim3 block;
  std::size_t dynamic_shared = 0;
  std::size_t shared_limit = 0;  // dynamic and static together
  std::function<void()> body;    // one thread's work
};

// Returns when every block has finished. `seed` fixes the order of blocks and threads.
void run_kernel(const KernelCall& call, std::uint64_t seed);

// For the handler of faults: whether the calling kernel thread ran out of stack at `p`.
bool below_kernel_stack(const void* p);

}  // namespace emulator
