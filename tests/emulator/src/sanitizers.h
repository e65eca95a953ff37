#pragma once
// What AddressSanitizer has to be told: which bytes are not ours, and when a fibre takes over.

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator::sanitizers {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool address = true;
inline void poison(const void* p, std::size_t bytes) {
  __asan_poison_memory_region(p, bytes);
}
inline void unpoison(const void* p, std::size_t bytes) {
  __asan_unpoison_memory_region(p, bytes);
}
inline void start_switch(void** save, const void* stack, std::size_t bytes) {
  __sanitizer_start_switch_fiber(save, stack, bytes);
}
inline void finish_switch(void* saved, const void** old_stack, std::size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(saved, old_stack, old_bytes);
}
#else
inline constexpr bool address = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
inline void start_switch(void**, const void*, std::size_t) {}
inline void finish_switch(void*, const void**, std::size_t*) {}
#endif

}  // namespace emulator::sanitizers
