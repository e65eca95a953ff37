// One libFuzzer program per target: CFAA_FUZZ_TARGET names it. See tools/fuzz.

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  cfaa::fuzz::CFAA_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
