#pragma once

// ESAM's losses on embeddings by plain loops in double: values only, whose central differences are
// the gradients.

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/reference/embedding_sets.h"
#include "host/ops/center_loss.h"

namespace cfaa::reference {

// (D, D), with 1 / (N - 1).
inline std::vector<double> covariance(const HostSet& set) {
  const auto d = static_cast<std::size_t>(set.cols);
  std::vector<double> result(d * d);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      const auto a = set.column(static_cast<int64_t>(i)), b = set.column(static_cast<int64_t>(j));
      double mean_a = 0, mean_b = 0;
      for (std::size_t r = 0; r < a.size(); ++r) {
        mean_a += a[r] / static_cast<double>(a.size());
        mean_b += b[r] / static_cast<double>(b.size());
      }
      for (std::size_t r = 0; r < a.size(); ++r) {
        result[i * d + j] += (a[r] - mean_a) * (b[r] - mean_b) / static_cast<double>(a.size() - 1);
      }
    }
  }
  return result;
}

// Sources first, then targets.
inline double covariance_loss(const std::vector<HostSet>& sets) {
  double loss = 0;
  for (std::size_t p = 0; p < sets.size() / 2; ++p) {
    const auto source = covariance(sets[p]), target = covariance(sets[sets.size() / 2 + p]);
    for (std::size_t i = 0; i < source.size(); ++i) {
      loss += (source[i] - target[i]) * (source[i] - target[i]);
    }
  }
  return loss / static_cast<double>(sets[0].cols * sets[0].cols);
}

// v (N (1 + negatives), columns), row-major.
inline double center_loss(const std::vector<double>& v, int64_t columns, int64_t negatives,
                          const std::vector<double>& label, const std::vector<double>& weight,
                          const CenterMargins& margins) {
  const int64_t queries = static_cast<int64_t>(label.size()) / (1 + negatives);
  const auto width = static_cast<std::size_t>(columns);
  double loss = 0;
  for (int64_t q = 0; q < queries; ++q) {
    std::vector<std::vector<double>> members[2];
    for (int64_t j = 0; j <= negatives; ++j) {
      const auto row = static_cast<std::size_t>(j == 0 ? q : queries + q * negatives + j - 1);
      if (weight[row] == 0) continue;
      std::vector<double> x(v.begin() + static_cast<int64_t>(row * width),
                            v.begin() + static_cast<int64_t>((row + 1) * width));
      double norm = 0;
      for (const double value : x) norm += value * value;
      for (double& value : x) value = norm > 0 ? value / std::sqrt(norm) : 0;
      members[label[row] > 0.5].push_back(x);
    }
    std::vector<double> centre[2];
    for (int k = 0; k < 2; ++k) {
      centre[k].assign(width, 0.0);
      for (const auto& x : members[k]) {
        for (std::size_t c = 0; c < width; ++c) {
          centre[k][c] += x[c] / static_cast<double>(members[k].size());
        }
      }
      for (const auto& x : members[k]) {
        double spread = 0;
        for (std::size_t c = 0; c < width; ++c) spread += std::pow(x[c] - centre[k][c], 2);
        loss += std::max(0.0, spread - margins.inner);
      }
    }
    if (members[0].empty() || members[1].empty()) continue;
    double apart = 0;
    for (std::size_t c = 0; c < width; ++c) apart += std::pow(centre[0][c] - centre[1][c], 2);
    loss += std::max(0.0, margins.outer - apart);
  }
  return loss / static_cast<double>(queries);
}

}  // namespace cfaa::reference
