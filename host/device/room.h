#pragma once

// How much memory a device has, and how much of it nobody uses.

#include <cstddef>
#include <optional>

#include "host/core/context.h"

namespace cfaa {

struct DeviceRoom {
  std::size_t free = 0, total = 0;  // bytes
};

// Of a GPU, other programs included; nothing on the CPU.
std::optional<DeviceRoom> room_of(Context& context);

}  // namespace cfaa
