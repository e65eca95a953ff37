#include "tests/on_device.h"

#include <hwy/targets.h>

#include <cstdio>
#include <cstdlib>

#include "host/core/error.h"
#include "host/device/make_context.h"

namespace cfaa::test {
namespace {

// CFAA_TEST_VECTORS=AVX2 (or SSE4) has the whole program compute with those, where this machine
// would choose wider ones.
const bool narrowed = [] {
  const char* wanted = std::getenv("CFAA_TEST_VECTORS");
  if (wanted == nullptr) return false;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (wanted == std::string(hwy::TargetName(target))) {
      hwy::SetSupportedTargetsForTest(target);
      return true;
    }
  }
  std::fprintf(stderr, "this machine or build has no %s: tested with its own vectors\n", wanted);
  return false;
}();

}  // namespace

const std::vector<std::string>& devices() {
  // Once a program: every suite asks, and a context takes its time.
  static const std::vector<std::string> found = [] {
    std::vector<std::string> names = {"cpu"};
#if CFAA_HAS_CUDA
    try {
      make_context("cuda");
      names.push_back("cuda");
    } catch (const Error&) {
      // A real CUDA build on a machine without a GPU: its tests run on the CPU alone.
    }
#endif
    return names;
  }();
  return found;
}

void OnDevice::SetUp() {
  context_ = make_context(GetParam(), {.threads = 2, .seed = 1});
}

}  // namespace cfaa::test
