#pragma once

// What changes from step to step, in device memory: a step replayed from a CUDA graph has its
// addresses and scalars frozen, so whatever varies is read from here. The host copies a StepState
// before every step; ops write only the members that say so.

#include <cmath>
#include <cstdint>

namespace cfaa {

struct StepState {
  uint64_t step = 0;  // counts from 0 over the whole run
  uint64_t draw = 0;  // the Philox stream of dropout: the number of the batch
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;  // decoupled, per step: w -= learning_rate * decay * w
  double embedding_rate = 0, embedding_decay = 0;  // both, of the rows of tables a step touches
  double correction1 = 1, correction2 = 1;         // 1 / (1 - beta^t), t = step + 1
  double max_norm = 0;                             // of the gradient; 0: not clipped
  double squared_norm = 0;                         // written by gradient_norm (host/ops/adam.h)
  double clip = 1;  // written by clip_gradient: factor of every gradient

  // On the host: the number of the step, of its one batch, and Adam's corrections by the betas.
  void count(int64_t steps_before) {
    step = draw = static_cast<uint64_t>(steps_before);
    correction1 = 1 / (1 - std::pow(beta1, static_cast<double>(steps_before + 1)));
    correction2 = 1 / (1 - std::pow(beta2, static_cast<double>(steps_before + 1)));
  }
};

}  // namespace cfaa
