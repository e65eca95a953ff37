#pragma once

// An owning, contiguous array on the device of its Context. Ops take its `view()`.

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "host/core/context.h"
#include "host/core/error.h"
#include "host/core/view.h"

namespace cfaa {

template <class T, int Rank>
class Tensor {
 public:
  Tensor() = default;

  // Uninitialised.
  Tensor(Context& context, std::array<int64_t, Rank> shape)
      : runtime_(&context.runtime()), view_(nullptr, shape) {
    view_.data = static_cast<T*>(runtime_->allocate(bytes()));
  }

  // A copy of host memory, last dimension fastest.
  Tensor(Context& context, std::array<int64_t, Rank> shape, const T* host)
      : Tensor(context, shape) {
    runtime_->copy_from_host(view_.data, host, bytes());
    runtime_->synchronize();
  }

  ~Tensor() {
    if (view_.data != nullptr) runtime_->release(view_.data);
  }
  Tensor(Tensor&& other) noexcept
      : runtime_(other.runtime_), view_(std::exchange(other.view_, {})) {}
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(view_, other.view_);
    return *this;
  }

  View<T, Rank> view() const { return view_; }
  operator View<T, Rank>() const { return view_; }
  operator View<const T, Rank>() const requires(!std::is_const_v<T>) { return view_; }

  const std::array<int64_t, Rank>& shape() const { return view_.shape; }
  int64_t size() const { return view_.size(); }
  std::size_t bytes() const { return static_cast<std::size_t>(view_.size()) * sizeof(T); }

  std::vector<T> to_host() const {
    std::vector<T> host(static_cast<std::size_t>(size()));
    runtime_->copy_to_host(host.data(), view_.data, bytes());
    runtime_->synchronize();
    return host;
  }

  void fill_zero() { runtime_->fill_zero(view_.data, bytes()); }

 private:
  DeviceRuntime* runtime_ = nullptr;
  View<T, Rank> view_;
};

// A contiguous view of device memory, copied to the host.
template <class T, int Rank>
std::vector<std::remove_const_t<T>> to_host(Context& context, View<T, Rank> view) {
  CFAA_ASSERT(view.contiguous());
  std::vector<std::remove_const_t<T>> host(static_cast<std::size_t>(view.size()));
  context.runtime().copy_to_host(host.data(), view.data, host.size() * sizeof(T));
  context.runtime().synchronize();
  return host;
}

}  // namespace cfaa
