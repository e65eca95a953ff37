#include "host/ops/review_input.h"

#include <algorithm>
#include <cmath>

namespace cfaa::cpu {
namespace {

constexpr int64_t kColumnsAtOnce = 256;

// One row's vector as it is.
template <class T>
void write_mean(const ReviewArrays& arrays, int64_t entity, int64_t left_out, float share, T* out) {
  const int64_t columns = arrays.total.cols();
  const float* total = arrays.total.data + entity * columns;
  float own[kColumnsAtOnce] = {};
  for (int64_t first = 0; first < columns; first += kColumnsAtOnce) {
    const int64_t count = std::min(kColumnsAtOnce, columns - first);
    if (left_out >= 0) {
      const auto element = static_cast<std::size_t>(left_out * columns + first);
      convert<float>(arrays.dtype, arrays.sum + element * size_of(arrays.dtype), 1, count, own);
    }
    for (int64_t c = 0; c < count; ++c) {
      out[first + c] = static_cast<T>((total[first + c] - own[c]) * share);
    }
  }
}

template <class T>
void standardize(const ReviewArrays& arrays, T* out) {
  for (int64_t c = 0; c < arrays.mean.size(); ++c) {
    const float x = static_cast<float>(out[c]) - arrays.mean.data[c];
    out[c] = static_cast<T>(x * arrays.factor.data[c]);
  }
}

template <class T>
void scale_to_unit(int64_t columns, T* out) {
  double squares = 0;
  for (int64_t c = 0; c < columns; ++c) {
    squares += static_cast<double>(out[c]) * static_cast<double>(out[c]);
  }
  const double rms = std::sqrt(squares / static_cast<double>(columns));
  if (!(rms > 0)) return;
  for (int64_t c = 0; c < columns; ++c) {
    out[c] = static_cast<T>(static_cast<float>(static_cast<double>(out[c]) / rms));
  }
}

}  // namespace

template <class T>
void review_input(Context& context, const ReviewArrays& arrays, const ReviewedRows& rows,
                  MatrixView<T> out) {
  const int64_t columns = arrays.total.cols();
  context.threads().parallel_for(out.rows(), 32, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      T* row = out.data + r * out.stride[0];
      const float share = rows.share.data[r];
      row[columns] = share == 0 ? T(1) : T(0);
      if (share == 0) {
        std::fill_n(row, columns, T(0));
        continue;
      }
      write_mean(arrays, rows.entity.data[r], rows.left_out.data[r], share, row);
      if (arrays.mean.data != nullptr) standardize(arrays, row);
      if (arrays.unit) scale_to_unit(columns, row);
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(review_input);

}  // namespace cfaa::cpu
