#include "host/ops/text_convolution.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void text_convolution(Context& context, MatrixView<const T> product, VectorView<const T> bias,
                      int64_t width, const TextLists& texts, MatrixView<T> out,
                      MatrixView<int32_t> position) {
  CFAA_ASSERT(rows_are_dense(product) && rows_are_dense(out) && bias.contiguous());
  CFAA_ASSERT(width >= 1 && product.cols() == width * bias.size() && out.cols() == bias.size());
  CFAA_ASSERT(position.shape == out.shape && position.contiguous());
  CFAA_ASSERT(texts.offset.contiguous() && texts.word.contiguous());
  CFAA_ASSERT(texts.offset.size() > out.rows());
  if (out.size() == 0) return;
  CFAA_DISPATCH(context, text_convolution<T>)
  (context, product, bias, width, texts, out, position);
}

template <class T>
void text_convolution_backward(Context& context, MatrixView<const T> dout,
                               MatrixView<const int32_t> position, int64_t width,
                               const WordOccurrences& words, MatrixView<T> dproduct,
                               VectorView<T> dbias) {
  CFAA_ASSERT(rows_are_dense(dout) && rows_are_dense(dproduct) && dbias.contiguous());
  CFAA_ASSERT(position.shape == dout.shape && position.contiguous());
  CFAA_ASSERT(width >= 1 && dproduct.cols() == width * dout.cols() && dbias.size() == dout.cols());
  CFAA_ASSERT(words.offset.contiguous() && words.text.contiguous() && words.place.contiguous());
  CFAA_ASSERT(words.offset.size() > dproduct.rows() && words.text.size() == words.place.size());
  if (dout.cols() == 0) return;
  CFAA_DISPATCH(context, text_convolution_backward<T>)
  (context, dout, position, width, words, dproduct, dbias);
}

CFAA_FOR_FLOAT_AND_DOUBLE(text_convolution);
CFAA_FOR_FLOAT_AND_DOUBLE(text_convolution_backward);

}  // namespace cfaa
