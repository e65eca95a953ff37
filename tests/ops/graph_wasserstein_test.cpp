#include "host/ops/graph_wasserstein.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/reference/horizontal.h"
#include "host/core/error.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

using reference::Matrix;

class GraphWassersteinOp : public OnDevice {};
CFAA_TEST_ON_DEVICES(GraphWassersteinOp);

struct Measured {
  std::vector<double> distance;
  std::vector<Matrix> gradient, laplacian;  // per set
};

// `b` holds the sources, then the targets.
template <class T>
Measured measure(Context& context, const std::vector<Matrix>& b, double graph_floor = 1e-5,
                 Solver solver = Solver::gemm) {
  const int64_t sets = static_cast<int64_t>(b.size()), d = b[0].rows;
  std::vector<double> all;
  for (const Matrix& one : b) all.insert(all.end(), one.values.begin(), one.values.end());
  const Tensor<double, 3> device(context, {sets, d, d}, all.data());
  const Arena::Scope scope(context.scratch());
  const GraphWasserstein<T> result = graph_wasserstein<T>(context, device, graph_floor, solver);
  context.check_faults();
  const std::vector<T> distance = to_host(context, result.distance);
  Measured out{.distance = {distance.begin(), distance.end()}, .gradient = {}, .laplacian = {}};
  for (int64_t s = 0; s < sets; ++s) {
    out.gradient.emplace_back(d, d, to_host(context, result.b_gradient[s]));
    out.laplacian.emplace_back(d, d, to_host(context, result.laplacian[s]));
  }
  return out;
}

// Weights as SLIM leaves them: either sign, diagonal zero, away from the kink at zero.
Matrix weights(int64_t d, uint64_t seed, double spread = 0.2) {
  Matrix b(d, d, normal<double>(d * d, seed, 0, spread));
  for (double& x : b.values) x += x < 0 ? -0.01 : 0.01;
  for (int64_t j = 0; j < d; ++j) b(j, j) = 0;
  return b;
}

// D = 2: L has the eigenvalue 2a for (1, -1), so d_W = ((2 a_S)^(-1/2) - (2 a_T)^(-1/2))^2.
template <class T>
void check_two_attributes(Context& context, double tolerance) {
  const Matrix source(2, 2, std::vector<double>{0, 0.7, -0.3, 0});  // a = 0.5
  const Matrix target(2, 2, std::vector<double>{0, -4, 0, 0});      // a = 2

  const Measured measured = measure<T>(context, {source, target}, 0);

  EXPECT_TRUE(close(measured.distance[0], 0.25, tolerance));
  EXPECT_TRUE(
      close(measured.laplacian[0].values, std::vector<double>{0.5, -0.5, -0.5, 0.5}, tolerance));
  EXPECT_TRUE(close(measured.gradient[0].values, std::vector<double>{0, -0.5, 0.5, 0}, tolerance));
  EXPECT_TRUE(close(measured.gradient[1].values, std::vector<double>{0, -0.0625, 0, 0}, tolerance));
}

TEST_P(GraphWassersteinOp, TwoAttributesAreCheckedByHand) {
  check_two_attributes<double>(context(), 1e-14);
  check_two_attributes<float>(context(), 1e-6);
}

template <class T>
void check_plain_loops(Context& context, int64_t d, double tolerance, Solver solver) {
  const std::vector<Matrix> b = {weights(d, 1), weights(d, 2), weights(d, 3, 0.05), weights(d, 4)};

  const Measured measured = measure<T>(context, b, 1e-5, solver);

  for (std::size_t p = 0; p < 2; ++p) {
    const Matrix &source = b[p], &target = b[2 + p];
    const Matrix d_source = reference::graph_gradient(source, target, 1e-5);
    const Matrix d_target = reference::graph_gradient(target, source, 1e-5);
    EXPECT_TRUE(
        close(measured.distance[p], reference::graph_distance(source, target, 1e-5), tolerance))
        << "D = " << d;
    EXPECT_TRUE(close(measured.gradient[p].values, d_source.values, tolerance)) << "D = " << d;
    EXPECT_TRUE(close(measured.gradient[2 + p].values, d_target.values, tolerance)) << "D = " << d;
    EXPECT_TRUE(
        close(measured.laplacian[p].values, reference::laplacian(source, 1e-5).values, tolerance));
  }
}

TEST_P(GraphWassersteinOp, EqualsThePlainLoopsAtOddSizes) {
  for (const int64_t d : {2, 3, 31, 32, 33, 65}) {
    for (const Solver solver : {Solver::gemm, Solver::cusolver}) {
      check_plain_loops<double>(context(), d, 1e-10, solver);
      check_plain_loops<float>(context(), d, 2e-5, solver);
    }
  }
}

TEST_P(GraphWassersteinOp, LaplacianIsSymmetricAndItsRowsSumToZero) {
  for (const int64_t d : {2, 33}) {
    const Measured measured = measure<double>(context(), {weights(d, 5), weights(d, 6)});
    for (const Matrix& l : measured.laplacian) {
      for (int64_t i = 0; i < d; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < d; ++j) {
          sum += l(i, j);
          EXPECT_EQ(l(i, j), l(j, i));
        }
        EXPECT_LE(std::abs(sum), 1e-14 * l(i, i));
      }
    }
  }
}

TEST_P(GraphWassersteinOp, GradientIsTheCentralDifference) {
  const int64_t d = 6;
  std::vector<Matrix> b = {weights(d, 7), weights(d, 8)};
  const Measured measured = measure<double>(context(), b);

  for (std::size_t set = 0; set < 2; ++set) {
    Matrix differences(d, d);
    for (int64_t i = 0; i < d; ++i) {
      for (int64_t j = 0; j < d; ++j) {
        if (i == j) continue;
        const double at = b[set](i, j), h = 1e-5;  // |B| >= 0.01: no kink within reach
        b[set](i, j) = at + h;
        const double up = reference::graph_distance(b[0], b[1], 1e-5);
        b[set](i, j) = at - h;
        const double down = reference::graph_distance(b[0], b[1], 1e-5);
        b[set](i, j) = at;
        differences(i, j) = (up - down) / (2 * h);
      }
    }
    EXPECT_TRUE(close(measured.gradient[set].values, differences.values, 1e-7));
  }
}

template <class T>
void check_identical(Context& context, double tolerance) {
  const int64_t d = 33;
  const Matrix b = weights(d, 9);
  Matrix l = reference::laplacian(b, 1e-5);
  for (double& x : l.values) x += 1.0 / d;
  const double size = reference::trace(reference::inverse(l));

  const Measured measured = measure<T>(context, {b, b});

  EXPECT_GE(measured.distance[0], 0);
  EXPECT_LE(measured.distance[0], tolerance * size);
  for (const Matrix& gradient : measured.gradient) {
    for (const double x : gradient.values) EXPECT_LE(std::abs(x), 100 * tolerance * size);
  }
}

TEST_P(GraphWassersteinOp, IdenticalGraphsAreAtDistanceZeroWithNoGradient) {
  check_identical<double>(context(), 1e-14);
  check_identical<float>(context(), 1e-6);
}

TEST_P(GraphWassersteinOp, DistanceDoesNotChangeWhenTheDomainsSwap) {
  const Matrix source = weights(31, 10), target = weights(31, 11);

  const Measured forth = measure<double>(context(), {source, target});
  const Measured back = measure<double>(context(), {target, source});

  EXPECT_TRUE(close(forth.distance[0], back.distance[0], 1e-12));
  EXPECT_TRUE(close(forth.gradient[0].values, back.gradient[1].values, 1e-11));
}

TEST_P(GraphWassersteinOp, EdgesOfWeightZeroHaveNoGradient) {
  Matrix source = weights(7, 12);
  source(2, 5) = 0;

  const Measured measured = measure<double>(context(), {source, Matrix(7, 7)});

  EXPECT_EQ(measured.gradient[0](2, 5), 0);
  EXPECT_NE(measured.gradient[0](5, 2), 0);
  EXPECT_EQ(measured.gradient[1].values, std::vector<double>(49));
}

// Two cliques that hardly know each other: Sigma's largest eigenvalue is about 1 / (D floor).
template <class T>
void check_weak_links(Context& context, double tolerance) {
  const int64_t d = 10;
  Matrix source = weights(d, 13), target = weights(d, 14);
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      if ((i < 5) != (j < 5)) source(i, j) *= 1e-6;
    }
  }

  const Measured measured = measure<T>(context, {source, target});

  EXPECT_TRUE(
      close(measured.distance[0], reference::graph_distance(source, target, 1e-5), tolerance));
  EXPECT_TRUE(close(measured.gradient[0].values,
                    reference::graph_gradient(source, target, 1e-5).values, 10 * tolerance));
  EXPECT_TRUE(close(measured.gradient[1].values,
                    reference::graph_gradient(target, source, 1e-5).values, 10 * tolerance));
}

TEST_P(GraphWassersteinOp, GraphsHeldTogetherByTheFloorAreStillMeasured) {
  check_weak_links<double>(context(), 1e-9);
  check_weak_links<float>(context(), 2e-3);
}

TEST_P(GraphWassersteinOp, DisconnectedGraphWithoutFloorIsAFault) {
  const Matrix connected = weights(4, 15);

  try {
    measure<double>(context(), {connected, Matrix(4, 4)}, 0);
    FAIL() << "no fault was latched";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("Laplacian, problem 1"), std::string::npos) << what;
    EXPECT_NE(what.find("not positive definite"), std::string::npos) << what;
  }
}

TEST_P(GraphWassersteinOp, OneAttributeIsRefused) {
  EXPECT_THROW(measure<double>(context(), {Matrix(1, 1), Matrix(1, 1)}), Error);
  EXPECT_THROW(measure<double>(context(), {weights(3, 1), weights(3, 2)}, -1), Error);
}

}  // namespace
}  // namespace cfaa::test
