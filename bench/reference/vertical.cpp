#include "bench/reference/vertical.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cfaa::reference {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance(const std::vector<double>& values) {
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum / static_cast<double>(values.size());
}

double attribute_alpha(const TypicalSamplesOptions& options, const std::vector<double>& source,
                       const std::vector<double>& target) {
  if (options.alpha_scale == AlphaScale::absolute) return options.alpha;
  return options.alpha * (variance(source) + variance(target)) / 2;
}

namespace {

std::vector<double> midpoint_quantiles(std::vector<double> z, std::size_t k) {
  std::sort(z.begin(), z.end());
  const double n = static_cast<double>(z.size());
  std::vector<double> m(k);
  for (std::size_t j = 0; j < k; ++j) {
    const double p =
        std::clamp((static_cast<double>(j) + 0.5) * n / static_cast<double>(k) - 0.5, 0.0, n - 1);
    const std::size_t below = static_cast<std::size_t>(p);
    const std::size_t above = std::min(below + 1, z.size() - 1);
    m[j] = z[below] + (p - static_cast<double>(below)) * (z[above] - z[below]);
  }
  return m;
}

// log sum_i exp(values_i)
double log_sum_exp(const std::vector<double>& values) {
  const double most = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += std::exp(value - most);
  return most + std::log(sum);
}

void add_loss_and_gradients(const std::vector<double>& source, const std::vector<double>& target,
                            Transport& result) {
  const std::size_t k = source.size();
  result.loss = transport_cost(result.plan, source, target);
  result.source_gradient.assign(k, 0);
  result.target_gradient.assign(k, 0);
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < k; ++j) {
      const double moved = 2 * result.plan[i * k + j] * (source[i] - target[j]);
      result.source_gradient[i] += moved;
      result.target_gradient[j] -= moved;
    }
  }
  result.marginal_error = marginal_error(result.plan, static_cast<int64_t>(k));
}

}  // namespace

TypicalColumn typical_column(const std::vector<double>& z, int64_t k, double alpha_q,
                             int64_t iterations) {
  const std::size_t n = z.size(), count = static_cast<std::size_t>(k);
  TypicalColumn column;
  column.samples = midpoint_quantiles(z, count);
  column.psi.resize(n * count);
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> exponent(count, 0.0);
      for (std::size_t j = 0; j < count && alpha_q > 0; ++j) {
        exponent[j] = -(z[i] - column.samples[j]) * (z[i] - column.samples[j]) / alpha_q;
      }
      const double total = log_sum_exp(exponent);
      for (std::size_t j = 0; j < count; ++j) {
        column.psi[i * count + j] = std::exp(exponent[j] - total);
      }
    }
    const std::vector<double> moved = samples_of(column.psi, z);
    column.weight.assign(count, 0);
    for (std::size_t j = 0; j < count; ++j) {
      for (std::size_t i = 0; i < n; ++i) column.weight[j] += column.psi[i * count + j];
      if (column.weight[j] > 0) column.samples[j] = moved[j];
    }
  }
  return column;
}

std::vector<double> samples_of(const std::vector<double>& psi, const std::vector<double>& z) {
  const std::size_t n = z.size(), k = psi.size() / n;
  std::vector<double> samples(k);
  for (std::size_t j = 0; j < k; ++j) {
    double weight = 0, weighted = 0;
    for (std::size_t i = 0; i < n; ++i) {
      weight += psi[i * k + j];
      weighted += psi[i * k + j] * z[i];
    }
    samples[j] = weighted / weight;
  }
  return samples;
}

std::vector<double> column_gradient(const TypicalColumn& column, const std::vector<double>& dm) {
  const std::size_t k = dm.size(), n = column.psi.size() / k;
  std::vector<double> dz(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < k; ++j) {
      if (column.weight[j] > 0) dz[i] += column.psi[i * k + j] * dm[j] / column.weight[j];
    }
  }
  return dz;
}

double transport_cost(const std::vector<double>& plan, const std::vector<double>& source,
                      const std::vector<double>& target) {
  const std::size_t k = source.size();
  double cost = 0;
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < k; ++j) {
      cost += plan[i * k + j] * (source[i] - target[j]) * (source[i] - target[j]);
    }
  }
  return cost;
}

double marginal_error(const std::vector<double>& plan, int64_t k) {
  const std::size_t count = static_cast<std::size_t>(k);
  const double share = 1 / static_cast<double>(k);
  double error = 0;
  for (std::size_t i = 0; i < count; ++i) {
    double row = 0, column = 0;
    for (std::size_t j = 0; j < count; ++j) {
      row += plan[i * count + j];
      column += plan[j * count + i];
    }
    error += std::abs(row - share) + std::abs(column - share);
  }
  return error;
}

Transport entropic_transport(const std::vector<double>& source, const std::vector<double>& target,
                             double epsilon, int64_t iterations, double tolerance) {
  const std::size_t k = source.size();
  const std::vector<double> uniform(k * k, 1 / (static_cast<double>(k) * static_cast<double>(k)));
  const double epsilon_q = epsilon * transport_cost(uniform, source, target);
  Transport result;
  result.iterations = 0;
  if (epsilon_q == 0) {
    result.plan = uniform;
    add_loss_and_gradients(source, target, result);
    return result;
  }

  // Potentials in units of epsilon_q: plan_ij = exp(f_i + g_j - cost_ij / epsilon_q).
  const double log_share = -std::log(static_cast<double>(k));
  std::vector<double> cost(k * k), f(k, 0.0), g(k, 0.0), exponents(k);
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < k; ++j) {
      cost[i * k + j] = (source[i] - target[j]) * (source[i] - target[j]) / epsilon_q;
    }
  }
  result.plan.resize(k * k);
  while (result.iterations < iterations) {
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j < k; ++j) exponents[j] = g[j] - cost[i * k + j];
      f[i] = log_share - log_sum_exp(exponents);
    }
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t i = 0; i < k; ++i) exponents[i] = f[i] - cost[i * k + j];
      g[j] = log_share - log_sum_exp(exponents);
    }
    ++result.iterations;
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j < k; ++j) {
        result.plan[i * k + j] = std::exp(f[i] + g[j] - cost[i * k + j]);
      }
    }
    const double error = marginal_error(result.plan, static_cast<int64_t>(k));
    if (tolerance > 0 && error <= tolerance) break;
  }
  add_loss_and_gradients(source, target, result);
  return result;
}

Transport exact_transport(const std::vector<double>& source, const std::vector<double>& target) {
  const std::size_t k = source.size();
  const auto order = [](const std::vector<double>& values) {
    std::vector<std::size_t> index(values.size());
    std::iota(index.begin(), index.end(), std::size_t{0});
    std::stable_sort(index.begin(), index.end(),
                     [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    return index;
  };
  const std::vector<std::size_t> from = order(source), to = order(target);
  Transport result;
  result.iterations = 0;
  result.plan.assign(k * k, 0);
  for (std::size_t r = 0; r < k; ++r) {
    result.plan[from[r] * k + to[r]] = 1 / static_cast<double>(k);
  }
  add_loss_and_gradients(source, target, result);
  return result;
}

Transport transport(const std::vector<double>& source, const std::vector<double>& target,
                    const CouplingOptions& options) {
  if (options.solver == OtSolver::exact) return exact_transport(source, target);
  return entropic_transport(source, target, options.epsilon, options.iterations, options.tolerance);
}

}  // namespace cfaa::reference
