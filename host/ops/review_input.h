#pragma once

// review_input: the review vectors of a batch's rows, means over the sentences of a user's or an
// item's reviews, with one of these left out:
//
//   x_rc   = share_r (total_ec - sum_lc)        e the row's entity, l the review that is left out
//   out_rc = (x_rc - mean_c) factor_c           where vectors are standardized
//   out_rc = x_rc / sqrt(sum_c x_rc^2 / C)      where they have unit size
//   out_rC = 0, or 1 and zeros before it where the row has no sentence left
//
// in float whatever the model's precision, with the same bits wherever the arrays lie.

#include <cstddef>
#include <cstdint>

#include "host/core/context.h"
#include "host/core/dtype.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// What a side's vectors are made from, where the device can read it.
struct ReviewArrays {
  MatrixView<const float> total;   // (entities, C) contiguous
  DType dtype = DType::f32;        // of the sums: float32 or float16
  const std::byte* sum = nullptr;  // (reviews, C)
  int64_t reviews = 0;
  VectorView<const float> mean{};    // (C), with `factor`; null where nothing is standardized
  VectorView<const float> factor{};  // (C)
  bool unit = false;                 // not together with these
};

// A side's rows.
struct ReviewedRows {
  VectorView<int32_t> entity;
  VectorView<int32_t> left_out;  // a review of the entity, or -1
  VectorView<float> share;       // 1 over the sentences that are left; 0 where none is
};

// out (R, C + 1), in device memory; rows may be padded.
CFAA_OP(template <class T>
        void review_input(Context& context, const ReviewArrays& arrays, const ReviewedRows& rows,
                          MatrixView<T> out));

}  // namespace cfaa
