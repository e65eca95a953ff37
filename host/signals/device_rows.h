#pragma once

// A SparseRows in the memory of the context's device, for host/ops/sparse_product.h.

#include "host/core/tensor.h"
#include "host/ops/sparse_product.h"
#include "host/signals/sparse_rows.h"

namespace cfaa {

class DeviceRows {
 public:
  DeviceRows() = default;
  DeviceRows(Context& context, const SparseRows& rows)
      : rows_(rows.rows()),
        columns_(rows.columns),
        offset_(context, {rows.rows() + 1}, rows.offset.data()),
        column_(context, {rows.entries()}, rows.column.data()),
        value_(context, {rows.entries()}, rows.value.data()) {}

  SparseView view() const {
    return {rows_, columns_, offset_.view().data, column_.view().data, value_.view().data};
  }

 private:
  int64_t rows_ = 0, columns_ = 0;
  Tensor<int64_t, 1> offset_;
  Tensor<int32_t, 1> column_;
  Tensor<float, 1> value_;
};

}  // namespace cfaa
