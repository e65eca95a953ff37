#pragma once
// cudaLaunchKernelEx of the emulated device: keeps the arguments, notes every pointer among them
// and enqueues the call.

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda_runtime_api.h"

namespace emulator {

struct KernelPointer {
  const void* address;
  std::string what;  // "argument 2"
  bool certain;      // false: a word of a structure that may or may not be a pointer
  bool written;      // a pointer to what is not const
};

cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, const void* function,
                           std::function<void()> body, std::vector<KernelPointer> pointers);

// A pointer argument must be null, device memory or pinned. A structure passed by value may list
// its pointers in a member `template <class F> void for_each_pointer(F f) const`, and is then held
// to the same; without one its words are searched for freed memory and memory of another device.
template <typename T>
void collect_pointers(const T& argument, int index, std::vector<KernelPointer>& pointers) {
  const std::string what = "argument " + std::to_string(index);
  if constexpr (std::is_pointer_v<T>) {
    if constexpr (!std::is_function_v<std::remove_pointer_t<T>>) {
      pointers.push_back({static_cast<const void*>(argument), what, true,
                          !std::is_const_v<std::remove_pointer_t<T>>});
    }
  } else if constexpr (requires { argument.for_each_pointer([](const void*) {}); }) {
    argument.for_each_pointer([&](const void* address) {
      pointers.push_back({address, "a pointer in " + what, true, false});
    });
  } else if constexpr (std::is_class_v<T> && std::is_trivially_copyable_v<T> &&
                       alignof(T) >= alignof(void*)) {
    for (std::size_t at = 0; at + sizeof(void*) <= sizeof(T); at += sizeof(void*)) {
      const void* word;
      __builtin_memcpy(&word, reinterpret_cast<const unsigned char*>(&argument) + at, sizeof(word));
      pointers.push_back({word, "byte " + std::to_string(at) + " of " + what, false, false});
    }
  }
}

}  // namespace emulator

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  std::tuple<std::remove_cv_t<Parameters>...> kept{static_cast<Parameters>(arguments)...};
  std::vector<emulator::KernelPointer> pointers;
  std::apply(
      [&](const auto&... argument) {
        int index = 0;
        (emulator::collect_pointers(argument, index++, pointers), ...);
      },
      kept);
  return emulator::enqueue_kernel(
      *config, reinterpret_cast<const void*>(kernel), [kernel, kept] { std::apply(kernel, kept); },
      std::move(pointers));
}
