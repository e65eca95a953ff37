#pragma once

// A view of a strided array that somebody else owns, on whichever device: a pointer, a shape and
// strides counted in elements. Ops take views and check shapes and strides at their boundary.

#include <array>
#include <cstdint>
#include <type_traits>

namespace cfaa {

template <class T, int Rank>
struct View {
  T* data = nullptr;
  std::array<int64_t, Rank> shape{};
  std::array<int64_t, Rank> stride{};

  View() = default;

  // Contiguous, last dimension fastest.
  View(T* pointer, std::array<int64_t, Rank> extents) : data(pointer), shape(extents) {
    int64_t step = 1;
    for (int d = Rank - 1; d >= 0; --d) {
      stride[d] = step;
      step *= shape[d];
    }
  }

  View(T* pointer, std::array<int64_t, Rank> extents, std::array<int64_t, Rank> strides)
      : data(pointer), shape(extents), stride(strides) {}

  // A view of mutable elements reads as a view of constant ones.
  template <class Constant>
  operator View<Constant, Rank>() const
      requires(std::is_same_v<Constant, const T> && !std::is_const_v<T>) {
    return {data, shape, stride};
  }

  int64_t rows() const { return shape[0]; }
  int64_t cols() const { return shape[Rank - 1]; }

  int64_t size() const {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
  }

  bool contiguous() const {
    int64_t step = 1;
    for (int d = Rank - 1; d >= 0; --d) {
      if (shape[d] != 1 && stride[d] != step) return false;
      step *= shape[d];
    }
    return true;
  }

  template <class... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == Rank);
    const std::array<int64_t, Rank> at{static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int d = 0; d < Rank; ++d) offset += at[d] * stride[d];
    return data[offset];
  }

  // The i-th slice along the first dimension.
  View<T, Rank - 1> operator[](int64_t i) const requires(Rank > 1) {
    View<T, Rank - 1> slice;
    slice.data = data + i * stride[0];
    for (int d = 1; d < Rank; ++d) {
      slice.shape[d - 1] = shape[d];
      slice.stride[d - 1] = stride[d];
    }
    return slice;
  }
};

template <class T>
using VectorView = View<T, 1>;
template <class T>
using MatrixView = View<T, 2>;

}  // namespace cfaa
