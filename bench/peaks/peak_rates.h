#pragma once

// What a device can do at most, measured by work that does nothing else: fused multiply-adds and
// exponentials on registers. Rates of real ops are stated as a share of these.

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa {

// Does at least `count` fused multiply-adds (2 flops each), or exponentials, spread over all
// threads of the device, and stores something that depends on all of them, so that none can be left
// out. Returns how many it did. `sink` is (1).
template <class T>
double run_multiply_adds(Context& context, double count, VectorView<T> sink);
template <class T>
double run_exponentials(Context& context, double count, VectorView<T> sink);

// The implementations: bench/peaks/peak_rates_cpu.cpp and bench/peaks/peak_rates.cu.
namespace cpu {
template <class T>
double run_multiply_adds(Context& context, double count, VectorView<T> sink);
template <class T>
double run_exponentials(Context& context, double count, VectorView<T> sink);
}  // namespace cpu

namespace cuda {
template <class T>
double run_multiply_adds(Context& context, double count, VectorView<T> sink);
template <class T>
double run_exponentials(Context& context, double count, VectorView<T> sink);
}  // namespace cuda

}  // namespace cfaa
