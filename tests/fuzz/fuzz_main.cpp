// The libFuzzer program: runs the target that CFAA_FUZZ_TARGET names, or lists all. See tools/fuzz.

#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace {

const cfaa::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("CFAA_FUZZ_TARGET");
  for (const cfaa::fuzz::Target& target : cfaa::fuzz::kTargets) {
    if (name != nullptr && std::string_view(name) == target.name) chosen = &target;
  }
  if (chosen != nullptr) return 0;
  for (const cfaa::fuzz::Target& target : cfaa::fuzz::kTargets) std::puts(target.name);
  std::exit(name == nullptr ? 0 : 2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
