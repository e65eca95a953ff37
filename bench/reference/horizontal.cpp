#include "bench/reference/horizontal.h"

#include <algorithm>
#include <cmath>

#include "host/core/error.h"

namespace cfaa::reference {
namespace {

double sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

Matrix gaussian_covariance(const Matrix& b, double graph_floor) {
  Matrix l = laplacian(b, graph_floor);
  for (double& x : l.values) x += 1.0 / static_cast<double>(b.rows);
  return inverse(l);
}

}  // namespace

Matrix identity(int64_t n) {
  Matrix a(n, n);
  for (int64_t i = 0; i < n; ++i) a(i, i) = 1;
  return a;
}

Matrix transpose(const Matrix& a) {
  Matrix t(a.cols, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) t(j, i) = a(i, j);
  }
  return t;
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  CFAA_ASSERT(a.cols == b.rows);
  Matrix c(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.cols; ++k) {
      for (int64_t j = 0; j < b.cols; ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

Matrix operator+(const Matrix& a, const Matrix& b) {
  Matrix c = a;
  for (std::size_t i = 0; i < c.values.size(); ++i) c.values[i] += b.values[i];
  return c;
}

Matrix operator*(double factor, const Matrix& a) {
  Matrix c = a;
  for (double& x : c.values) x *= factor;
  return c;
}

double trace(const Matrix& a) {
  double sum = 0;
  for (int64_t i = 0; i < a.rows; ++i) sum += a(i, i);
  return sum;
}

Matrix inverse(Matrix a) {
  const int64_t n = a.rows;
  Matrix out = identity(n);
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    }
    for (int64_t j = 0; j < n; ++j) {
      std::swap(a(k, j), a(pivot, j));
      std::swap(out(k, j), out(pivot, j));
    }
    const double scale = 1 / a(k, k);
    for (int64_t j = 0; j < n; ++j) {
      a(k, j) *= scale;
      out(k, j) *= scale;
    }
    for (int64_t i = 0; i < n; ++i) {
      const double factor = a(i, k);
      if (i == k || factor == 0) continue;
      for (int64_t j = 0; j < n; ++j) {
        a(i, j) -= factor * a(k, j);
        out(i, j) -= factor * out(k, j);
      }
    }
  }
  return out;
}

// Cyclic Jacobi: each rotation zeroes one pair (p, q); quadratic once the off-diagonal is small.
Matrix power(const Matrix& symmetric, double exponent) {
  const int64_t n = symmetric.rows;
  Matrix a = symmetric, v = identity(n);
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0, all = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        all += a(i, j) * a(i, j);
        if (i != j) off += a(i, j) * a(i, j);
      }
    }
    if (off <= 1e-32 * all) break;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (a(p, q) == 0) continue;
        const double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
        const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::hypot(t, 1.0), s = t * c;
        for (int64_t i = 0; i < n; ++i) {
          const double x = a(i, p), y = a(i, q);
          a(i, p) = c * x - s * y;
          a(i, q) = s * x + c * y;
        }
        for (int64_t i = 0; i < n; ++i) {
          const double x = a(p, i), y = a(q, i);
          a(p, i) = c * x - s * y;
          a(q, i) = s * x + c * y;
          const double vx = v(i, p), vy = v(i, q);
          v(i, p) = c * vx - s * vy;
          v(i, q) = s * vx + c * vy;
        }
        a(p, q) = a(q, p) = 0;  // what rounding left there would keep the sweeps going
      }
    }
  }
  Matrix weighed = v;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) weighed(i, j) *= std::pow(std::max(a(j, j), 0.0), exponent);
  }
  return weighed * transpose(v);
}

SlimRounds slim_step(const Matrix& z, const Matrix& xi, double nu, SlimStep step) {
  const int64_t d = z.cols;
  SlimRounds r;
  r.nu = nu;
  r.xi = xi;
  r.theta = inverse(transpose(z) * z + nu * xi);
  r.b = Matrix(d, d);
  const Matrix theta_xi = r.theta * xi;
  for (int64_t j = 0; j < d; ++j) r.gamma.push_back((1 - nu * theta_xi(j, j)) / r.theta(j, j));
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      if (i == j) continue;
      r.b(i, j) = step == SlimStep::exact
                      ? -nu * theta_xi(i, j) - r.theta(i, j) * r.gamma[static_cast<std::size_t>(j)]
                      : -r.theta(i, j) / r.theta(j, j);
    }
  }
  return r;
}

SlimRounds slim(const Matrix& z, const SlimOptions& options) {
  const int64_t d = z.cols;
  double nu = options.nu;
  const double mean = trace(transpose(z) * z) / static_cast<double>(d);
  if (options.nu_scale == NuScale::relative && mean > 0) nu *= mean;
  Matrix phi = identity(d);
  std::vector<double> objective;
  for (int64_t round = 0;; ++round) {
    SlimRounds r = slim_step(z, phi + transpose(phi), nu, options.step);
    objective.push_back(slim_objective(z, r.b, nu, options.delta));
    if (round + 1 == options.iterations) {
      r.objective = objective;
      return r;
    }
    phi = power(r.b * transpose(r.b) + options.delta * identity(d), -0.5);
  }
}

double penalised_residual(const Matrix& z, const Matrix& b, double nu, const Matrix& phi) {
  const Matrix residual = z + -1.0 * (z * b);
  double sum = 0;
  for (double x : residual.values) sum += x * x;
  return sum / 2 + nu * trace(transpose(b) * phi * b);
}

double slim_objective(const Matrix& z, const Matrix& b, double nu, double delta) {
  const int64_t d = b.rows;
  return penalised_residual(z, b, 0, identity(d)) +
         2 * nu * trace(power(b * transpose(b) + delta * identity(d), 0.5));
}

Matrix slim_gradient(const Matrix& z, const SlimRounds& forward, SlimStep step,
                     const Matrix& b_gradient) {
  const int64_t d = z.cols;
  const Matrix &theta = forward.theta, &xi = forward.xi;
  Matrix g = b_gradient;
  for (int64_t j = 0; j < d; ++j) g(j, j) = 0;
  const Matrix g_xi = g * xi;
  Matrix d_theta(d, d);
  for (int64_t j = 0; j < d; ++j) {
    double g_theta = 0;
    for (int64_t i = 0; i < d; ++i) g_theta += g(i, j) * theta(i, j);
    if (step == SlimStep::paper) {
      for (int64_t i = 0; i < d; ++i) d_theta(i, j) = -g(i, j) / theta(j, j);
      d_theta(j, j) = g_theta / (theta(j, j) * theta(j, j));
    } else {
      const double gamma = forward.gamma[static_cast<std::size_t>(j)];
      for (int64_t i = 0; i < d; ++i) {
        d_theta(i, j) += -forward.nu * g_xi(i, j) - g(i, j) * gamma;
        d_theta(j, i) += forward.nu * g_theta / theta(j, j) * xi(j, i);
      }
      d_theta(j, j) += g_theta * gamma / theta(j, j);
    }
  }
  const Matrix d_gram = -1.0 * (theta * d_theta * theta);
  return z * (d_gram + transpose(d_gram));
}

Matrix laplacian(const Matrix& b, double graph_floor) {
  const int64_t d = b.rows;
  Matrix l(d, d);
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      if (i == j) continue;
      const double weight = (std::abs(b(i, j)) + std::abs(b(j, i))) / 2 + graph_floor;
      l(i, j) -= weight;
      l(i, i) += weight;
    }
  }
  return l;
}

double graph_distance(const Matrix& b_source, const Matrix& b_target, double graph_floor) {
  const Matrix source = gaussian_covariance(b_source, graph_floor);
  const Matrix target = gaussian_covariance(b_target, graph_floor);
  const Matrix root = power(source, 0.5);
  return trace(source) + trace(target) - 2 * trace(power(root * target * root, 0.5));
}

// dL_S = C_S (RR')^(1/2) C_S' - Sigma_S^2 with the symmetric root of Sigma_S for C_S.
Matrix graph_gradient(const Matrix& b_source, const Matrix& b_target, double graph_floor) {
  const int64_t d = b_source.rows;
  const Matrix source = gaussian_covariance(b_source, graph_floor);
  const Matrix target = gaussian_covariance(b_target, graph_floor);
  const Matrix root = power(source, 0.5);
  const Matrix dl = root * power(root * target * root, 0.5) * root + -1.0 * (source * source);
  Matrix db(d, d);
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      const double da_ij = dl(i, i) - dl(i, j), da_ji = dl(j, j) - dl(j, i);
      db(i, j) = sign(b_source(i, j)) * (da_ij + da_ji) / 2;
    }
  }
  return db;
}

}  // namespace cfaa::reference
