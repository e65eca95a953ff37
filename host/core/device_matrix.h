#pragma once

// A matrix in host memory as the device sees it: itself on the CPU, a copy on a GPU.

#include "host/core/tensor.h"

namespace cfaa {

template <class T>
class DeviceMatrix {
 public:
  // `host` is contiguous and outlives this.
  DeviceMatrix(Context& context, MatrixView<const T> host) : view_(host) {
    CFAA_ASSERT(host.contiguous());
    if (context.device() == DeviceKind::cpu) return;
    copy_ = Tensor<T, 2>(context, host.shape, host.data);
    view_ = copy_.view();
  }
  MatrixView<const T> view() const { return view_; }

 private:
  Tensor<T, 2> copy_;
  MatrixView<const T> view_;
};

}  // namespace cfaa
