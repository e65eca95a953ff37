#include "arrays.h"

#include <cfaa/core/error.h>
#include <fmt/format.h>
#include <nanobind/stl/string.h>

namespace cfaa::python {
namespace nb = nanobind;
namespace {

std::string class_of(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

}  // namespace

InputMatrix::InputMatrix(nb::handle object, const char* name) {
  if (!nb::try_cast(object, array_, false)) {
    throw Error(fmt::format("{}: is a {}; give an array of NumPy, or one that has __dlpack__", name,
                            class_of(object)));
  }
  const bool on_cpu = array_.device_type() == nb::device::cpu::value;
  if (!on_cpu && array_.device_type() != nb::device::cuda::value) {
    throw Error(
        fmt::format("{}: lies on a device that is neither a CPU nor an NVIDIA GPU; move "
                    "it to one of them first",
                    name));
  }
  device_ = on_cpu ? "cpu" : fmt::format("cuda:{}", array_.device_id());
  is_double_ = array_.dtype() == nb::dtype<double>();
  if (!is_double_ && array_.dtype() != nb::dtype<float>()) {
    throw Error(
        fmt::format("{}: must be of float32 or float64; convert it first, such as by "
                    "{}.astype('float32')",
                    name, name));
  }
  if (array_.ndim() != 2) {
    throw Error(fmt::format("{}: has {} dimension{}; give a matrix, a row for each user or item",
                            name, array_.ndim(), array_.ndim() == 1 ? "" : "s"));
  }
  if (array_.shape(1) > 1 && array_.stride(1) != 1) {
    throw Error(
        fmt::format("{}: the columns of a row are not adjacent in memory (Fortran order, or every "
                    "n-th column); give numpy.ascontiguousarray({})",
                    name, name));
  }
  row_stride_ = rows() > 1 ? array_.stride(0) : cols();
  if (row_stride_ < cols()) {
    throw Error(
        fmt::format("{}: its rows run backwards or lie over each other in memory; give "
                    "numpy.ascontiguousarray({})",
                    name, name));
  }
}

OutputMatrix::OutputMatrix(nb::handle object, const char* name) : InputMatrix(object, name) {
  nb::ndarray<> writable;
  if (nb::try_cast(object, writable, false)) return;
  throw Error(fmt::format("{}: may only be read; give an array that can be written", name));
}

void check_alike(const InputMatrix& first, const char* first_name, const InputMatrix& second,
                 const char* second_name) {
  if (first.is_double() != second.is_double()) {
    throw Error(fmt::format("{} is of {} and {} of {}; give both in one type", first_name,
                            first.is_double() ? "float64" : "float32", second_name,
                            second.is_double() ? "float64" : "float32"));
  }
  if (first.device() != second.device()) {
    throw Error(fmt::format("{} lies on {} and {} on {}; move one to the other's device",
                            first_name, first.device(), second_name, second.device()));
  }
}

}  // namespace cfaa::python
