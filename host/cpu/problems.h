#pragma once

// A batch of independent problems on the CPU: one problem a thread at a time, scratch by slots, and
// one fault record each.

#include <algorithm>
#include <cstdint>
#include <functional>

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa::cpu {

// Scratch for as many problems as can be under way at once: never more slots than problems, so that
// a machine of many cores needs no more memory, nor than threads, so that a slot stays in cache.
struct Slots {
  Slots(Context& context, int64_t problem_count)
      : threads(context.threads()),
        problems(problem_count),
        count(std::min<int64_t>(problems, threads.threads())) {}

  // (count, size) of scratch. Every slot begins at a multiple of 256 bytes: some of OpenBLAS's
  // kernels sum in another order behind an odd address, and a result must not depend on who
  // computes it.
  template <class T>
  MatrixView<T> take(Arena& arena, int64_t size) const {
    constexpr int64_t kAligned = 256 / sizeof(T);
    MatrixView<T> memory = arena.take<T, 2>({count, (size + kAligned - 1) / kAligned * kAligned});
    memory.shape[1] = size;
    return memory;
  }

  // Calls body(problem, slot) for each problem. By reference: std::function would else allocate.
  template <class Body>
  void for_each(const Body& body) const {
    const auto chunk = [&](int64_t problem, int64_t, int worker) {
      body(problem, count == problems ? problem : worker);
    };
    threads.parallel_for(problems, 1, std::cref(chunk));
  }

  ThreadPool& threads;
  const int64_t problems;
  const int64_t count;
};

inline Fault fault_of(FaultCode code, FaultSite site, int64_t problem, int64_t detail) {
  return {static_cast<int32_t>(code), static_cast<int32_t>(site), static_cast<int32_t>(problem),
          static_cast<int32_t>(detail), 0};
}

inline bool latched(Context& context) {
  return context.fault_latch()->code != static_cast<int32_t>(FaultCode::none);
}

// An earlier fault stays.
inline void latch_fault(Context& context, const Fault& fault) {
  if (!latched(context)) *context.fault_latch() = fault;
}

// `faults` (problems), code 0 where nothing is wrong: the lowest problem's wins, so that the answer
// does not depend on the number of threads.
inline void latch_first(Context& context, VectorView<const Fault> faults) {
  for (int64_t p = 0; p < faults.size() && !latched(context); ++p) {
    latch_fault(context, faults.data[p]);
  }
}

}  // namespace cfaa::cpu
