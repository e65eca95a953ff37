#pragma once

// The horizontal loss in plain loops and double, as the headers of host/ops print it, slow
// and short enough to check by eye: what the devices are tested against. Eigenvalues come from
// Jacobi's rotations. Functions that take Xi and nu hold them fixed, as the backward does.

#include <cstdint>
#include <vector>

#include "host/ops/alignment_options.h"

namespace cfaa::reference {

struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;  // row-major

  Matrix() = default;
  Matrix(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<std::size_t>(r * c)) {}
  template <class T>
  Matrix(int64_t r, int64_t c, const std::vector<T>& v)
      : rows(r), cols(c), values(v.begin(), v.end()) {}

  double& operator()(int64_t i, int64_t j) {
    return values[static_cast<std::size_t>(i * cols + j)];
  }
  double operator()(int64_t i, int64_t j) const {
    return values[static_cast<std::size_t>(i * cols + j)];
  }
};

Matrix identity(int64_t n);
Matrix transpose(const Matrix& a);
Matrix operator*(const Matrix& a, const Matrix& b);
Matrix operator+(const Matrix& a, const Matrix& b);
Matrix operator*(double factor, const Matrix& a);
double trace(const Matrix& a);

// By Gauss-Jordan with pivoting.
Matrix inverse(Matrix a);

// a^power of a symmetric positive semidefinite matrix; eigenvalues below zero count as zero.
Matrix power(const Matrix& a, double power);

struct SlimRounds {
  double nu;
  Matrix b, theta, xi;
  std::vector<double> gamma;      // exact step only
  std::vector<double> objective;  // one per round
};

SlimRounds slim(const Matrix& z, const SlimOptions& options);

// One step from a given Xi: result.b, theta, gamma.
SlimRounds slim_step(const Matrix& z, const Matrix& xi, double nu, SlimStep step);

// 1/2 |Z - ZB|^2 + 2 nu Tr((BB' + delta I)^(1/2))
double slim_objective(const Matrix& z, const Matrix& b, double nu, double delta);

// 1/2 |Z - ZB|^2 + nu Tr(B' Phi B), which a round minimises.
double penalised_residual(const Matrix& z, const Matrix& b, double nu, const Matrix& phi);

// dZ for the gradient of B, by the printed dTheta.
Matrix slim_gradient(const Matrix& z, const SlimRounds& forward, SlimStep step,
                     const Matrix& b_gradient);

Matrix laplacian(const Matrix& b, double graph_floor);

// d_W = Tr Sigma_S + Tr Sigma_T - 2 Tr((Sigma_S^(1/2) Sigma_T Sigma_S^(1/2))^(1/2))
double graph_distance(const Matrix& b_source, const Matrix& b_target, double graph_floor);

// dB_S of the above; swap the arguments for dB_T.
Matrix graph_gradient(const Matrix& b_source, const Matrix& b_target, double graph_floor);

}  // namespace cfaa::reference
