#pragma once

// Binds AlignmentOptions to the configuration's `alignment` section. Apart from the struct so that
// kernels, which nvcc compiles, need no JSON.

#include "host/core/options.h"
#include "host/ops/alignment_options.h"

namespace cfaa {

OptionSet alignment_option_set(AlignmentOptions& options);

}  // namespace cfaa
