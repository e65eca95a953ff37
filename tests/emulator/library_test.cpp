// cuBLAS and cuSOLVER of the emulated device against plain loops over column-major matrices.

#include <cmath>
#include <random>

#include "cublas_v2.h"
#include "cusolverDn.h"
#include "device_buffer.h"

namespace cfaa::cuda {
namespace {

// A column-major matrix with a padded leading dimension.
struct Matrix {
  int rows, columns, leading;
  std::vector<double> values;

  Matrix(int r, int c, int pad, unsigned seed)
      : rows(r), columns(c), leading(r + pad), values(static_cast<std::size_t>(leading * c)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for (double& value : values) value = uniform(random);
  }
  double& at(int i, int j) { return values[static_cast<std::size_t>(j * leading + i)]; }
  double at(int i, int j) const { return values[static_cast<std::size_t>(j * leading + i)]; }
};

double op(const Matrix& m, cublasOperation_t trans, int i, int j) {
  return trans == CUBLAS_OP_N ? m.at(i, j) : m.at(j, i);
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 double tolerance = 1e-12) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(std::abs(found[i] - expected[i]) <= tolerance)
        << "element " << i << ": " << found[i] << " instead of " << expected[i];
  }
}

// L Lᵀ + n I: symmetric, positive definite.
Matrix positive_definite(int n, int pad, unsigned seed) {
  Matrix factor(n, n, 0, seed), result(n, n, pad, seed + 1);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = i == j ? n : 0;
      for (int k = 0; k < n; ++k) sum += factor.at(i, k) * factor.at(j, k);
      result.at(i, j) = sum;
    }
  }
  return result;
}

class Library : public ::testing::Test {
 protected:
  void SetUp() override {
    CFAA_CUDA_CHECK(cudaStreamCreate(&stream));
    CFAA_CUDA_CHECK(cublasCreate(&blas));
    CFAA_CUDA_CHECK(cublasSetStream(blas, stream));
    CFAA_CUDA_CHECK(cusolverDnCreate(&solver));
    CFAA_CUDA_CHECK(cusolverDnSetStream(solver, stream));
  }
  void TearDown() override {
    CFAA_CUDA_CHECK(cusolverDnDestroy(solver));
    CFAA_CUDA_CHECK(cublasDestroy(blas));
    CFAA_CUDA_CHECK(cudaStreamDestroy(stream));
  }

  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
  const double alpha = 1.5, beta = -0.5, one = 1, zero = 0;
};

TEST_F(Library, GemmIsColumnMajorWithEveryTranspose) {
  const int m = 5, n = 4, k = 3;
  for (cublasOperation_t ta : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    for (cublasOperation_t tb : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      const Matrix a(ta == CUBLAS_OP_N ? m : k, ta == CUBLAS_OP_N ? k : m, 2, 1);
      const Matrix b(tb == CUBLAS_OP_N ? k : n, tb == CUBLAS_OP_N ? n : k, 1, 2);
      Matrix c(m, n, 3, 3);
      DeviceBuffer<double> da(a.values), db(b.values), dc(c.values);

      CFAA_CUDA_CHECK(cublasDgemm(blas, ta, tb, m, n, k, &alpha, da, a.leading, db, b.leading,
                                  &beta, dc, c.leading));

      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          double sum = beta * c.at(i, j);
          for (int l = 0; l < k; ++l) sum += alpha * op(a, ta, i, l) * op(b, tb, l, j);
          c.at(i, j) = sum;
        }
      }
      expect_near(dc.values(), c.values);
    }
  }
}

TEST_F(Library, BatchedGemmsEqualSingleOnes) {
  const int n = 3, batch = 4;
  const Matrix a(n, n * batch, 0, 1), b(n, n * batch, 0, 2);
  DeviceBuffer<double> da(a.values), db(b.values), strided(a.values.size()),
      pointed(a.values.size()), single(a.values.size());
  std::vector<const double*> pa, pb;
  std::vector<double*> pc;
  for (int i = 0; i < batch; ++i) {
    pa.push_back(da + i * n * n);
    pb.push_back(db + i * n * n);
    pc.push_back(pointed + i * n * n);
  }
  DeviceBuffer<const double*> dpa(pa), dpb(pb);
  DeviceBuffer<double*> dpc(pc);

  CFAA_CUDA_CHECK(cublasDgemmStridedBatched(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &alpha, da, n,
                                            n * n, db, n, n * n, &zero, strided, n, n * n, batch));
  CFAA_CUDA_CHECK(cublasDgemmBatched(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &alpha, dpa, n, dpb,
                                     n, &zero, dpc, n, batch));
  for (int i = 0; i < batch; ++i) {
    CFAA_CUDA_CHECK(cublasDgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &alpha, da + i * n * n, n,
                                db + i * n * n, n, &zero, single + i * n * n, n));
  }

  expect_near(strided.values(), single.values());
  expect_near(pointed.values(), single.values());
}

TEST_F(Library, GemmExTakesFloat) {
  DeviceBuffer<float> a(std::vector<float>{1, 2, 3, 4}), b(std::vector<float>{5, 6, 7, 8}), c(4);
  const float f1 = 1, f0 = 0;

  CFAA_CUDA_CHECK(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &f1, a, CUDA_R_32F, 2, b,
                               CUDA_R_32F, 2, &f0, c, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                               CUBLAS_GEMM_DEFAULT));

  EXPECT_EQ(c.values(), (std::vector<float>{23, 34, 31, 46}));
}

TEST_F(Library, SyrkFillsTheNamedTriangleOnly) {
  const int n = 4, k = 3;
  const Matrix a(k, n, 1, 1);
  Matrix c(n, n, 1, 2);
  DeviceBuffer<double> da(a.values), dc(c.values);

  CFAA_CUDA_CHECK(cublasDsyrk(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, n, k, &alpha, da,
                              a.leading, &beta, dc, c.leading));

  for (int j = 0; j < n; ++j) {
    for (int i = j; i < n; ++i) {
      double sum = beta * c.at(i, j);
      for (int l = 0; l < k; ++l) sum += alpha * a.at(l, i) * a.at(l, j);
      c.at(i, j) = sum;
    }
  }
  expect_near(dc.values(), c.values);
}

TEST_F(Library, GeamTransposesAndAdds) {
  const int m = 3, n = 5;
  const Matrix a(n, m, 1, 1), b(m, n, 2, 2);
  Matrix c(m, n, 1, 3);
  DeviceBuffer<double> da(a.values), db(b.values), dc(c.values);

  CFAA_CUDA_CHECK(cublasDgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, m, n, &alpha, da, a.leading, &beta,
                              db, b.leading, dc, c.leading));

  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) c.at(i, j) = alpha * a.at(j, i) + beta * b.at(i, j);
  }
  expect_near(dc.values(), c.values);
}

TEST_F(Library, SymmTrmmAndDgmmEqualPlainLoops) {
  const int m = 4, n = 3;
  const Matrix s(m, m, 1, 1), b(m, n, 1, 2), x(n, 1, 0, 3);
  Matrix symm(m, n, 1, 4), trmm(m, n, 1, 4), dgmm(m, n, 1, 4);
  DeviceBuffer<double> ds(s.values), db(b.values), dx(x.values), dsymm(symm.values),
      dtrmm(trmm.values), ddgmm(dgmm.values);

  CFAA_CUDA_CHECK(cublasDsymm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, m, n, &alpha, ds,
                              s.leading, db, b.leading, &beta, dsymm, symm.leading));
  CFAA_CUDA_CHECK(cublasDtrmm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T,
                              CUBLAS_DIAG_NON_UNIT, m, n, &alpha, ds, s.leading, db, b.leading,
                              dtrmm, trmm.leading));
  CFAA_CUDA_CHECK(
      cublasDdgmm(blas, CUBLAS_SIDE_RIGHT, m, n, db, b.leading, dx, 1, ddgmm, dgmm.leading));

  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double full = beta * symm.at(i, j), triangle = 0;
      for (int l = 0; l < m; ++l) {
        full += alpha * (i >= l ? s.at(i, l) : s.at(l, i)) * b.at(l, j);
        if (l >= i) triangle += alpha * s.at(l, i) * b.at(l, j);
      }
      symm.at(i, j) = full;
      trmm.at(i, j) = triangle;
      dgmm.at(i, j) = b.at(i, j) * x.at(j, 0);
    }
  }
  expect_near(dsymm.values(), symm.values);
  expect_near(dtrmm.values(), trmm.values);
  expect_near(ddgmm.values(), dgmm.values);
}

TEST_F(Library, VectorsEqualPlainLoops) {
  const int n = 6;
  const Matrix x(n, 1, 0, 1), a(3, n, 1, 2);
  Matrix y(n, 1, 0, 3), z(3, 1, 0, 4);
  DeviceBuffer<double> dx(x.values), dy(y.values), da(a.values), dz(z.values), scalars(2);
  double dot = 0, norm = 0;

  CFAA_CUDA_CHECK(cublasDdot(blas, n, dx, 1, dy, 1, &dot));
  CFAA_CUDA_CHECK(cublasDnrm2(blas, n, dx, 1, &norm));
  CFAA_CUDA_CHECK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
  CFAA_CUDA_CHECK(cublasDdot(blas, n, dx, 1, dy, 1, scalars));
  CFAA_CUDA_CHECK(cublasDaxpy(blas, n, scalars, dx, 1, dy, 1));  // alpha as it is by then
  CFAA_CUDA_CHECK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST));
  CFAA_CUDA_CHECK(cublasDscal(blas, n / 2, &alpha, dy, 2));
  CFAA_CUDA_CHECK(cublasDgemv(blas, CUBLAS_OP_N, 3, n, &alpha, da, a.leading, dx, 1, &beta, dz, 1));

  double expected_dot = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    expected_dot += x.at(i, 0) * y.at(i, 0);
    squares += x.at(i, 0) * x.at(i, 0);
  }
  for (int i = 0; i < n; ++i) {
    y.at(i, 0) = (y.at(i, 0) + expected_dot * x.at(i, 0)) * (i % 2 == 0 ? alpha : 1);
  }
  for (int i = 0; i < 3; ++i) {
    double sum = beta * z.at(i, 0);
    for (int l = 0; l < n; ++l) sum += alpha * a.at(i, l) * x.at(l, 0);
    z.at(i, 0) = sum;
  }
  EXPECT_NEAR(dot, expected_dot, 1e-14);
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-14);
  EXPECT_NEAR(scalars.values()[0], expected_dot, 1e-14);
  expect_near(dy.values(), y.values);
  expect_near(dz.values(), z.values);
}

TEST_F(Library, CholeskyAndTriangularSolvesOfABatchInvert) {
  const int n = 5, batch = 3;
  std::vector<Matrix> matrices;
  std::vector<double> all, identities(static_cast<std::size_t>(n * n * batch), 0.0);
  for (int i = 0; i < batch; ++i) {
    matrices.push_back(positive_definite(n, 0, 10 + static_cast<unsigned>(i)));
    all.insert(all.end(), matrices.back().values.begin(), matrices.back().values.end());
    for (int d = 0; d < n; ++d) identities[static_cast<std::size_t>(i * n * n + d * n + d)] = 1;
  }
  DeviceBuffer<double> a(all), inverse(identities);
  std::vector<double*> pa, pi;
  for (int i = 0; i < batch; ++i) {
    pa.push_back(a + i * n * n);
    pi.push_back(inverse + i * n * n);
  }
  DeviceBuffer<double*> dpa(pa), dpi(pi);
  DeviceBuffer<int> info(batch);

  CFAA_CUDA_CHECK(cusolverDnDpotrfBatched(solver, CUBLAS_FILL_MODE_LOWER, n, dpa, n, info, batch));
  for (cublasOperation_t trans : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    CFAA_CUDA_CHECK(cublasDtrsmBatched(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, trans,
                                       CUBLAS_DIAG_NON_UNIT, n, n, &one, dpa, n, dpi, n, batch));
  }

  EXPECT_EQ(info.values(), std::vector<int>(batch, 0));
  const std::vector<double> found = inverse.values();
  for (int b = 0; b < batch; ++b) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int l = 0; l < n; ++l) {
          sum += matrices[static_cast<std::size_t>(b)].at(i, l) *
                 found[static_cast<std::size_t>(b * n * n + j * n + l)];
        }
        EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-12);
      }
    }
  }
}

TEST_F(Library, PotrfAndPotriInvertAndExplainFailures) {
  const int n = 4;
  const Matrix a = positive_definite(n, 2, 7);
  DeviceBuffer<double> factor(a.values);
  DeviceBuffer<int> info(1);
  int size = 0;
  CFAA_CUDA_CHECK(
      cusolverDnDpotrf_bufferSize(solver, CUBLAS_FILL_MODE_LOWER, n, factor, a.leading, &size));
  DeviceBuffer<double> work(static_cast<std::size_t>(size));

  CFAA_CUDA_CHECK(
      cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_LOWER, n, factor, a.leading, work, size, info));
  CFAA_CUDA_CHECK(
      cusolverDnDpotri(solver, CUBLAS_FILL_MODE_LOWER, n, factor, a.leading, work, size, info));

  Matrix inverse = a;
  inverse.values = factor.values();
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int l = 0; l < n; ++l) {
      sum += a.at(i, l) * (l >= i ? inverse.at(l, i) : inverse.at(i, l));
    }
    EXPECT_NEAR(sum, 1.0, 1e-12);
  }

  DeviceBuffer<double> indefinite(std::vector<double>{1, 0, 0, -1});
  CFAA_CUDA_CHECK(
      cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_LOWER, 2, indefinite, 2, work, size, info));
  EXPECT_EQ(info.values()[0], 2) << "the leading minor of order 2 is not positive";
}

TEST_F(Library, EigensolversReturnAscendingValuesAndVectorsInColumns) {
  const int n = 6, batch = 2;
  const Matrix a = positive_definite(n, 0, 3), b = positive_definite(n, 0, 4);
  std::vector<double> both = a.values;
  both.insert(both.end(), b.values.begin(), b.values.end());
  DeviceBuffer<double> vectors(both), values(n * batch), single(a.values), single_values(n);
  DeviceBuffer<int> info(batch);
  cusolverDnParams_t params;
  CFAA_CUDA_CHECK(cusolverDnCreateParams(&params));
  std::size_t on_device = 0, on_host = 0;
  CFAA_CUDA_CHECK(cusolverDnXsyevBatched_bufferSize(
      solver, params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, CUDA_R_64F, vectors, n,
      CUDA_R_64F, values, CUDA_R_64F, &on_device, &on_host, batch));
  DeviceBuffer<unsigned char> device_work(on_device);
  std::vector<unsigned char> host_work(on_host);
  int size = 0;
  CFAA_CUDA_CHECK(cusolverDnDsyevd_bufferSize(solver, CUSOLVER_EIG_MODE_VECTOR,
                                              CUBLAS_FILL_MODE_LOWER, n, single, n, single_values,
                                              &size));
  DeviceBuffer<double> work(static_cast<std::size_t>(size));

  CFAA_CUDA_CHECK(cusolverDnXsyevBatched(solver, params, CUSOLVER_EIG_MODE_VECTOR,
                                         CUBLAS_FILL_MODE_LOWER, n, CUDA_R_64F, vectors, n,
                                         CUDA_R_64F, values, CUDA_R_64F, device_work, on_device,
                                         host_work.data(), on_host, info, batch));
  CFAA_CUDA_CHECK(cusolverDnDsyevd(solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n,
                                   single, n, single_values, work, size, info));

  const std::vector<double> w = values.values(), v = vectors.values();
  for (int problem = 0; problem < batch; ++problem) {
    const Matrix& m = problem == 0 ? a : b;
    for (int e = 0; e < n; ++e) {
      const double* vector = &v[static_cast<std::size_t>(problem * n * n + e * n)];
      const double value = w[static_cast<std::size_t>(problem * n + e)];
      if (e > 0) {
        EXPECT_GE(value, w[static_cast<std::size_t>(problem * n + e - 1)]);
      }
      for (int i = 0; i < n; ++i) {
        double sum = 0;
        for (int j = 0; j < n; ++j) sum += m.at(i, j) * vector[j];
        EXPECT_NEAR(sum, value * vector[i], 1e-11);
      }
    }
  }
  expect_near(single_values.values(), std::vector<double>(w.begin(), w.begin() + n), 1e-12);
  CFAA_CUDA_CHECK(cusolverDnDestroyParams(params));
}

}  // namespace
}  // namespace cfaa::cuda
