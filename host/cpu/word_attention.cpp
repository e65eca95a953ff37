#include "host/ops/word_attention.h"

#include <algorithm>
#include <cmath>

#include "host/cpu/blas.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 4;    // of the batch: each has up to hundreds of words
constexpr int64_t kWordsAtOnce = 16;  // in the backward of the keys

template <class T>
void add(int64_t count, T factor, const T* x, T* y) {
  for (int64_t c = 0; c < count; ++c) y[c] += factor * x[c];
}

}  // namespace

template <class T>
void word_attention(Context& context, MatrixView<const T> query, MatrixView<const T> key,
                    MatrixView<const T> value, double scale, const Bags<T>& bags, MatrixView<T> out,
                    VectorView<T> share) {
  use_one_blas_thread();
  const int32_t *offset = bags.offset.data, *word = bags.index.data;
  context.threads().parallel_for(out.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      T most = 0;
      for (int32_t e = offset[r]; e < offset[r + 1]; ++e) {
        share.data[e] = static_cast<T>(
            scale * dot(query.cols(), &query(r, 0), key.data + word[e] * key.stride[0]));
        most = e == offset[r] ? share.data[e] : std::max(most, share.data[e]);
      }
      T sum = 0;
      for (int32_t e = offset[r]; e < offset[r + 1]; ++e) {
        share.data[e] = std::exp(share.data[e] - most);
        sum += share.data[e];
      }
      std::fill_n(&out(r, 0), out.cols(), T(0));
      for (int32_t e = offset[r]; e < offset[r + 1]; ++e) {
        share.data[e] /= sum;
        add(out.cols(), share.data[e], value.data + word[e] * value.stride[0], &out(r, 0));
      }
    }
  });
}

template <class T>
void word_attention_backward(Context& context, MatrixView<const T> query, MatrixView<const T> key,
                             MatrixView<const T> value, double scale, const Bags<T>& bags,
                             VectorView<const T> share, MatrixView<const T> dout,
                             const TouchedRows<T>& touched, MatrixView<T> dquery,
                             MatrixView<T> gradient) {
  use_one_blas_thread();
  const int32_t *offset = bags.offset.data, *word = bags.index.data;
  const auto dlogit = context.scratch().template take<T, 1>({share.size()});  // d of every entry

  context.threads().parallel_for(dout.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      double along = 0;  // <dout, out>
      for (int32_t e = offset[r]; e < offset[r + 1]; ++e) {
        const double fit = dot(dout.cols(), &dout(r, 0), value.data + word[e] * value.stride[0]);
        dlogit.data[e] = static_cast<T>(fit);
        along += static_cast<double>(share.data[e]) * fit;
      }
      std::fill_n(&dquery(r, 0), dquery.cols(), T(0));
      for (int32_t e = offset[r]; e < offset[r + 1]; ++e) {
        dlogit.data[e] = static_cast<T>(scale * static_cast<double>(share.data[e]) *
                                        (static_cast<double>(dlogit.data[e]) - along));
        add(dquery.cols(), dlogit.data[e], key.data + word[e] * key.stride[0], &dquery(r, 0));
      }
    }
  });

  context.threads().parallel_for(
      touched.count.data[0], kWordsAtOnce, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          std::fill_n(&gradient(i, 0), gradient.cols(), T(0));
          for (int64_t e = touched.offset.data[i]; e < touched.offset.data[i + 1]; ++e) {
            const int64_t r = touched.bag.data[e];
            const int32_t* place =
                std::lower_bound(word + offset[r], word + offset[r + 1], touched.row.data[i]);
            add(gradient.cols(), dlogit.data[place - word], &query(r, 0), &gradient(i, 0));
          }
        }
      });
}

CFAA_FOR_FLOAT_AND_DOUBLE(word_attention);
CFAA_FOR_FLOAT_AND_DOUBLE(word_attention_backward);

}  // namespace cfaa::cpu
