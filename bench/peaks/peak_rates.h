#pragma once

// What a device can do at most, measured by work that does nothing else: fused multiply-adds and
// exponentials on registers. Rates of real ops are stated as a share of these.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// Does at least `count` fused multiply-adds (2 flops each), or exponentials, spread over all
// threads of the device, and stores something that depends on all of them, so that none can be left
// out. Returns how many it did. `sink` is (1).
CFAA_OP(template <class T>
        double run_multiply_adds(Context& context, double count, VectorView<T> sink));
CFAA_OP(template <class T>
        double run_exponentials(Context& context, double count, VectorView<T> sink));

}  // namespace cfaa
