#pragma once

// What a step saw and computed, as a file anyone can check with automatic differentiation:
// TRACE/step-00000000.safetensors with the batch, all parameters before the step, the activations,
// the losses and all gradients, by the names of docs/training.md. bench/peers/cfaa_torch.py reads
// it.

#include <filesystem>

#include "host/train/run_config.h"
#include "host/train/step_runner.h"

namespace cfaa {

// Runs the step and writes its file.
template <class T>
void write_trace(Context& context, const std::filesystem::path& directory, int64_t step,
                 StepRunner<T>& runner, Cfaa<T>& model, const RunConfig& config);

}  // namespace cfaa
