#include "host/ops/factorization_machine.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {
namespace {

template <class T>
void check(MatrixView<const T> z, const FactorizationMachine<T>& machine, const Dropout& dropout) {
  CFAA_ASSERT(rows_are_dense(z) && rows_are_dense(machine.factors));
  CFAA_ASSERT(machine.factors.cols() == z.cols() && machine.linear.size() == z.cols());
  CFAA_ASSERT(machine.linear.contiguous() && machine.bias.size() == 1);
  CFAA_ASSERT(dropout.p >= 0 && dropout.p < 1);
}

}  // namespace

template <class T>
void factorization_machine(Context& context, MatrixView<const T> z,
                           const FactorizationMachine<T>& machine, const Dropout& dropout,
                           VectorView<T> score) {
  check(z, machine, dropout);
  CFAA_ASSERT(score.size() == z.rows() && score.contiguous());
  if (z.rows() == 0) return;
  CFAA_DISPATCH(context, factorization_machine<T>)(context, z, machine, dropout, score);
}

template <class T>
void factorization_machine_backward(Context& context, MatrixView<const T> z,
                                    const FactorizationMachine<T>& machine, const Dropout& dropout,
                                    VectorView<const T> dscore, MatrixView<T> dz,
                                    const FactorizationMachineGradient<T>& gradient) {
  check(z, machine, dropout);
  CFAA_ASSERT(dscore.size() == z.rows() && dscore.contiguous());
  CFAA_ASSERT(dz.shape == z.shape && rows_are_dense(dz));
  CFAA_ASSERT(gradient.factors.shape == machine.factors.shape && rows_are_dense(gradient.factors));
  CFAA_ASSERT(gradient.linear.size() == z.cols() && gradient.linear.contiguous());
  CFAA_ASSERT(gradient.bias.size() == 1);
  if (z.rows() == 0) return;

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, factorization_machine_backward<T>)
  (context, z, machine, dropout, dscore, dz, gradient);
}

CFAA_FOR_FLOAT_AND_DOUBLE(factorization_machine);
CFAA_FOR_FLOAT_AND_DOUBLE(factorization_machine_backward);

}  // namespace cfaa
