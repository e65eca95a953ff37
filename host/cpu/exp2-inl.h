// 2^x for vectors of float and double, made for the exponents of softmax weights and kernels.
// Compiled once per Highway target: include it after hwy/highway.h.

#if defined(CFAA_HOST_CPU_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CFAA_HOST_CPU_EXP2_INL_H_
#undef CFAA_HOST_CPU_EXP2_INL_H_
#else
#define CFAA_HOST_CPU_EXP2_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Exponents are cut off here: what is smaller comes out as 2^kSmallestExponent, which no sum of
// weights near 1 notices. Well inside the type's range, so that products of it are no denormals.
template <class T>
inline constexpr T kSmallestExponent = sizeof(T) == 4 ? T(-120) : T(-1000);

template <class T>
inline constexpr T kLog2E = T(1.4426950408889634);

// 2^f for |f| <= 1/2. Float: minimax of degree 5, 7.5e-8 relative before rounding, about 2e-7 after
// it. Double: the series to degree 13, 4e-18 before rounding.
template <class D>
HWY_INLINE hn::Vec<D> exp2_of_fraction(D d, hn::Vec<D> f) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    auto p = hn::Set(d, 0.001327647129073739f);
    p = hn::MulAdd(p, f, hn::Set(d, 0.009675540961325169f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.05550713092088699f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.24022120237350464f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.6931469440460205f));
    return hn::MulAdd(p, f, hn::Set(d, 1.0f));
  } else {
    auto p = hn::Set(d, 1.3691488853904124e-12);
    p = hn::MulAdd(p, f, hn::Set(d, 2.5678435993488196e-11));
    p = hn::MulAdd(p, f, hn::Set(d, 4.44553827187081e-10));
    p = hn::MulAdd(p, f, hn::Set(d, 7.054911620801121e-09));
    p = hn::MulAdd(p, f, hn::Set(d, 1.0178086009239696e-07));
    p = hn::MulAdd(p, f, hn::Set(d, 1.3215486790144305e-06));
    p = hn::MulAdd(p, f, hn::Set(d, 1.5252733804059838e-05));
    p = hn::MulAdd(p, f, hn::Set(d, 1.5403530393381606e-04));
    p = hn::MulAdd(p, f, hn::Set(d, 1.3333558146428441e-03));
    p = hn::MulAdd(p, f, hn::Set(d, 9.618129107628477e-03));
    p = hn::MulAdd(p, f, hn::Set(d, 5.5504108664821576e-02));
    p = hn::MulAdd(p, f, hn::Set(d, 2.402265069591007e-01));
    p = hn::MulAdd(p, f, hn::Set(d, 6.931471805599453e-01));
    return hn::MulAdd(p, f, hn::Set(d, 1.0));
  }
}

// 2^max(x, kSmallestExponent) for x <= 100 that is not NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp2(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  x = hn::Max(x, hn::Set(d, kSmallestExponent<T>));
  // Adding 1.5 * 2^mantissa rounds to an integer and leaves it in the low bits, from where a shift
  // takes it to the exponent.
  const hn::RebindToSigned<D> di;
  constexpr int kMantissaBits = sizeof(T) == 4 ? 23 : 52;
  const auto magic = hn::Set(d, T(1.5) * static_cast<T>(int64_t{1} << kMantissaBits));
  const auto shifted = hn::Add(x, magic);
  const auto p = exp2_of_fraction(d, hn::Sub(x, hn::Sub(shifted, magic)));
  const auto power = hn::ShiftLeft<kMantissaBits>(hn::BitCast(di, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), power));
}

}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CFAA_HOST_CPU_EXP2_INL_H_
