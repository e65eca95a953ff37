#pragma once

// What a hand-written gradient is held against.

#include <vector>

namespace cfaa::test {

// (f(x + h e_i) - f(x - h e_i)) / 2h for every i.
template <class F>
std::vector<double> central_differences(const std::vector<double>& x, F f, double h = 1e-5) {
  std::vector<double> result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<double> up = x, down = x;
    up[i] += h;
    down[i] -= h;
    result.push_back((f(up) - f(down)) / (2 * h));
  }
  return result;
}

}  // namespace cfaa::test
