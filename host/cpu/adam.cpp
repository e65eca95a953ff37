// Adam on the CPU: bound by memory, so one vector pass over w, m, v and the gradient.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "host/cpu/adam.cpp"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "host/cpu/problems.h"
#include "host/cpu/vector_dispatch.h"
#include "host/ops/adam.h"

#ifndef CFAA_HOST_CPU_ADAM_ONCE
#define CFAA_HOST_CPU_ADAM_ONCE
namespace cfaa::cpu {
namespace {

// StepState in the scalar of the parameters.
template <class T>
struct AdamStep {
  AdamStep(const StepState& s, double learning_rate, double decay_rate)
      : clip(static_cast<T>(s.clip)),
        beta1(static_cast<T>(s.beta1)),
        rest1(static_cast<T>(1 - s.beta1)),
        beta2(static_cast<T>(s.beta2)),
        rest2(static_cast<T>(1 - s.beta2)),
        rate(static_cast<T>(learning_rate * s.correction1)),
        correction2(static_cast<T>(s.correction2)),
        epsilon(static_cast<T>(s.epsilon)),
        decay(static_cast<T>(learning_rate * decay_rate)) {}

  T clip, beta1, rest1, beta2, rest2, rate, correction2, epsilon, decay;
};

// n adjacent parameters.
template <class T>
struct Parameters {
  const T* gradient;
  T *w, *m, *v;
  int64_t n;
};

}  // namespace
}  // namespace cfaa::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Parameters i .. i + lanes of d.
template <class D, class T>
HWY_INLINE void update_vector(D d, const AdamStep<T>& s, const Parameters<T>& p, int64_t i) {
  const auto g = hn::Mul(hn::Set(d, s.clip), hn::LoadU(d, p.gradient + i));
  const auto w = hn::LoadU(d, p.w + i);
  const auto m =
      hn::MulAdd(hn::Set(d, s.beta1), hn::LoadU(d, p.m + i), hn::Mul(hn::Set(d, s.rest1), g));
  const auto v = hn::MulAdd(hn::Set(d, s.beta2), hn::LoadU(d, p.v + i),
                            hn::Mul(hn::Set(d, s.rest2), hn::Mul(g, g)));
  const auto scale =
      hn::Add(hn::Sqrt(hn::Mul(hn::Set(d, s.correction2), v)), hn::Set(d, s.epsilon));
  const auto step =
      hn::MulAdd(hn::Set(d, s.decay), w, hn::Div(hn::Mul(hn::Set(d, s.rate), m), scale));
  hn::StoreU(m, d, p.m + i);
  hn::StoreU(v, d, p.v + i);
  hn::StoreU(hn::Sub(w, step), d, p.w + i);
}

template <class T>
void update(const AdamStep<T>& s, const Parameters<T>& p) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= p.n; i += lanes) update_vector(d, s, p, i);
  for (; i < p.n; ++i) update_vector(hn::CappedTag<T, 1>(), s, p, i);
}

// Four chains of vectors of double, joined in a fixed order.
template <class T>
double sum_of_squares(const T* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<T, decltype(d)> from;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](int64_t i) HWY_ATTR {
    if constexpr (sizeof(T) == 4) {
      return hn::PromoteTo(d, hn::LoadU(from, x + i));
    } else {
      return hn::LoadU(d, x + i);
    }
  };
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto xa = load(i), xb = load(i + lanes), xc = load(i + 2 * lanes),
               xe = load(i + 3 * lanes);
    a = hn::MulAdd(xa, xa, a);
    b = hn::MulAdd(xb, xb, b);
    c = hn::MulAdd(xc, xc, c);
    e = hn::MulAdd(xe, xe, e);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace
}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cfaa::cpu {
namespace {

constexpr int64_t kElementsAtOnce = 16384;

}  // namespace

// Chunks of elements, counted along the rows; their sums are joined in order.
template <class T>
void gradient_norm(Context& context, MatrixView<const T> gradient, const int32_t* count,
                   double* squared_norm) {
  const int64_t columns = gradient.cols();
  const int64_t rows = count == nullptr ? gradient.rows() : *count;
  const int64_t size = rows * columns;
  const int64_t chunks = (size + kElementsAtOnce - 1) / kElementsAtOnce;
  const auto parts = context.scratch().take<double, 1>({chunks});
  const auto squares = CFAA_VECTOR_DISPATCH(sum_of_squares<T>);
  context.threads().parallel_for(chunks, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      double sum = 0;
      int64_t i = chunk * kElementsAtOnce;
      const int64_t last = std::min(i + kElementsAtOnce, size);
      while (i < last) {
        const int64_t row = i / columns, stop = std::min(last, (row + 1) * columns);
        sum += squares(gradient.data + row * gradient.stride[0] + i % columns, stop - i);
        i = stop;
      }
      parts.data[chunk] = sum;
    }
  });
  for (int64_t chunk = 0; chunk < chunks; ++chunk) *squared_norm += parts.data[chunk];
}

void clip_gradient(Context& context, StepState* state) {
  const double norm = std::sqrt(state->squared_norm);
  state->clip = state->max_norm > 0 && norm > state->max_norm ? state->max_norm / norm : 1;
  if (!std::isfinite(state->squared_norm)) {
    latch_fault(context, fault_of(FaultCode::not_finite, FaultSite::gradient, 0, -1));
  }
  Fault& latch = *context.fault_latch();
  if (latched(context) && latch.step == 0) latch.step = static_cast<int64_t>(state->step) + 1;
}

template <class T>
void adam(Context& context, const StepState* state, VectorView<const T> gradient, VectorView<T> w,
          VectorView<T> m, VectorView<T> v) {
  if (latched(context)) return;
  const AdamStep<T> step(*state, state->learning_rate, state->weight_decay);
  const auto run = CFAA_VECTOR_DISPATCH(update<T>);
  context.threads().parallel_for(w.size(), kElementsAtOnce, [&](int64_t begin, int64_t end, int) {
    run(step, Parameters<T>{gradient.data + begin, w.data + begin, m.data + begin, v.data + begin,
                            end - begin});
  });
}

template <class T>
void adam_rows(Context& context, const StepState* state, const TouchedRows<T>& touched,
               MatrixView<const T> gradient, MatrixView<T> w, MatrixView<T> m, MatrixView<T> v) {
  if (latched(context)) return;
  const AdamStep<T> step(*state, state->embedding_rate, state->embedding_decay);
  const auto run = CFAA_VECTOR_DISPATCH(update<T>);
  const int64_t columns = w.cols();
  const int64_t rows_at_once = std::max<int64_t>(1, kElementsAtOnce / columns);
  context.threads().parallel_for(
      touched.count.data[0], rows_at_once, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t at = touched.row.data[i] * columns;
          run(step, Parameters<T>{gradient.data + i * gradient.stride[0], w.data + at, m.data + at,
                                  v.data + at, columns});
        }
      });
}

CFAA_FOR_FLOAT_AND_DOUBLE(gradient_norm);
CFAA_FOR_FLOAT_AND_DOUBLE(adam);
CFAA_FOR_FLOAT_AND_DOUBLE(adam_rows);

}  // namespace cfaa::cpu
#endif  // HWY_ONCE
