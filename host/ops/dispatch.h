#pragma once

// An op is declared once, `row_dot` in host/ops/row_dot.h, and written three times:
//
//   row_dot         host/ops/row_dot.cpp  checks its arguments, then calls one of the others
//   cpu::row_dot    host/cpu/row_dot.cpp  computes it on the CPU
//   cuda::row_dot   kernels/row_dot.cu    computes it on the GPU
//
// Each file ends with CFAA_FOR_FLOAT_AND_DOUBLE(row_dot).

#include "host/core/instantiate.h"  // IWYU pragma: export

// Declares an op and its implementations, which take the same arguments.
#define CFAA_OP(...)           \
  CFAA_DEVICE_OP(__VA_ARGS__); \
  __VA_ARGS__

// Declares the implementations only: of an op that takes the memory of its result, where they take
// that result as one argument more, or of a step that nobody else calls.
#define CFAA_DEVICE_OP(...) \
  namespace cpu {           \
  __VA_ARGS__;              \
  }                         \
  namespace cuda {          \
  __VA_ARGS__;              \
  }                         \
  static_assert(true)

// The implementation for the Context's device. A build without CUDA has no context of that kind
// (host/device/make_context.h refuses to make one), so it needs no `cuda` to link.
#if CFAA_HAS_CUDA
#define CFAA_DISPATCH(context, call) \
  ((context).device() == ::cfaa::DeviceKind::cuda ? ::cfaa::cuda::call : ::cfaa::cpu::call)
#else
#define CFAA_DISPATCH(context, call) (::cfaa::cpu::call)
#endif
