// The centre loss on the CPU: a query is one thread's, in double.

#include "host/ops/center_loss.h"

#include <algorithm>
#include <cmath>

#include "host/ops/sum.h"

namespace cfaa::cpu {
namespace {

// One query's rows and its centres.
template <class T>
class Query {
 public:
  // `memory` holds 4 D numbers.
  Query(MatrixView<const T> v, int64_t queries, int64_t negatives, int64_t query,
        VectorView<const T> label, VectorView<const T> weight, double* memory)
      : v_(v),
        first_(query),
        rest_(queries + query * negatives),
        size_(1 + negatives),
        label_(label),
        weight_(weight) {
    for (int k = 0; k < 2; ++k) {
      centre_[k] = memory + k * v.cols();
      gradient_[k] = memory + (2 + k) * v.cols();
    }
    std::fill_n(memory, 4 * v.cols(), 0.0);
  }

  // The query's part of the sum; adds factor times its gradient.
  double run(const CenterMargins& margins, double factor, MatrixView<T> dv) {
    find_centres();
    double loss = 0;
    for (int64_t j = 0; j < size_; ++j) {
      if (has(j)) loss += std::max(0.0, spread(j) - margins.inner);
    }
    for (int64_t j = 0; j < size_; ++j) {
      if (!has(j) || !(spread(j) > margins.inner)) continue;
      const int k = label(j);
      for_each_entry(j, [&](int64_t q, double x) { gradient_[k][q] -= 2 * (x - centre_[k][q]); });
    }
    if (count_[0] > 0 && count_[1] > 0) {
      double apart = 0;
      for (int64_t q = 0; q < v_.cols(); ++q) {
        const double difference = centre_[0][q] - centre_[1][q];
        apart += difference * difference;
      }
      if (apart < margins.outer) {
        loss += margins.outer - apart;
        for (int64_t q = 0; q < v_.cols(); ++q) {
          const double difference = centre_[0][q] - centre_[1][q];
          gradient_[0][q] -= 2 * difference;
          gradient_[1][q] += 2 * difference;
        }
      }
    }
    for (int64_t j = 0; j < size_; ++j) add_gradient(j, margins, factor, dv);
    return loss;
  }

 private:
  int64_t row(int64_t j) const { return j == 0 ? first_ : rest_ + j - 1; }
  bool has(int64_t j) const { return weight_.data[row(j)] != T(0); }
  int label(int64_t j) const { return label_.data[row(j)] > T(0.5) ? 1 : 0; }

  double norm(int64_t j) const {
    double sum = 0;
    for (int64_t q = 0; q < v_.cols(); ++q) {
      const double value = v_(row(j), q);
      sum += value * value;
    }
    return std::sqrt(sum);
  }

  // body(q, x_jq)
  template <class Body>
  void for_each_entry(int64_t j, Body body) const {
    const double length = norm(j), inverse = length > 0 ? 1 / length : 0;
    for (int64_t q = 0; q < v_.cols(); ++q) body(q, v_(row(j), q) * inverse);
  }

  void find_centres() {
    for (int64_t j = 0; j < size_; ++j) {
      if (!has(j)) continue;
      double* centre = centre_[label(j)];
      ++count_[label(j)];
      for_each_entry(j, [&](int64_t q, double x) { centre[q] += x; });
    }
    for (int k = 0; k < 2; ++k) {
      if (count_[k] == 0) continue;
      for (int64_t q = 0; q < v_.cols(); ++q) centre_[k][q] /= static_cast<double>(count_[k]);
    }
  }

  // |x_j - c_k(j)|^2
  double spread(int64_t j) const {
    const double* centre = centre_[label(j)];
    double sum = 0;
    for_each_entry(j, [&](int64_t q, double x) { sum += (x - centre[q]) * (x - centre[q]); });
    return sum;
  }

  // dx_j = 2 (x_j - c_k) where that is beyond the margin, + dc_k / n_k;
  // dv_j = (dx_j - <x_j, dx_j> x_j) / |v_j|
  void add_gradient(int64_t j, const CenterMargins& margins, double factor, MatrixView<T> dv) {
    const double length = norm(j);
    if (!has(j) || length == 0) return;
    const int k = label(j);
    const double outside = spread(j) > margins.inner ? 2.0 : 0.0;
    const double share = 1 / static_cast<double>(count_[k]);
    const auto dx = [&](int64_t q, double x) {
      return outside * (x - centre_[k][q]) + share * gradient_[k][q];
    };
    double along = 0;
    for_each_entry(j, [&](int64_t q, double x) { along += x * dx(q, x); });
    for_each_entry(j, [&](int64_t q, double x) {
      dv(row(j), q) += static_cast<T>(factor * (dx(q, x) - along * x) / length);
    });
  }

  MatrixView<const T> v_;
  int64_t first_, rest_, size_;
  VectorView<const T> label_, weight_;
  double *centre_[2], *gradient_[2];  // (D) each
  int64_t count_[2] = {0, 0};
};

}  // namespace

template <class T>
void center_loss(Context& context, MatrixView<const T> v, int64_t negatives,
                 VectorView<const T> label, VectorView<const T> weight,
                 const CenterMargins& margins, double scale, VectorView<T> loss, MatrixView<T> dv) {
  const int64_t queries = v.rows() / (1 + negatives);
  const double share = 1 / static_cast<double>(queries);
  const auto of_query = context.scratch().template take<T, 1>({queries});
  const auto memory =
      context.scratch().template take<double, 2>({context.threads().threads(), 4 * v.cols()});
  context.threads().parallel_for(queries, 8, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t q = begin; q < end; ++q) {
      Query<T> query(v, queries, negatives, q, label, weight, memory[worker].data);
      of_query.data[q] = static_cast<T>(query.run(margins, scale * share, dv));
    }
  });
  cpu::sum<T>(context, of_query, share, loss);
}

CFAA_FOR_FLOAT_AND_DOUBLE(center_loss);

}  // namespace cfaa::cpu
