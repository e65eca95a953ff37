#pragma once

// cuBLAS and cuSOLVER, loaded when a GPU is first asked for: a program built with CUDA starts on a
// machine that has neither a driver nor these libraries, and computes there on the CPU.

#include <string>

namespace cfaa::cuda {

// Loads both at the first call. "" where they are there; otherwise which one is missing, and why.
// No function of theirs is called before.
std::string why_libraries_missing();

}  // namespace cfaa::cuda
