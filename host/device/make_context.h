#pragma once

// Chooses the device at run time and makes its Context.

#include <memory>
#include <string>

#include "host/core/context.h"

namespace cfaa {

// `name` is "auto", "cpu" or "cuda". "auto" takes a GPU where there is one, and the CPU otherwise.
// "cuda" where there is none, or in a build without CUDA, throws Error with the reason.
std::unique_ptr<Context> make_context(const std::string& name, ContextOptions options = {});

// The device's name in reports: "cpu", "cuda", or "cuda (emulated)".
std::string device_label(Context& context);

}  // namespace cfaa
