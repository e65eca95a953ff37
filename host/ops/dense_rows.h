#pragma once

// What most ops ask of a matrix: the columns of every row are adjacent, rows may be padded.

#include "host/core/view.h"

namespace cfaa {

template <class T>
bool rows_are_dense(const MatrixView<T>& matrix) {
  return (matrix.stride[1] == 1 || matrix.cols() == 1) &&
         (matrix.stride[0] >= matrix.cols() || matrix.rows() <= 1);
}

}  // namespace cfaa
