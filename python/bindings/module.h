#pragma once

// The parts of cfaa._native, a file each. They take and return arrays, plain values and JSON text;
// what a user sees is made of them in python/cfaa.

#include <nanobind/nanobind.h>

namespace cfaa::python {

void bind_alignment(nanobind::module_& module);
void bind_data(nanobind::module_& module);
void bind_encoder(nanobind::module_& module);
void bind_report(nanobind::module_& module);
void bind_runs(nanobind::module_& module);

}  // namespace cfaa::python
