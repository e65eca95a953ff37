#pragma once

// dropout, in place:  x_e = keep_e ? x_e / (1 - p) : 0,  keep_e = uniform_e >= p,  e = r C + c
//
// uniform_e has the upper 24 bits of word e mod 4 of Philox(seed) at index e / 4 and the stream
// (draw << 16) + layer, draw being StepState's: identical on every device, and the backward draws
// them again instead of keeping a mask. Called on the activations in the forward and on their
// gradient in the backward.

#include <cmath>

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"
#include "host/ops/step_state.h"

namespace cfaa {

// x (R, C), rows may be padded; 0 <= p < 1; `layer` < 65536 names the use. p == 0 does nothing.
// `state` is in device memory.
CFAA_OP(template <class T>
        void dropout(Context& context, double p, const StepState* state, uint64_t layer,
                     MatrixView<T> x));

// uniform >= p in terms of the 24 bits themselves, so that no device rounds.
inline uint32_t dropout_threshold(double p) {
  return static_cast<uint32_t>(std::ceil(p * 16777216.0));
}

// Dropout inside an op that makes the values it drops: none without a state, or where p is 0.
struct Dropout {
  double p = 0;
  const StepState* state = nullptr;  // in device memory
  uint64_t layer = 0;
};

// The same draw for one element, where an op has no matrix to drop.
struct DropoutDraw {
  Philox random;
  const StepState* state;  // null: everything is kept
  uint64_t layer;
  uint32_t threshold;
  double scale;  // 1 / (1 - p)

  DropoutDraw(const Philox& philox, const Dropout& dropout)
      : random(philox),
        state(dropout.p > 0 ? dropout.state : nullptr),
        layer(dropout.layer),
        threshold(dropout_threshold(dropout.p)),
        scale(1 / (1 - dropout.p)) {}

  // 1 / (1 - p) where element e is kept, else 0.
  CFAA_HOST_DEVICE double factor(int64_t e) const {
    if (state == nullptr) return 1;
    const Philox::Block bits = random(static_cast<uint64_t>(e) / 4, (state->draw << 16) + layer);
    uint32_t word = bits.word[0];  // chosen without an index, which would need memory on a GPU
    if (e % 4 == 1) word = bits.word[1];
    if (e % 4 == 2) word = bits.word[2];
    if (e % 4 == 3) word = bits.word[3];
    return (word >> 8) >= threshold ? scale : 0;
  }

  template <class F>
  void for_each_pointer(F f) const {
    f(state);
  }
};

}  // namespace cfaa
