#pragma once

// The time that work takes on the device's stream, by events: what the GPU saw, not the host.

#include <functional>

#include "host/core/context.h"

namespace cfaa::cuda {

double seconds_on_device(Context& context, const std::function<void()>& work);

}  // namespace cfaa::cuda
