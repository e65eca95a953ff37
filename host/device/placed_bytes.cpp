#include "host/device/placed_bytes.h"

#include <cstring>

#include "host/device/room.h"

namespace cfaa {

PlacedBytes::PlacedBytes(Context& context, const void* bytes, std::size_t count,
                         Placement placement)
    : runtime_(context.runtime()), count_(count), data_(bytes) {
  if (context.device() == DeviceKind::cpu || count == 0) return;
  const bool on_device = placement == Placement::device ||
                         (placement == Placement::by_room && room_of(context)->free / 2 >= count);
  if (on_device) {
    data_ = owned_by_device_ = runtime_.allocate(count);
    runtime_.copy_from_host(owned_by_device_, bytes, count);
    runtime_.synchronize();
  } else {
    data_ = owned_by_host_ = runtime_.allocate_host(count);
    std::memcpy(owned_by_host_, bytes, count);
  }
}

PlacedBytes::~PlacedBytes() {
  if (owned_by_device_ != nullptr) runtime_.release(owned_by_device_);
  if (owned_by_host_ != nullptr) runtime_.release_host(owned_by_host_);
}

}  // namespace cfaa
