#pragma once

// Code is written for any scalar and compiled for two: float, which is used, and double, so that
// gradient checks mean something.

// Instantiates a function template that is defined above, in this namespace. The signature is the
// template's own.
#define CFAA_FOR_FLOAT_AND_DOUBLE(function)           \
  template decltype(function<float>) function<float>; \
  template decltype(function<double>) function<double>
