#pragma once
// Memory of the emulated devices. Each device owns a range of addresses of its own; allocations lie
// far apart in it, so that a step past either end meets unmapped pages. All of it is inaccessible
// except while a device works (see stream.h), and freed addresses are never handed out again.

#include <cstddef>
#include <cstdint>
#include <string>

namespace emulator {

struct Allocation {
  std::uintptr_t base = 0;   // what cudaMalloc returned
  std::size_t bytes = 0;     // what the caller asked for
  std::uintptr_t pages = 0;  // the pages that hold it
  std::size_t page_bytes = 0;
  int device = 0;
  bool live = false;
};

// Null when the device is full.
void* allocate_device(int device, std::size_t bytes);

// False when `p` is not the start of a live allocation.
bool free_device(void* p);

void* allocate_pinned(std::size_t bytes);
bool free_pinned(void* p);
bool is_pinned(const void* p, std::size_t bytes = 1);

// The device whose range of addresses `p` lies in, or -1 for host memory.
int device_of(const void* p);

// The allocation, live or freed, that `p` lies in (its end counts as inside), or null.
const Allocation* find_allocation(const void* p);

// Makes the memory of these devices (a bit each) accessible, and all other device memory not. What
// is accessible opens when it is first touched: most operations touch few of many allocations.
void open_devices(unsigned devices);

// For the fault handler: true where the address may be touched, and now can be.
bool open_touched(const void* p);

// Fails if the bytes just outside of an allocation were overwritten; `who` did it.
void check_slack(const std::string& who);

// One sentence on why [p, p + bytes) cannot be used by `device`; empty when it can. With
// `pinned_allowed` pinned host memory will do.
std::string why_not_device_memory(const void* p, std::size_t bytes, int device,
                                  bool pinned_allowed);

// What a fault at this address means, for the signal handler: writes a sentence, false when the
// address is no device memory.
bool describe_fault(const void* p, bool write, char* text, std::size_t capacity);

// The same for an access that AddressSanitizer caught in the slack of a live buffer.
bool describe_poisoned(const void* p, bool write, char* text, std::size_t capacity);

void install_fault_handler();

}  // namespace emulator
