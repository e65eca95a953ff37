// L_C on the GPU (contract: host/ops/score_loss.h) by one block: a batch has a thousand scores or
// so, and one block adds them up in a fixed order. Terms are made in double, as on the CPU: they
// are few, and log(1 + e^s) of a score that is right loses everything in float.

#include "host/ops/score_loss.h"

#include <climits>

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"
#include "kernels/latch.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 512;  // of a block that is alone, so every register of its core is its own

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): the exponential never overflows. NaN stays NaN.
__device__ __forceinline__ double softplus(double x) {
  return (x < 0 ? 0.0 : x) + log1p(exp(-fabs(x)));
}

__device__ __forceinline__ double sigmoid(double x) {
  const double e = exp(-fabs(x));
  return (x < 0 ? e : 1.0) / (1 + e);
}

__device__ __forceinline__ bool is_finite(double x) {
  return fabs(x) <= 1.7976931348623157e308;
}

// A thread's part of the sum, and the first row of it that is not finite.
struct LossPart {
  double sum = 0;
  int bad_row = INT_MAX;

  __device__ __forceinline__ void add(int row, double term) {
    sum += term;
    if (!is_finite(term) && bad_row == INT_MAX) bad_row = row;
  }
};

// Called by every thread of the one block.
template <class T>
__device__ void join(const LossPart& part, T* loss, Fault* latch) {
  const double sum = block_sum(part.sum);
  const int bad_row = block_min(part.bad_row);
  if (threadIdx.x != 0) return;
  loss[0] = static_cast<T>(sum);
  if (is_finite(static_cast<double>(loss[0]))) return;
  latch_fault(latch, FaultCode::not_finite, FaultSite::score, 0, bad_row == INT_MAX ? -1 : bad_row);
}

// Rows first .. last of this thread: stretches in the order of the threads.
struct Stretch {
  int first, last;
};
__device__ __forceinline__ Stretch stretch_of_thread(int rows) {
  const int length = (rows + kThreads - 1) / kThreads;
  const int first = min(static_cast<int>(threadIdx.x) * length, rows);
  return {first, min(first + length, rows)};
}

// report: cross_entropy_kernel threads=512 bytes=4*R*T flops=60*R fp64
template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    cross_entropy_kernel(const T* score, const T* label, const T* weight,  // (rows)
                         int rows,
                         T* loss,    // (1)
                         T* dscore,  // (rows)
                         Fault* latch) {
  const Stretch stretch = stretch_of_thread(rows);
  LossPart part;
  for (int r = stretch.first; r < stretch.last; ++r) {
    const double w = weight[r];
    if (w == 0) {
      dscore[r] = 0;
      continue;
    }
    const double s = score[r], y = label[r];
    part.add(r, w * (softplus(s) - y * s));
    dscore[r] = static_cast<T>(w * (sigmoid(s) - y));
  }
  join(part, loss, latch);
}

// report: pairwise_loss_kernel threads=512 bytes=3*R*T flops=60*R fp64
template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    pairwise_loss_kernel(const T* score,   // (rows + rows * negatives)
                         const T* weight,  // (rows + rows * negatives)
                         int rows, int negatives,
                         T* loss,    // (1)
                         T* dscore,  // (rows + rows * negatives)
                         Fault* latch) {
  const Stretch stretch = stretch_of_thread(rows);
  LossPart part;
  for (int r = stretch.first; r < stretch.last; ++r) {
    const double positive = score[r];
    double of_positive = 0;
    for (int j = rows + r * negatives; j < rows + (r + 1) * negatives; ++j) {
      const double w = weight[j];
      if (w == 0) {
        dscore[j] = 0;
        continue;
      }
      const double x = static_cast<double>(score[j]) - positive;
      const double ds = w * sigmoid(x);
      part.add(r, w * softplus(x));
      dscore[j] = static_cast<T>(ds);
      of_positive -= ds;
    }
    dscore[r] = static_cast<T>(of_positive);
  }
  join(part, loss, latch);
}

// report: self_training_kernel threads=512 bytes=3*R*T flops=90*R fp64
template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    self_training_kernel(const T* score, const T* weight,  // (rows)
                         int rows, double low, double high,
                         T* loss,    // (1)
                         T* dscore,  // (rows)
                         Fault* latch) {
  const Stretch stretch = stretch_of_thread(rows);
  const auto is_sure = [&](int r) {
    const double p = sigmoid(score[r]);
    return weight[r] != T(0) && !(p >= low && p <= high);
  };
  int count = 0;
  for (int r = stretch.first; r < stretch.last; ++r) count += is_sure(r) ? 1 : 0;
  count = block_sum(count);
  const double share = count > 0 ? 1.0 / count : 0.0;
  LossPart part;
  for (int r = stretch.first; r < stretch.last; ++r) {
    if (!is_sure(r)) {
      dscore[r] = 0;
      continue;
    }
    const double p = sigmoid(score[r]), surprise = softplus(-static_cast<double>(score[r]));
    part.add(r, share * p * surprise);
    dscore[r] = static_cast<T>(share * p * (1 - p) * (surprise - 1));
  }
  join(part, loss, latch);
}

}  // namespace

template <class T>
void cross_entropy(Context& context, VectorView<const T> score, VectorView<const T> label,
                   VectorView<const T> weight, VectorView<T> loss, VectorView<T> dscore) {
  launch(device_of(context).stream(), cross_entropy_kernel<T>, dim3(1), dim3(kThreads), 0,
         score.data, label.data, weight.data, static_cast<int>(score.size()), loss.data,
         dscore.data, context.fault_latch());
}

template <class T>
void pairwise_loss(Context& context, VectorView<const T> score, int64_t negatives,
                   VectorView<const T> weight, VectorView<T> loss, VectorView<T> dscore) {
  launch(device_of(context).stream(), pairwise_loss_kernel<T>, dim3(1), dim3(kThreads), 0,
         score.data, weight.data, static_cast<int>(score.size() / (negatives + 1)),
         static_cast<int>(negatives), loss.data, dscore.data, context.fault_latch());
}

template <class T>
void self_training_loss(Context& context, VectorView<const T> score, VectorView<const T> weight,
                        const SureScores& sure, VectorView<T> loss, VectorView<T> dscore) {
  launch(device_of(context).stream(), self_training_kernel<T>, dim3(1), dim3(kThreads), 0,
         score.data, weight.data, static_cast<int>(score.size()), sure.low, sure.high, loss.data,
         dscore.data, context.fault_latch());
}

CFAA_FOR_FLOAT_AND_DOUBLE(cross_entropy);
CFAA_FOR_FLOAT_AND_DOUBLE(pairwise_loss);
CFAA_FOR_FLOAT_AND_DOUBLE(self_training_loss);

}  // namespace cfaa::cuda
