#include "bench/reference/inputs.h"

#include <algorithm>
#include <limits>

#include "host/core/error.h"
#include "host/core/instantiate.h"
#include "host/core/normal.h"

namespace cfaa::reference {

template <class T>
std::vector<T> normal(int64_t count, uint64_t seed, double mean, double spread) {
  constexpr uint64_t kStream = 7;
  const Philox random{seed};
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const double n = standard_normal(random(static_cast<uint64_t>(i), kStream));
    values.push_back(static_cast<T>(mean + spread * n));
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

CFAA_FOR_FLOAT_AND_DOUBLE(normal);
template class PaddedMatrix<float>;
template class PaddedMatrix<double>;

}  // namespace cfaa::reference
