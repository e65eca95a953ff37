#include "tests/on_device.h"

#include <hwy/targets.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numbers>

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

std::vector<std::string> devices() {
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
}

void OnDevice::SetUp() {
  context_ = make_context(GetParam(), {.threads = 2, .seed = 1});
}

template <class T>
std::vector<T> normal(int64_t count, uint64_t seed, double mean, double spread) {
  const Philox random{seed};
  std::vector<T> values(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const Philox::Block block = random(static_cast<uint64_t>(i), 7);
    const double u = (block.word[0] + 0.5) / 4294967296.0;
    const double v = (block.word[1] + 0.5) / 4294967296.0;
    const double n = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    values[static_cast<std::size_t>(i)] = static_cast<T>(mean + spread * n);
  }
  return values;
}

template <class T>
PaddedMatrix<T>::PaddedMatrix(Context& context, int64_t rows, int64_t cols,
                              const std::vector<T>& values, int64_t padding)
    : rows_(rows), cols_(cols), padding_(padding) {
  CFAA_ASSERT(static_cast<int64_t>(values.size()) == rows * cols);
  std::vector<T> padded(static_cast<std::size_t>(rows * (cols + padding)),
                        std::numeric_limits<T>::quiet_NaN());
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(values.begin() + r * cols, cols, padded.begin() + r * (cols + padding));
  }
  storage_ = Tensor<T, 2>(context, {rows, cols + padding}, padded.data());
}

template <class T>
MatrixView<T> PaddedMatrix<T>::view() const {
  return {storage_.view().data, {rows_, cols_}, {cols_ + padding_, 1}};
}

template <class T>
std::vector<T> PaddedMatrix<T>::to_host() const {
  const std::vector<T> padded = storage_.to_host();
  std::vector<T> values(static_cast<std::size_t>(rows_ * cols_));
  for (int64_t r = 0; r < rows_; ++r) {
    std::copy_n(padded.begin() + r * (cols_ + padding_), cols_, values.begin() + r * cols_);
  }
  return values;
}

template std::vector<float> normal<float>(int64_t, uint64_t, double, double);
template std::vector<double> normal<double>(int64_t, uint64_t, double, double);
template class PaddedMatrix<float>;
template class PaddedMatrix<double>;

}  // namespace cfaa::test
