// L_C on the CPU: a batch has a thousand scores or so, so one thread and the library's exp are
// enough.

#include "host/ops/score_loss.h"

#include <cmath>

#include "host/cpu/problems.h"

namespace cfaa::cpu {
namespace {

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): the exponential never overflows. NaN stays NaN.
double softplus(double x) {
  return (x < 0 ? 0.0 : x) + std::log1p(std::exp(-std::abs(x)));
}

double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1.0) / (1 + e);
}

// Adds up terms, and remembers the first that is not finite.
class LossSum {
 public:
  void add(int64_t row, double term) {
    total_ += term;
    if (first_ < 0 && !std::isfinite(term)) first_ = row;
  }

  template <class T>
  void write(Context& context, T* loss) const {
    *loss = static_cast<T>(total_);
    if (std::isfinite(*loss)) return;
    const Fault fault = fault_of(FaultCode::not_finite, FaultSite::score, 0, first_);
    latch_first(context, VectorView<const Fault>(&fault, {1}));
  }

 private:
  double total_ = 0;
  int64_t first_ = -1;
};

}  // namespace

template <class T>
void cross_entropy(Context& context, VectorView<const T> score, VectorView<const T> label,
                   VectorView<const T> weight, VectorView<T> loss, VectorView<T> dscore) {
  LossSum sum;
  for (int64_t r = 0; r < score.size(); ++r) {
    const double s = score.data[r], y = label.data[r], w = weight.data[r];
    dscore.data[r] = 0;
    if (w == 0) continue;
    sum.add(r, w * (softplus(s) - y * s));
    dscore.data[r] = static_cast<T>(w * (sigmoid(s) - y));
  }
  sum.write(context, loss.data);
}

template <class T>
void pairwise_loss(Context& context, VectorView<const T> score, int64_t negatives,
                   VectorView<const T> weight, VectorView<T> loss, VectorView<T> dscore) {
  const int64_t n = score.size() / (negatives + 1);
  LossSum sum;
  for (int64_t r = 0; r < n; ++r) {
    double of_positive = 0;
    for (int64_t j = n + r * negatives; j < n + (r + 1) * negatives; ++j) {
      const double w = weight.data[j];
      dscore.data[j] = 0;
      if (w == 0) continue;
      const double x = static_cast<double>(score.data[j]) - static_cast<double>(score.data[r]);
      const double ds = w * sigmoid(x);
      sum.add(r, w * softplus(x));
      dscore.data[j] = static_cast<T>(ds);
      of_positive -= ds;
    }
    dscore.data[r] = static_cast<T>(of_positive);
  }
  sum.write(context, loss.data);
}

template <class T>
void self_training_loss(Context& context, VectorView<const T> score, VectorView<const T> weight,
                        const SureScores& sure, VectorView<T> loss, VectorView<T> dscore) {
  const auto is_sure = [&](int64_t r) {
    const double p = sigmoid(score.data[r]);
    return weight.data[r] != T(0) && !(p >= sure.low && p <= sure.high);
  };
  int64_t count = 0;
  for (int64_t r = 0; r < score.size(); ++r) count += is_sure(r) ? 1 : 0;
  const double share = count > 0 ? 1 / static_cast<double>(count) : 0;
  LossSum sum;
  for (int64_t r = 0; r < score.size(); ++r) {
    dscore.data[r] = 0;
    if (!is_sure(r)) continue;
    const double p = sigmoid(score.data[r]),
                 surprise = softplus(-static_cast<double>(score.data[r]));
    sum.add(r, share * p * surprise);
    dscore.data[r] = static_cast<T>(share * p * (1 - p) * (surprise - 1));
  }
  sum.write(context, loss.data);
}

CFAA_FOR_FLOAT_AND_DOUBLE(cross_entropy);
CFAA_FOR_FLOAT_AND_DOUBLE(pairwise_loss);
CFAA_FOR_FLOAT_AND_DOUBLE(self_training_loss);

}  // namespace cfaa::cpu
