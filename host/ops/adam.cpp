#include "host/ops/adam.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void gradient_norm(Context& context, MatrixView<const T> gradient, const int32_t* count,
                   double* squared_norm) {
  CFAA_ASSERT(rows_are_dense(gradient) && squared_norm != nullptr);
  if (gradient.size() == 0) return;
  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, gradient_norm<T>)(context, gradient, count, squared_norm);
}

void clip_gradient(Context& context, StepState* state) {
  CFAA_ASSERT(state != nullptr);
  CFAA_DISPATCH(context, clip_gradient)(context, state);
}

template <class T>
void adam(Context& context, const StepState* state, VectorView<const T> gradient, VectorView<T> w,
          VectorView<T> m, VectorView<T> v) {
  CFAA_ASSERT(state != nullptr && gradient.contiguous() && w.contiguous() && m.contiguous() &&
              v.contiguous());
  CFAA_ASSERT(w.size() == gradient.size() && m.size() == w.size() && v.size() == w.size());
  if (w.size() == 0) return;
  CFAA_DISPATCH(context, adam<T>)(context, state, gradient, w, m, v);
}

template <class T>
void adam_rows(Context& context, const StepState* state, const TouchedRows<T>& touched,
               MatrixView<const T> gradient, MatrixView<T> w, MatrixView<T> m, MatrixView<T> v) {
  CFAA_ASSERT(state != nullptr && w.contiguous() && m.contiguous() && v.contiguous());
  CFAA_ASSERT(m.shape == w.shape && v.shape == w.shape);
  CFAA_ASSERT(rows_are_dense(gradient) && gradient.cols() == w.cols());
  CFAA_ASSERT(touched.count.size() == 1 && touched.row.contiguous() &&
              gradient.rows() >= touched.row.size());
  if (w.size() == 0 || touched.row.size() == 0) return;
  CFAA_DISPATCH(context, adam_rows<T>)(context, state, touched, gradient, w, m, v);
}

CFAA_FOR_FLOAT_AND_DOUBLE(gradient_norm);
CFAA_FOR_FLOAT_AND_DOUBLE(adam);
CFAA_FOR_FLOAT_AND_DOUBLE(adam_rows);

}  // namespace cfaa
