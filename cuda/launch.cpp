#include "cuda/launch.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "cuda/check.h"
#include "host/core/error.h"

namespace cfaa::cuda {
namespace {

std::string text(dim3 size) {
  return std::string("(")
      .append(std::to_string(size.x))
      .append(", ")
      .append(std::to_string(size.y))
      .append(", ")
      .append(std::to_string(size.z))
      .append(")");
}

}  // namespace

std::string kernel_name(const void* kernel) {
  const char* symbol = nullptr;
  if (cudaFuncGetName(&symbol, kernel) != cudaSuccess || symbol == nullptr) return "(unnamed)";
  std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr), std::free);
  return readable ? readable.get() : symbol;
}

void check_launch(cudaError_t status, const void* kernel, dim3 grid, dim3 block,
                  std::size_t shared_bytes) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // reported here, not at somebody else's next check
  throw Error("kernel " + kernel_name(kernel) + " with grid " + text(grid) + ", block " +
              text(block) + " and " + std::to_string(shared_bytes) +
              " bytes of dynamic shared memory could not be launched: " + describe(status));
}

cudaError_t allow_shared(const void* kernel, std::size_t shared_bytes) {
  // A kernel may use 48 KiB without asking, its static shared memory included: 8 KiB are for that.
  constexpr std::size_t without_asking = 40 * 1024;
  if (shared_bytes <= without_asking) return cudaSuccess;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(shared_bytes));
}

}  // namespace cfaa::cuda
