#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "fail.h"
#include "sanitizers.h"
#include "settings.h"

namespace emulator {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t alignment = 256;                      // what cudaMalloc promises
constexpr std::size_t gap = std::size_t{1} << 20;           // unmapped between two allocations
constexpr std::size_t device_range = std::size_t{4} << 40;  // addresses, not memory
constexpr std::size_t remembered_freed = 1 << 16;

// The slack around an allocation: NaN as float, double, half and bfloat16, and no likely integer.
constexpr unsigned char slack_even = 0xFB, slack_odd = 0xFF;

struct Memory {
  std::uintptr_t range[device_count] = {};
  std::uintptr_t next[device_count] = {};
  std::size_t live_bytes[device_count] = {};
  unsigned open = 0;
  std::map<std::uintptr_t, Allocation> allocations;  // by pages, freed ones too
  std::set<const Allocation*> live;
  std::vector<const Allocation*> touched;  // accessible since the device works
  std::atomic_flag touching;               // held while `touched` changes
  std::deque<std::uintptr_t> freed;
  std::map<std::uintptr_t, std::size_t> pinned;

  Memory() {
    for (int device = 0; device < device_count; ++device) {
      void* start = mmap(nullptr, device_range, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (start == MAP_FAILED) fail("cannot reserve addresses for device %d", device);
      range[device] = next[device] = reinterpret_cast<std::uintptr_t>(start);
    }
    install_fault_handler();
  }
};

Memory& memory() {
  static Memory* instance = new Memory;  // outlives every static that frees device memory
  return *instance;
}

std::uintptr_t address(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}

void protect(const Allocation& a, bool accessible) {
  if (mprotect(reinterpret_cast<void*>(a.pages), a.page_bytes,
               accessible ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
    fail("mprotect of %zu bytes failed", a.page_bytes);
  }
}

void fill_slack(unsigned char* from, unsigned char* to) {
  for (unsigned char* p = from; p < to; ++p) *p = address(p) % 2 == 0 ? slack_even : slack_odd;
}

bool damaged(const unsigned char* from, const unsigned char* to) {
  const auto wrong = [](const unsigned char* p) {
    return *p != (address(p) % 2 == 0 ? slack_even : slack_odd);
  };
  for (; from < to && address(from) % 8 != 0; ++from) {
    if (wrong(from)) return true;
  }
  for (; from + 8 <= to; from += 8) {  // runs after every operation: eight bytes at a time
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    if (word != 0xFFFBFFFBFFFBFFFBu) return true;
  }
  for (; from < to; ++from) {
    if (wrong(from)) return true;
  }
  return false;
}

// The slack nearest to an allocation is checked after every operation, the rest when it is freed.
void check_slack_of(const Allocation& a, std::size_t reach, const char* who) {
  if (sanitizers::address) return;
  const auto* base = reinterpret_cast<const unsigned char*>(a.base);
  const auto* first = reinterpret_cast<const unsigned char*>(a.pages);
  const auto* last = first + a.page_bytes;
  if (damaged(base + a.bytes, last)) {
    fail("%s wrote past the end of a buffer of %zu bytes", who, a.bytes);
  }
  if (damaged(std::max(first, base - std::min<std::size_t>(reach, a.base - a.pages)), base)) {
    fail("%s wrote before the start of a buffer of %zu bytes", who, a.bytes);
  }
}

}  // namespace

void* allocate_device(int device, std::size_t bytes) {
  Memory& m = memory();
  if (m.live_bytes[device] + bytes > settings().memory_limit) return nullptr;
  Allocation a;
  a.bytes = bytes;
  a.device = device;
  a.live = true;
  a.page_bytes = (bytes + page - 1) / page * page;
  a.pages = m.next[device] + gap;
  if (a.pages + a.page_bytes + gap > m.range[device] + device_range) return nullptr;
  m.next[device] = a.pages + a.page_bytes;
  a.base = a.pages + a.page_bytes - (bytes + alignment - 1) / alignment * alignment;
  protect(a, true);
  auto* first = reinterpret_cast<unsigned char*>(a.pages);
  auto* base = reinterpret_cast<unsigned char*>(a.base);
  std::memset(base, 0xFF, bytes);
  fill_slack(first, base);
  fill_slack(base + bytes, first + a.page_bytes);
  sanitizers::poison(first, a.base - a.pages);
  sanitizers::poison(base + bytes, static_cast<std::size_t>(first + a.page_bytes - base) - bytes);
  protect(a, false);
  m.live_bytes[device] += bytes;
  m.live.insert(&(m.allocations[a.pages] = a));
  m.touched.reserve(m.live.size());  // a fault handler cannot allocate
  return base;
}

bool free_device(void* p) {
  Memory& m = memory();
  auto found = m.allocations.upper_bound(address(p));
  if (found == m.allocations.begin()) return false;
  Allocation& a = std::prev(found)->second;
  if (a.base != address(p) || !a.live) return false;
  protect(a, true);
  std::erase(m.touched, &a);
  check_slack_of(a, a.base - a.pages, "somebody");
  sanitizers::unpoison(reinterpret_cast<void*>(a.pages), a.page_bytes);
  // A fresh mapping gives the memory back and leaves the addresses unusable.
  mmap(reinterpret_cast<void*>(a.pages), a.page_bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  a.live = false;
  m.live.erase(&a);
  m.live_bytes[a.device] -= a.bytes;
  m.freed.push_back(a.pages);
  if (m.freed.size() > remembered_freed) {
    m.allocations.erase(m.freed.front());
    m.freed.pop_front();
  }
  return true;
}

void* allocate_pinned(std::size_t bytes) {
  void* p = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (p == nullptr) return nullptr;
  std::memset(p, 0xFF, bytes);
  sanitizers::poison(static_cast<unsigned char*>(p) + bytes,
                     (bytes + alignment - 1) / alignment * alignment - bytes);
  memory().pinned[address(p)] = bytes;
  return p;
}

bool free_pinned(void* p) {
  auto found = memory().pinned.find(address(p));
  if (found == memory().pinned.end()) return false;
  const std::size_t bytes = found->second;
  sanitizers::unpoison(p, (bytes + alignment - 1) / alignment * alignment);
  memory().pinned.erase(found);
  std::free(p);
  return true;
}

bool is_pinned(const void* p, std::size_t bytes) {
  const auto& pinned = memory().pinned;
  auto found = pinned.upper_bound(address(p));
  if (found == pinned.begin()) return false;
  --found;
  return address(p) + bytes <= found->first + found->second;
}

int device_of(const void* p) {
  const Memory& m = memory();
  for (int device = 0; device < device_count; ++device) {
    if (address(p) - m.range[device] < device_range) return device;
  }
  return -1;
}

const Allocation* find_allocation(const void* p) {
  const auto& allocations = memory().allocations;
  auto found = allocations.upper_bound(address(p));
  if (found == allocations.begin()) return nullptr;
  const Allocation& a = std::prev(found)->second;
  return address(p) >= a.base && address(p) <= a.base + a.bytes ? &a : nullptr;
}

void open_devices(unsigned devices) {
  Memory& m = memory();
  if (m.open == devices) return;
  std::erase_if(m.touched, [&](const Allocation* a) {
    const bool closes = (devices >> a->device & 1u) == 0;
    if (closes) protect(*a, false);
    return closes;
  });
  m.open = devices;
}

bool open_touched(const void* p) {
  Memory& m = memory();
  const int device = device_of(p);
  if (device < 0 || (m.open >> device & 1u) == 0) return false;
  auto found = m.allocations.upper_bound(address(p));
  if (found == m.allocations.begin()) return false;
  const Allocation& a = std::prev(found)->second;
  if (!a.live || address(p) >= a.pages + a.page_bytes) return false;
  while (m.touching.test_and_set(std::memory_order_acquire)) {
  }
  if (std::find(m.touched.begin(), m.touched.end(), &a) == m.touched.end()) {
    protect(a, true);
    m.touched.push_back(&a);
  }
  m.touching.clear(std::memory_order_release);
  return true;
}

void check_slack(const std::string& who) {
  for (const Allocation* a : memory().touched) check_slack_of(*a, alignment, who.c_str());
}

std::string why_not_device_memory(const void* p, std::size_t bytes, int device,
                                  bool pinned_allowed) {
  const int owner = device_of(p);
  if (owner < 0) {
    if (pinned_allowed && is_pinned(p, bytes)) return "";
    return is_pinned(p) ? "is pinned host memory" : "is host memory, not device memory";
  }
  const Allocation* a = find_allocation(p);
  if (a == nullptr) return "points outside of every buffer of device " + std::to_string(owner);
  if (!a->live) return "points to freed device memory (use after free)";
  if (owner != device) {
    return "is memory of device " + std::to_string(owner) + ", used on device " +
           std::to_string(device);
  }
  if (address(p) + bytes > a->base + a->bytes) {
    return "needs " + std::to_string(bytes) + " bytes, which run " +
           std::to_string(address(p) + bytes - a->base - a->bytes) +
           " bytes past the end of a buffer of " + std::to_string(a->bytes) + " bytes";
  }
  return "";
}

bool describe_fault(const void* p, bool write, char* text, std::size_t capacity) {
  const int owner = device_of(p);
  if (owner < 0) return false;
  const char* verb = write ? "wrote" : "read";
  const auto& allocations = memory().allocations;
  auto after = allocations.upper_bound(address(p));
  const Allocation* below = after == allocations.begin() ? nullptr : &std::prev(after)->second;
  if (below != nullptr && below->device != owner) below = nullptr;
  const Allocation* above = after == allocations.end() ? nullptr : &after->second;
  const char* place = kernel_place();
  if (below != nullptr && address(p) < below->pages + below->page_bytes) {
    const long long offset = static_cast<long long>(address(p) - below->base);
    if (!below->live) {
      std::snprintf(text, capacity,
                    "use after free:%s %s offset %lld of a freed buffer of %zu bytes",
                    *place ? place : " the host", verb, offset, below->bytes);
    } else if (*place) {
      std::snprintf(text, capacity, "%s %s memory of device %d, which is not its own", place + 1,
                    verb, owner);
    } else {
      std::snprintf(text, capacity,
                    "host touched device memory: %s offset %lld of a buffer of %zu bytes", verb,
                    offset, below->bytes);
    }
    return true;
  }
  const char* who = *place ? place + 1 : "the host";
  if (below != nullptr &&
      (above == nullptr || address(p) - below->base - below->bytes < above->base - address(p))) {
    std::snprintf(text, capacity, "%s %s past the end of a buffer of %zu bytes%s, at offset %zu",
                  who, verb, below->bytes, below->live ? "" : " (freed since)",
                  address(p) - below->base);
  } else if (above != nullptr && above->device == owner) {
    std::snprintf(text, capacity, "%s %s before the start of a buffer of %zu bytes, by %zu bytes",
                  who, verb, above->bytes, above->base - address(p));
  } else {
    std::snprintf(text, capacity, "%s %s device memory that was never allocated", who, verb);
  }
  return true;
}

bool describe_poisoned(const void* p, bool write, char* text, std::size_t capacity) {
  if (device_of(p) < 0) return false;
  const auto& allocations = memory().allocations;
  auto after = allocations.upper_bound(address(p));
  if (after == allocations.begin()) return false;
  const Allocation& a = std::prev(after)->second;
  const char* place = kernel_place();
  std::snprintf(text, capacity, "%s %s %s of a buffer of %zu bytes",
                *place ? place + 1 : "the host", write ? "wrote" : "read",
                address(p) < a.base ? "before the start" : "past the end", a.bytes);
  return true;
}

std::size_t live_device_bytes() {
  Locked locked(runtime_lock());
  std::size_t total = 0;
  for (int device = 0; device < device_count; ++device) total += memory().live_bytes[device];
  return total;
}

}  // namespace emulator
