#include "host/core/device.h"

#include <cstdlib>
#include <cstring>

#include "host/core/error.h"

namespace cfaa {
namespace {

constexpr std::size_t kAlignment = 256;

class CpuRuntime final : public DeviceRuntime {
 public:
  DeviceKind kind() const override { return DeviceKind::cpu; }
  std::string description() const override { return "cpu"; }

  void* allocate(std::size_t bytes) override {
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
    if (memory == nullptr) {
      throw Error("there is no room for " + std::to_string(bytes) +
                  " bytes of memory; use a smaller batch or fewer attributes");
    }
    return memory;
  }
  void release(void* memory) noexcept override { std::free(memory); }

  void copy_from_host(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes);
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void fill_zero(void* memory, std::size_t bytes) override {
    if (bytes > 0) std::memset(memory, 0, bytes);
  }

  void synchronize() override {}

  void* allocate_host(std::size_t bytes) override { return allocate(bytes); }
  void release_host(void* memory) noexcept override { release(memory); }
  std::uint64_t mark() override { return 0; }
  void wait_for(std::uint64_t) override {}
};

}  // namespace

std::unique_ptr<DeviceRuntime> make_cpu_runtime() {
  return std::make_unique<CpuRuntime>();
}

}  // namespace cfaa
