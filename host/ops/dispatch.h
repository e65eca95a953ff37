#pragma once

// Sends an op to the implementation for the Context's device. A build without CUDA has no context
// of that kind (host/device/make_context.h refuses to make one), so it needs no `cuda`
// implementations to link.

#if CFAA_HAS_CUDA
#define CFAA_DISPATCH(context, call) \
  ((context).device() == ::cfaa::DeviceKind::cuda ? ::cfaa::cuda::call : ::cfaa::cpu::call)
#else
#define CFAA_DISPATCH(context, call) (::cfaa::cpu::call)
#endif
