#pragma once

// Linear layers and the MLP scorer by plain loops in double, from numbers as the host holds them.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/reference/inputs.h"
#include "host/ops/grouped_linear.h"

namespace cfaa::reference {

struct LayerExtents {
  int64_t m, k, n;  // rows, inputs, outputs
};

// What one tower's layer works on (host/ops/grouped_linear.h); rows tight.
template <class T>
struct LinearInputs {
  LayerExtents e;
  std::vector<T> x, weight, bias, dy;
};

template <class T>
LinearInputs<T> random_layer(LayerExtents e, uint64_t seed) {
  return {e, normal<T>(e.m * e.k, seed), normal<T>(e.n * e.k, seed + 1), normal<T>(e.n, seed + 2),
          normal<T>(e.m * e.n, seed + 3)};
}

template <class T>
struct LinearOutputs {
  std::vector<T> y, dx, dweight, dbias;
};

// Parameter gradients are added to `start`.
template <class T>
LinearOutputs<double> linear_layer(const LinearInputs<T>& in, Activation activation,
                                   double start = 0) {
  const auto [m, k, n] = in.e;
  const auto at = [](int64_t i, int64_t columns, int64_t j) {
    return static_cast<std::size_t>(i * columns + j);
  };
  LinearOutputs<double> out{std::vector<double>(static_cast<std::size_t>(m * n)),
                            std::vector<double>(static_cast<std::size_t>(m * k)),
                            std::vector<double>(static_cast<std::size_t>(n * k), start),
                            std::vector<double>(static_cast<std::size_t>(n), start)};
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double y = in.bias[static_cast<std::size_t>(j)];
      for (int64_t l = 0; l < k; ++l) {
        y += static_cast<double>(in.x[at(i, k, l)]) * in.weight[at(j, k, l)];
      }
      const bool passes = activation == Activation::none || y > 0;
      out.y[at(i, n, j)] = passes ? y : 0;
      if (!passes) continue;
      const double p = in.dy[at(i, n, j)];
      out.dbias[static_cast<std::size_t>(j)] += p;
      for (int64_t l = 0; l < k; ++l) {
        out.dx[at(i, k, l)] += p * in.weight[at(j, k, l)];
        out.dweight[at(j, k, l)] += p * in.x[at(i, k, l)];
      }
    }
  }
  return out;
}

// The MLP scorer behind its first layer (host/ops/pair_scores.h).
template <class T>
struct MlpLayer {
  int64_t in, out;
  std::vector<T> weight, bias;  // (out, in), (out)
};

template <class T>
struct Mlp {
  int64_t units;
  std::vector<MlpLayer<T>> layers;
};

// The units of the first hidden layer, then of the further ones.
template <class T>
Mlp<T> random_mlp(const std::vector<int64_t>& units) {
  Mlp<T> mlp{units[0], {}};
  for (std::size_t l = 0; l < units.size(); ++l) {
    const int64_t in = units[l], out = l + 1 < units.size() ? units[l + 1] : 1;
    mlp.layers.push_back({in, out, normal<T>(in * out, 50 + l), normal<T>(out, 60 + l)});
  }
  return mlp;
}

// (R, C) of users (R, units) and items (C, units).
template <class T>
std::vector<double> mlp_scores(const Mlp<T>& mlp, const std::vector<T>& users,
                               const std::vector<T>& items) {
  std::vector<double> scores;
  const auto units = static_cast<std::size_t>(mlp.units);
  for (std::size_t r = 0; r < users.size() / units; ++r) {
    for (std::size_t c = 0; c < items.size() / units; ++c) {
      std::vector<double> x;
      for (std::size_t h = 0; h < units; ++h) {
        x.push_back(std::max(0.0, static_cast<double>(users[r * units + h]) +
                                      static_cast<double>(items[c * units + h])));
      }
      for (std::size_t l = 0; l < mlp.layers.size(); ++l) {
        const MlpLayer<T>& layer = mlp.layers[l];
        std::vector<double> y(layer.bias.begin(), layer.bias.end());
        for (std::size_t o = 0; o < y.size(); ++o) {
          for (std::size_t i = 0; i < x.size(); ++i) y[o] += layer.weight[o * x.size() + i] * x[i];
          if (l + 1 < mlp.layers.size()) y[o] = std::max(y[o], 0.0);
        }
        x = y;
      }
      scores.push_back(x[0]);
    }
  }
  return scores;
}

}  // namespace cfaa::reference
