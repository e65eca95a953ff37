// cuBLAS and cuSOLVER in row-major terms: a swapped operand, triangle or leading dimension shows
// against plain loops on matrices that are neither square nor symmetric, with padded rows.

#if CFAA_HAS_CUDA

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cuda/blas.h"
#include "cuda/solver.h"
#include "host/core/error.h"
#include "host/core/tensor.h"
#include "tests/compare.h"
#include "tests/on_cuda.h"

namespace cfaa::test {
namespace {

using cuda::Transpose;

class Libraries : public OnCuda {};

double& element(std::vector<double>& matrix, int64_t columns, int64_t i, int64_t j) {
  return matrix[static_cast<std::size_t>(i * columns + j)];
}

// op(a) op(b), m x n, from tight row-major a and b.
std::vector<double> product(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k,
                            std::vector<double> a, std::vector<double> b) {
  std::vector<double> c(static_cast<std::size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l) {
        element(c, n, i, j) += (ta == Transpose::no ? element(a, k, i, l) : element(a, m, l, i)) *
                               (tb == Transpose::no ? element(b, n, l, j) : element(b, k, j, l));
      }
    }
  }
  return c;
}

TEST_F(Libraries, ProductsOfPaddedMatricesMatchPlainLoops) {
  const int64_t m = 5, n = 3, k = 4;
  const std::vector<double> a = normal<double>(m * k, 1), b = normal<double>(k * n, 2),
                            start = normal<double>(m * n, 3);
  for (const Transpose ta : {Transpose::no, Transpose::yes}) {
    for (const Transpose tb : {Transpose::no, Transpose::yes}) {
      const PaddedMatrix<double> x(context(), ta == Transpose::no ? m : k,
                                   ta == Transpose::no ? k : m, a, 2);
      const PaddedMatrix<double> y(context(), tb == Transpose::no ? k : n,
                                   tb == Transpose::no ? n : k, b, 1);
      const PaddedMatrix<double> z(context(), m, n, start, 3);

      cuda::gemm<double>(device(), ta, tb, 2, x.view(), y.view(), 0.5, z.view());

      std::vector<double> expected = product(ta, tb, m, n, k, a, b);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = 2 * expected[i] + 0.5 * start[i];
      }
      EXPECT_TRUE(close(z.to_host(), expected, 1e-14));
    }
  }
}

TEST_F(Libraries, BatchedProductsTakeEachProblemItsOwnMatrices) {
  const int64_t batch = 3, m = 2, n = 5, k = 4;
  const std::vector<double> a = normal<double>(batch * m * k, 4),
                            b = normal<double>(batch * n * k, 5);
  const Tensor<double, 3> x(context(), {batch, m, k}, a.data()),
      y(context(), {batch, n, k}, b.data()), z(context(), {batch, m, n});

  cuda::gemm<double>(device(), Transpose::no, Transpose::yes, 1, x.view(), y.view(), 0, z.view());

  std::vector<double> expected;
  for (int64_t s = 0; s < batch; ++s) {
    const std::vector<double> part = product(Transpose::no, Transpose::yes, m, n, k,
                                             {a.begin() + s * m * k, a.begin() + (s + 1) * m * k},
                                             {b.begin() + s * n * k, b.begin() + (s + 1) * n * k});
    expected.insert(expected.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(close(z.to_host(), expected, 1e-14));
}

// W W' + I of each problem.
std::vector<double> positive_definite(int64_t batch, int64_t n) {
  std::vector<double> all;
  for (int64_t s = 0; s < batch; ++s) {
    const std::vector<double> w = normal<double>(n * n, 10 + static_cast<uint64_t>(s));
    std::vector<double> a = product(Transpose::no, Transpose::yes, n, n, n, w, w);
    for (int64_t i = 0; i < n; ++i) element(a, n, i, i) += 1;
    all.insert(all.end(), a.begin(), a.end());
  }
  return all;
}

TEST_F(Libraries, InverseFactorIsLowerTriangularAndInverts) {
  const int64_t batch = 2, n = 7;
  const std::vector<double> a = positive_definite(batch, n);
  const Tensor<double, 3> factored(context(), {batch, n, n}, a.data()),
      inverse_factor(context(), {batch, n, n});
  const Arena::Scope scope(context().scratch());

  cuda::inverse_cholesky_factor<double>(context(), factored, inverse_factor, FaultSite::slim);

  EXPECT_NO_THROW(context().check_faults());
  const std::vector<double> y = inverse_factor.to_host();
  for (int64_t s = 0; s < batch; ++s) {
    std::vector<double> ys(y.begin() + s * n * n, y.begin() + (s + 1) * n * n);
    const std::vector<double> as(a.begin() + s * n * n, a.begin() + (s + 1) * n * n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) EXPECT_EQ(element(ys, n, i, j), 0.0);
    }
    // Y A Y' = I
    const auto ya = product(Transpose::no, Transpose::no, n, n, n, ys, as);
    std::vector<double> identity(static_cast<std::size_t>(n * n), 0.0);
    for (int64_t i = 0; i < n; ++i) element(identity, n, i, i) = 1;
    EXPECT_TRUE(close(product(Transpose::no, Transpose::yes, n, n, n, ya, ys), identity, 1e-12));
  }
}

TEST_F(Libraries, AMatrixThatIsNotPositiveDefiniteIsNamed) {
  const int64_t batch = 3, n = 4;
  std::vector<double> a = positive_definite(batch, n);
  a[static_cast<std::size_t>(1 * n * n + 2 * n + 2)] = -5;  // problem 1, third minor
  const Tensor<double, 3> factored(context(), {batch, n, n}, a.data()),
      inverse_factor(context(), {batch, n, n});
  const Arena::Scope scope(context().scratch());

  cuda::inverse_cholesky_factor<double>(context(), factored, inverse_factor, FaultSite::graph);

  try {
    context().check_faults();
    FAIL() << "no fault was latched";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Laplacian, problem 1"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("leading minor 3"), std::string::npos);
  }
}

TEST_F(Libraries, EigenvectorsAreTheRowsInAscendingOrder) {
  const int64_t batch = 2, n = 6;
  const std::vector<double> a = positive_definite(batch, n);
  const Tensor<double, 3> vectors(context(), {batch, n, n}, a.data());
  const Tensor<double, 2> values(context(), {batch, n});
  const Arena::Scope scope(context().scratch());

  cuda::eigen_symmetric<double>(context(), vectors, values, cuda::Eigenvectors::yes,
                                FaultSite::slim_penalty);

  EXPECT_NO_THROW(context().check_faults());
  const std::vector<double> v = vectors.to_host();
  std::vector<double> w = values.to_host();
  for (int64_t s = 0; s < batch; ++s) {
    const std::vector<double> vs(v.begin() + s * n * n, v.begin() + (s + 1) * n * n);
    const std::vector<double> as(a.begin() + s * n * n, a.begin() + (s + 1) * n * n);
    // V A = diag(w) V
    std::vector<double> scaled = vs;
    for (int64_t j = 0; j < n; ++j) {
      EXPECT_LE(element(w, n, s, std::max<int64_t>(j - 1, 0)), element(w, n, s, j));
      for (int64_t i = 0; i < n; ++i) element(scaled, n, j, i) *= element(w, n, s, j);
    }
    EXPECT_TRUE(close(product(Transpose::no, Transpose::no, n, n, n, vs, as), scaled, 1e-12));
  }
}

// After a fault the matrices may be NaN, on which an eigensolver need not return.
TEST_F(Libraries, EigensolverReturnsAfterAFault) {
  const int64_t n = 5;
  std::vector<double> a = positive_definite(1, n);
  a[0] = -1;
  const Tensor<double, 3> factored(context(), {1, n, n}, a.data()), factor(context(), {1, n, n}),
      broken(context(), {1, n, n}, std::vector<double>(25, std::nan("")).data());
  const Tensor<double, 2> values(context(), {1, n});
  const Arena::Scope scope(context().scratch());
  cuda::inverse_cholesky_factor<double>(context(), factored, factor, FaultSite::slim);

  cuda::eigen_symmetric<double>(context(), broken, values, cuda::Eigenvectors::yes,
                                FaultSite::slim_penalty);

  EXPECT_EQ(values.to_host(), std::vector<double>(5, 1.0));
  EXPECT_THROW(context().check_faults(), Error);
}

}  // namespace
}  // namespace cfaa::test

#endif
