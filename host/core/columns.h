#pragma once

// Columns first to first + count of a matrix, in place.

#include "host/core/view.h"

namespace cfaa {

template <class T>
MatrixView<T> columns(MatrixView<T> matrix, int64_t first, int64_t count) {
  return {matrix.data + first, {matrix.rows(), count}, matrix.stride};
}

}  // namespace cfaa
