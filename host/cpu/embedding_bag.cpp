// Bags on the CPU. Forward and backward are the same sum over lists of rows: the forward's lists
// name rows of the table, the backward's name bags. Up to kVectors vectors of columns stay in
// registers over a whole list, so that each row is read once and the result written once.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "host/cpu/embedding_bag.cpp"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"

#include <cstdint>

#include "host/cpu/vector_dispatch.h"
#include "host/ops/embedding_bag.h"

#ifndef CFAA_HOST_CPU_EMBEDDING_BAG_ONCE
#define CFAA_HOST_CPU_EMBEDDING_BAG_ONCE
namespace cfaa::cpu {
namespace {

// out_r = sum_{e in offset[r] .. offset[r + 1]} weight_e x[index_e]
template <class T>
struct RowSums {
  const int32_t* offset;  // (R + 1)
  const int32_t* index;   // (E)
  const T* weight;        // (E)
  const T* x;             // rows x_stride apart
  int64_t x_stride;
  T* out;  // rows out_stride apart
  int64_t out_stride;
  int64_t columns;
};

}  // namespace
}  // namespace cfaa::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Columns first .. first + kVectors vectors of one row.
template <int kVectors, class D, class T>
HWY_INLINE void sum_columns(D d, const RowSums<T>& sums, int64_t row, int64_t first) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  for (int64_t i = sums.offset[row]; i < sums.offset[row + 1]; ++i) {
    const T* x = sums.x + sums.index[i] * sums.x_stride + first;
    const auto weight = hn::Set(d, sums.weight[i]);
    a = hn::MulAdd(weight, hn::LoadU(d, x), a);
    if constexpr (kVectors == 4) {
      b = hn::MulAdd(weight, hn::LoadU(d, x + lanes), b);
      c = hn::MulAdd(weight, hn::LoadU(d, x + 2 * lanes), c);
      e = hn::MulAdd(weight, hn::LoadU(d, x + 3 * lanes), e);
    }
  }
  T* out = sums.out + row * sums.out_stride + first;
  hn::StoreU(a, d, out);
  if constexpr (kVectors == 4) {
    hn::StoreU(b, d, out + lanes);
    hn::StoreU(c, d, out + 2 * lanes);
    hn::StoreU(e, d, out + 3 * lanes);
  }
}

template <class T>
void sum_rows(const RowSums<T>& sums, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = begin; row < end; ++row) {
    int64_t column = 0;
    for (; column + 4 * lanes <= sums.columns; column += 4 * lanes) {
      sum_columns<4>(d, sums, row, column);
    }
    for (; column + lanes <= sums.columns; column += lanes) sum_columns<1>(d, sums, row, column);
    for (; column < sums.columns; ++column) sum_columns<1>(one, sums, row, column);
  }
}

}  // namespace
}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cfaa::cpu {
namespace {

// Lists differ in length, so a thread takes few rows at a time.
constexpr int64_t kRowsAtOnce = 16;

template <class T>
void sum_in_parallel(Context& context, const RowSums<T>& sums, int64_t rows) {
  const auto run = CFAA_VECTOR_DISPATCH(sum_rows<T>);
  context.threads().parallel_for(rows, kRowsAtOnce,
                                 [&](int64_t begin, int64_t end, int) { run(sums, begin, end); });
}

}  // namespace

template <class T>
void embedding_bag(Context& context, MatrixView<const T> table, const Bags<T>& bags,
                   MatrixView<T> out) {
  sum_in_parallel<T>(context,
                     {bags.offset.data, bags.index.data, bags.weight.data, table.data,
                      table.stride[0], out.data, out.stride[0], out.cols()},
                     out.rows());
}

template <class T>
void embedding_bag_backward(Context& context, MatrixView<const T> dout,
                            const TouchedRows<T>& touched, MatrixView<T> gradient) {
  sum_in_parallel<T>(context,
                     {touched.offset.data, touched.bag.data, touched.weight.data, dout.data,
                      dout.stride[0], gradient.data, gradient.stride[0], gradient.cols()},
                     touched.count.data[0]);
}

CFAA_FOR_FLOAT_AND_DOUBLE(embedding_bag);
CFAA_FOR_FLOAT_AND_DOUBLE(embedding_bag_backward);

}  // namespace cfaa::cpu
#endif  // HWY_ONCE
