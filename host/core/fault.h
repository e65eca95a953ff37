#pragma once

// A step on a GPU never waits for the host, so an op that meets a matrix it cannot factor, or a
// loss that is not finite, cannot throw. It sets the Context's latch instead: one small record in
// device memory, first fault wins. `Context::check_faults` reads it, where waiting is allowed, and
// throws the sentence. Ops on the CPU use the same latch, so both devices behave alike. In training
// the step adds its number before it updates anything, so the first bad step is known however many
// were queued behind it.

#include <cstdint>
#include <string>

namespace cfaa {

enum class FaultCode : int32_t {
  none = 0,
  not_positive_definite,  // detail: the leading minor that is not positive
  eigensolver_failed,     // detail: off-diagonal elements that did not converge
  not_finite,             // detail: the attribute, the row of the batch (site score), or -1
  not_converged,          // of an iteration by products (alignment.solver gemm)
};

// Where in the method it happened, in the paper's words.
enum class FaultSite : int32_t {
  typical_samples,
  coupling,
  slim,
  slim_penalty,
  graph,
  wasserstein,
  score,     // L_C and the scores it is made of
  gradient,  // its norm over all parameters
};

struct Fault {
  int32_t code;     // FaultCode
  int32_t site;     // FaultSite
  int32_t problem;  // index in the batch of problems of the op
  int32_t detail;
  int64_t step;  // of training, counted from 1 as in metrics.jsonl; 0: not in a step, or not yet
};

// "SLIM, problem 2: the matrix is not positive definite (leading minor 17); ...", behind "step 41:
// " where the step is known.
std::string explain(const Fault& fault);

}  // namespace cfaa
