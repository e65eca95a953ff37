#pragma once

// Arrays of Python as views, and results as arrays, without a copy either way.

#include <cfaa/core/context.h>
#include <cfaa/core/error.h>
#include <cfaa/core/view.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "contexts.h"

namespace cfaa::python {

// A matrix that somebody passed: NumPy's, or any object's with __dlpack__.
class InputMatrix {
 public:
  // Error, naming the argument, for what is no matrix of float32 or float64 with adjacent columns
  // in the memory of a CPU or a GPU. Nothing is ever converted or copied to make it one.
  InputMatrix(nanobind::handle object, const char* name);

  bool is_double() const { return is_double_; }
  const std::string& device() const { return device_; }  // "cpu", "cuda:0"
  int64_t rows() const { return static_cast<int64_t>(array_.shape(0)); }
  int64_t cols() const { return static_cast<int64_t>(array_.shape(1)); }

  template <class T>
  MatrixView<const T> view() const {
    return {static_cast<const T*>(array_.data()), {rows(), cols()}, {row_stride_, 1}};
  }

 protected:
  nanobind::ndarray<nanobind::ro> array_;

 private:
  std::string device_;
  bool is_double_ = false;
  int64_t row_stride_ = 0;
};

// A matrix of the caller's that a result is written to.
class OutputMatrix : public InputMatrix {
 public:
  // Error as above, and for one that may only be read.
  OutputMatrix(nanobind::handle object, const char* name);

  template <class T>
  MatrixView<T> view() const {
    const MatrixView<const T> same = InputMatrix::view<T>();
    return {const_cast<T*>(same.data), same.shape, same.stride};
  }
};

// Error unless both have the type and the device of the first.
void check_alike(const InputMatrix& first, const char* first_name, const InputMatrix& second,
                 const char* second_name);

// Zeros on the context's device, which become an array of Python's.
template <class T, int Rank>
class OutputArray {
 public:
  OutputArray(const ThreadContext& used, std::array<int64_t, Rank> shape)
      : context_(used.context), gpu_(used.gpu), view_(nullptr, shape) {
    const std::size_t bytes = static_cast<std::size_t>(view_.size()) * sizeof(T);
    DeviceRuntime& runtime = context_->runtime();
    view_.data = static_cast<T*>(runtime.allocate(bytes > 0 ? bytes : sizeof(T)));
    runtime.fill_zero(view_.data, bytes);
  }
  OutputArray(OutputArray&& other) noexcept
      : context_(std::move(other.context_)),
        gpu_(other.gpu_),
        view_(std::exchange(other.view_, {})) {}
  ~OutputArray() {
    if (view_.data) context_->runtime().release(view_.data);
  }

  View<T, Rank> view() const { return view_; }

  // NumPy's on the CPU, an object with __dlpack__ on a GPU; what was queued for it is done.
  nanobind::object to_python() && {
    context_->runtime().synchronize();
    std::array<std::size_t, Rank> shape;
    for (int d = 0; d < Rank; ++d) shape[d] = static_cast<std::size_t>(view_.shape[d]);
    T* const data = view_.data;
    const bool on_cpu = context_->device() == DeviceKind::cpu;
    const int gpu = gpu_;
    const nanobind::capsule owner(new OutputArray(std::move(*this)), [](void* array) noexcept {
      delete static_cast<OutputArray*>(array);
    });
    if (on_cpu) {
      return nanobind::cast(nanobind::ndarray<nanobind::numpy, T>(data, Rank, shape.data(), owner));
    }
    return nanobind::cast(nanobind::ndarray<T, nanobind::device::cuda>(
        data, Rank, shape.data(), owner, nullptr, nanobind::dtype<T>(),
        nanobind::device::cuda::value, gpu));
  }

 private:
  std::shared_ptr<Context> context_;
  int gpu_;
  View<T, Rank> view_;
};

// For the stubs, where a function returns arrays of the caller's library.
inline nanobind::any as_any(nanobind::object object) {
  return nanobind::steal<nanobind::any>(object.release());
}

// What an op left in the scratch memory, kept for Python.
template <class T, int Rank>
OutputArray<T, Rank> keep(const ThreadContext& used, View<T, Rank> view) {
  CFAA_ASSERT(view.contiguous());
  OutputArray<T, Rank> kept(used, view.shape);
  used.context->runtime().copy(kept.view().data, view.data,
                               static_cast<std::size_t>(view.size()) * sizeof(T));
  return kept;
}

}  // namespace cfaa::python
