// The text convolution on the CPU. The filters of a window are adjacent, so that the loops over
// them are the compiler's vectors; a text, or a word in the backward, is one thread's.

#include "host/ops/text_convolution.h"

#include <algorithm>

namespace cfaa::cpu {
namespace {

constexpr int64_t kAtOnce = 8;          // texts, or words: their lists differ in length
constexpr int64_t kFiltersAtOnce = 64;  // whose running maxima stay in the first-level cache

// Filters first .. last of one text.
template <class T>
void convolve(MatrixView<const T> product, const T* bias, int64_t width, const int32_t* word,
              int64_t length, int64_t first, int64_t last, T* out, int32_t* position) {
  const int64_t filters = product.cols() / width, count = last - first;
  std::fill_n(out + first, count, T(0));
  std::fill_n(position + first, count, -1);
  if (length == 0) return;
  for (int64_t p = 0; p <= std::max<int64_t>(length - width, 0); ++p) {
    T sum[kFiltersAtOnce];
    std::copy_n(bias + first, count, sum);
    for (int64_t j = 0; j < std::min(width, length - p); ++j) {
      const T* from = product.data + word[p + j] * product.stride[0] + j * filters + first;
      for (int64_t f = 0; f < count; ++f) sum[f] += from[f];
    }
    for (int64_t f = 0; f < count; ++f) {
      const bool is_larger = !(sum[f] <= out[first + f]);  // NaN stays NaN
      out[first + f] = is_larger ? sum[f] : out[first + f];
      position[first + f] = is_larger ? static_cast<int32_t>(p) : position[first + f];
    }
  }
}

}  // namespace

template <class T>
void text_convolution(Context& context, MatrixView<const T> product, VectorView<const T> bias,
                      int64_t width, const TextLists& texts, MatrixView<T> out,
                      MatrixView<int32_t> position) {
  context.threads().parallel_for(out.rows(), kAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t e = begin; e < end; ++e) {
      const int32_t from = texts.offset.data[e], length = texts.offset.data[e + 1] - from;
      for (int64_t first = 0; first < out.cols(); first += kFiltersAtOnce) {
        convolve(product, bias.data, width, texts.word.data + from, length, first,
                 std::min(first + kFiltersAtOnce, out.cols()), out.data + e * out.stride[0],
                 position.data + e * position.stride[0]);
      }
    }
  });
}

template <class T>
void text_convolution_backward(Context& context, MatrixView<const T> dout,
                               MatrixView<const int32_t> position, int64_t width,
                               const WordOccurrences& words, MatrixView<T> dproduct,
                               VectorView<T> dbias) {
  const int64_t filters = dout.cols();
  context.threads().parallel_for(dproduct.rows(), kAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      T* gradient = dproduct.data + t * dproduct.stride[0];
      std::fill_n(gradient, dproduct.cols(), T(0));
      for (int64_t i = words.offset.data[t]; i < words.offset.data[t + 1]; ++i) {
        const T* from = dout.data + words.text.data[i] * dout.stride[0];
        const int32_t* at = position.data + words.text.data[i] * filters;
        for (int64_t j = 0; j < width; ++j) {
          const int32_t wanted = words.place.data[i] - static_cast<int32_t>(j);
          if (wanted < 0) break;
          T* to = gradient + j * filters;
          for (int64_t f = 0; f < filters; ++f) to[f] += at[f] == wanted ? from[f] : T(0);
        }
      }
    }
  });
  context.threads().parallel_for(filters, kFiltersAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t e = 0; e < dout.rows(); ++e) {
      const T* from = dout.data + e * dout.stride[0];
      const int32_t* at = position.data + e * filters;
      for (int64_t f = begin; f < end; ++f) dbias.data[f] += at[f] >= 0 ? from[f] : T(0);
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(text_convolution);
CFAA_FOR_FLOAT_AND_DOUBLE(text_convolution_backward);

}  // namespace cfaa::cpu
