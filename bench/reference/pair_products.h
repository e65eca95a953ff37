#pragma once

// The factorisation machine and NARRE's product by plain loops in double, values only: their
// central differences are the gradients. `mask` is what dropout leaves of each term.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cfaa::reference {

struct Machine {
  int64_t columns, terms;
  std::vector<double> factors, linear;  // (terms, columns), (columns)
  double bias;
};

// (R), of z (R, columns) and mask (R, terms).
inline std::vector<double> factorization_machine(const Machine& machine,
                                                 const std::vector<double>& z,
                                                 const std::vector<double>& mask) {
  const auto columns = static_cast<std::size_t>(machine.columns);
  const auto terms = static_cast<std::size_t>(machine.terms);
  std::vector<double> score(z.size() / columns, machine.bias);
  for (std::size_t r = 0; r < score.size(); ++r) {
    for (std::size_t i = 0; i < columns; ++i) {
      score[r] += machine.linear[i] * z[r * columns + i];
      for (std::size_t j = 0; j < i; ++j) {
        double product = 0;
        for (std::size_t f = 0; f < terms; ++f) {
          product += mask[r * terms + f] * machine.factors[f * columns + i] *
                     machine.factors[f * columns + j];
        }
        score[r] += product * z[r * columns + i] * z[r * columns + j];
      }
    }
  }
  return score;
}

// (R), of x, y and mask (R, columns).
inline std::vector<double> gated_product(const std::vector<double>& x, const std::vector<double>& y,
                                         const std::vector<double>& weight, double bias,
                                         const std::vector<double>& mask) {
  std::vector<double> score(x.size() / weight.size(), bias);
  for (std::size_t i = 0; i < x.size(); ++i) {
    score[i / weight.size()] += weight[i % weight.size()] * mask[i] * std::max(0.0, x[i] * y[i]);
  }
  return score;
}

}  // namespace cfaa::reference
