#pragma once

// Chooses the device at run time and makes its Context.

#include <memory>
#include <string>

#include "host/core/context.h"

namespace cfaa {

// `name` is "auto", "cpu", "cuda" or, of several GPUs, "cuda:0", "cuda:1" ... as nvidia-smi counts
// those that CUDA_VISIBLE_DEVICES leaves. "auto" takes a GPU where there is one, and the CPU
// otherwise. A GPU that is not there, or a build without CUDA, throws Error with the reason.
std::unique_ptr<Context> make_context(const std::string& name, ContextOptions options = {});

// The device's name in reports: "cpu", "cuda", or "cuda (emulated)".
std::string device_label(Context& context);

}  // namespace cfaa
