#include "host/device/room.h"

#if CFAA_HAS_CUDA
#include "cuda/check.h"
#include "cuda/device.h"
#endif

namespace cfaa {

std::optional<DeviceRoom> room_of(Context& context) {
  if (context.device() == DeviceKind::cpu) return {};
  DeviceRoom room;
#if CFAA_HAS_CUDA
  CFAA_CUDA_CHECK(cudaMemGetInfo(&room.free, &room.total));
#endif
  return room;
}

}  // namespace cfaa
