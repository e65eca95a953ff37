#include "host/cpu/inverse_sqrt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bench/reference/horizontal.h"
#include "host/cpu/blas.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

using reference::Matrix;

struct Root {
  int info;
  double trace;
  Matrix inverse;
};

// Only the upper triangle is given; the other is NaN, so that reading it shows.
Root root_of(const Matrix& a, double low, double factor = 1) {
  cpu::use_one_blas_thread();  // as make_context does: no Context here, and TSan cannot see theirs
  const int64_t n = a.rows;
  std::vector<double> scratch(static_cast<std::size_t>(cpu::InverseSqrt::scratch_size(n)));
  std::vector<double> upper = a.values;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      upper[static_cast<std::size_t>(i * n + j)] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  Root root{.info = 0, .trace = 0, .inverse = Matrix(n, n)};
  cpu::InverseSqrt work(n, scratch.data());
  root.info = work.reduce(upper.data(), low);
  if (root.info != 0) return root;
  root.trace = work.sqrt_trace();
  root.info = work.write(factor, root.inverse.values.data());
  return root;
}

Matrix square_plus(int64_t n, uint64_t seed, double spread, double delta) {
  const Matrix b(n, n, normal<double>(n * n, seed, 0, spread));
  return b * reference::transpose(b) + delta * reference::identity(n);
}

TEST(InverseSqrt, OfADiagonalMatrixIsElementwise) {
  Matrix a = reference::identity(3);
  a(0, 0) = 4;
  a(2, 2) = 1e-4;

  const Root root = root_of(a, 1e-4, 2);

  EXPECT_EQ(root.info, 0);
  EXPECT_TRUE(close(root.trace, 2 + 1 + 0.01, 1e-14));
  EXPECT_TRUE(close(root.inverse.values, std::vector<double>{1, 0, 0, 0, 2, 0, 0, 0, 200}, 1e-14));
}

TEST(InverseSqrt, EqualsJacobisAtOddSizes) {
  for (const int64_t n : {1, 2, 3, 31, 32, 33, 64, 65}) {
    for (const double spread : {1e-12, 0.03, 1.0}) {
      const Matrix a = square_plus(n, static_cast<uint64_t>(n), spread, 1e-4);

      const Root root = root_of(a, 1e-4);

      EXPECT_EQ(root.info, 0);
      EXPECT_TRUE(close(root.inverse.values, reference::power(a, -0.5).values, 1e-10))
          << n << ", " << spread;
      EXPECT_TRUE(close(root.trace, reference::trace(reference::power(a, 0.5)), 1e-12))
          << n << ", " << spread;
    }
  }
}

// The rule's own error: spectra that fill [low, high] evenly in the logarithm.
TEST(InverseSqrt, HoldsItsErrorBoundOverTwelveDecades) {
  for (const double decades : {0.0, 1.0, 4.0, 8.0, 12.0}) {
    const int64_t n = 25;
    Matrix a(n, n);
    double trace = 0;
    for (int64_t i = 0; i < n; ++i) {
      a(i, i) = std::pow(10, -decades * static_cast<double>(i) / 24.0);
      trace += std::sqrt(a(i, i));
    }

    const Root root = root_of(a, std::pow(10, -decades));

    for (int64_t i = 0; i < n; ++i) {
      EXPECT_TRUE(close(root.inverse(i, i) * std::sqrt(a(i, i)), 1.0, 3e-13)) << decades;
    }
    EXPECT_TRUE(close(root.trace, trace, 1e-13)) << decades;
  }
}

TEST(InverseSqrt, MatrixThatIsNotPositiveDefiniteIsRefused) {
  Matrix a = reference::identity(5);
  a(3, 3) = -1;
  EXPECT_NE(root_of(a, 1e-4).info, 0);
  a(3, 3) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(root_of(a, 1e-4).info, 0);
  a(3, 3) = std::numeric_limits<double>::infinity();
  EXPECT_NE(root_of(a, 1e-4).info, 0);
}

TEST(Blas, TriangularInverseGivesTheIdentityAcrossItsBlocks) {
  for (const int64_t n : {1, 31, 48, 49, 97, 200}) {
    Matrix c(n, n, normal<double>(n * n, 3, 0, 0.1));
    for (int64_t i = 0; i < n; ++i) {
      c(i, i) = 2;
      for (int64_t j = i + 1; j < n; ++j) c(i, j) = 0;
    }
    Matrix inverse = c;

    EXPECT_EQ(cpu::inverse_of_lower(n, inverse.values.data(), n), 0);

    EXPECT_TRUE(close((c * inverse).values, reference::identity(n).values, 1e-12)) << n;
  }
}

TEST(Blas, SymmetricInverseWritesBothTriangles) {
  for (const int64_t n : {2, 33, 120}) {
    const Matrix a = square_plus(n, 4, 1, 1);
    Matrix inverse = a;

    EXPECT_EQ(cpu::cholesky(n, inverse.values.data(), n), 0);
    EXPECT_EQ(cpu::inverse_from_cholesky(n, inverse.values.data(), n), 0);

    EXPECT_TRUE(close((a * inverse).values, reference::identity(n).values, 1e-9)) << n;
    EXPECT_EQ(inverse.values, reference::transpose(inverse).values);
  }
}

}  // namespace
}  // namespace cfaa::test
