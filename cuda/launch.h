#pragma once

// The one way to launch a kernel:
//
//   launch(stream, scale_rows<float>, grid, block, shared_bytes<float>(k), z, n, d);
//
// Arguments convert to the kernel's parameters. Asks for more than 48 KiB of dynamic shared memory
// where the kernel needs it, and throws cfaa::Error naming the kernel, its configuration and the
// cause when the launch is refused. What goes wrong while the kernel runs shows at the next
// synchronisation.

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <utility>

#include "cuda/launch_log.h"

namespace cfaa::cuda {

// "void cfaa::cuda::sinkhorn<float>(...)", as the compiler knows it.
std::string kernel_name(const void* kernel);

// Throws unless `status` is success: "kernel sinkhorn<float> ... could not be launched: ...".
void check_launch(cudaError_t status, const void* kernel, dim3 grid, dim3 block,
                  std::size_t shared_bytes);

// Raises the kernel's limit of dynamic shared memory when, with its static variables, it may exceed
// the default of 48 KiB.
cudaError_t allow_shared(const void* kernel, std::size_t shared_bytes);

template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, Arguments&&... arguments) {
  const void* function = reinterpret_cast<const void*>(kernel);
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cudaError_t status = allow_shared(function, shared_bytes);
  if (status == cudaSuccess) {
    status = cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  }
  if (status != cudaSuccess) check_launch(status, function, grid, block, shared_bytes);
  note_launch(function, block, shared_bytes);
}

}  // namespace cfaa::cuda
