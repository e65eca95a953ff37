#include "module.h"

#include <cfaa/core/error.h>
#include <cfaa/core/version.h>
#include <cfaa/cpu/blas_kernels.h>
#include <nanobind/nanobind.h>

#include "contexts.h"

namespace nb = nanobind;

NB_MODULE(_native, module) {
  using namespace cfaa;
  // At exit options are still in a cache, and functions in torch's compiled code.
  nb::set_leak_warnings(false);
  cpu::choose_better_blas_kernels();
  module.doc() = "The C++ library behind the package `cfaa`.";
  module.attr("version") = version();
  nb::exception<Error>(module, "Error", PyExc_ValueError);
  module.def("set_threads", &python::set_threads, nb::arg("count"));
  module.def("forget_contexts", &python::forget_contexts);
  python::bind_alignment(module);
  python::bind_data(module);
  python::bind_encoder(module);
  python::bind_report(module);
  python::bind_runs(module);
}
