#include "host/ops/factorization_machine.h"

#include <algorithm>

namespace cfaa::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 32;
constexpr int64_t kColumnsAtOnce = 16;

// s = <V_f, z> and sum_k V_fk^2 z_k^2 of one row.
struct FactorSums {
  double sum = 0, squares = 0;
};
template <class T>
FactorSums factor_sums(MatrixView<const T> factors, int64_t f, const T* z) {
  const T* v = factors.data + f * factors.stride[0];
  FactorSums sums;
  for (int64_t k = 0; k < factors.cols(); ++k) {
    const double product = static_cast<double>(v[k]) * static_cast<double>(z[k]);
    sums.sum += product;
    sums.squares += product * product;
  }
  return sums;
}

}  // namespace

template <class T>
void factorization_machine(Context& context, MatrixView<const T> z,
                           const FactorizationMachine<T>& machine, const Dropout& dropout,
                           VectorView<T> score) {
  const DropoutDraw mask(context.random(), dropout);
  const int64_t factors = machine.factors.rows();
  context.threads().parallel_for(z.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = z.data + r * z.stride[0];
      double total = machine.bias.data[0];
      for (int64_t k = 0; k < z.cols(); ++k) {
        total += static_cast<double>(machine.linear.data[k]) * static_cast<double>(row[k]);
      }
      for (int64_t f = 0; f < factors; ++f) {
        const FactorSums sums = factor_sums(machine.factors, f, row);
        total += mask.factor(r * factors + f) * 0.5 * (sums.sum * sums.sum - sums.squares);
      }
      score.data[r] += static_cast<T>(total);
    }
  });
}

template <class T>
void factorization_machine_backward(Context& context, MatrixView<const T> z,
                                    const FactorizationMachine<T>& machine, const Dropout& dropout,
                                    VectorView<const T> dscore, MatrixView<T> dz,
                                    const FactorizationMachineGradient<T>& gradient) {
  const DropoutDraw mask(context.random(), dropout);
  const int64_t rows = z.rows(), columns = z.cols(), factors = machine.factors.rows();
  // Of row r and factor f: g, and g s.
  const auto terms = context.scratch().template take<T, 3>({rows, factors, 2});

  context.threads().parallel_for(rows, kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = z.data + r * z.stride[0];
      T* out = dz.data + r * dz.stride[0];
      for (int64_t k = 0; k < columns; ++k) out[k] = dscore.data[r] * machine.linear.data[k];
      for (int64_t f = 0; f < factors; ++f) {
        const double factor = mask.factor(r * factors + f) * static_cast<double>(dscore.data[r]);
        const T g = static_cast<T>(factor);
        const T gs = static_cast<T>(factor * factor_sums(machine.factors, f, row).sum);
        const T* v = machine.factors.data + f * machine.factors.stride[0];
        for (int64_t k = 0; k < columns; ++k) out[k] += v[k] * (gs - g * v[k] * row[k]);
        terms(r, f, 0) = g;
        terms(r, f, 1) = gs;
      }
    }
  });

  // Parameters, by columns: each thread adds up its own in the order of the rows.
  context.threads().parallel_for(columns, kColumnsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = z.data + r * z.stride[0];
      for (int64_t k = begin; k < end; ++k) gradient.linear.data[k] += dscore.data[r] * row[k];
      for (int64_t f = 0; f < factors; ++f) {
        const T g = terms(r, f, 0), gs = terms(r, f, 1);
        const T* v = machine.factors.data + f * machine.factors.stride[0];
        T* dv = gradient.factors.data + f * gradient.factors.stride[0];
        for (int64_t k = begin; k < end; ++k) dv[k] += row[k] * (gs - g * v[k] * row[k]);
      }
    }
  });
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) sum += static_cast<double>(dscore.data[r]);
  gradient.bias.data[0] += static_cast<T>(sum);
}

CFAA_FOR_FLOAT_AND_DOUBLE(factorization_machine);
CFAA_FOR_FLOAT_AND_DOUBLE(factorization_machine_backward);

}  // namespace cfaa::cpu
