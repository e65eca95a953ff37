#include "host/eval/tsne.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

constexpr int64_t kDim = 10;

// Rows of three clouds far from one another, in turn.
std::vector<float> clouds(int64_t rows) {
  std::vector<float> values = normal<float>(rows * kDim, 3);
  for (int64_t i = 0; i < rows; ++i) values[static_cast<std::size_t>(i * kDim + i % 3)] += 12;
  return values;
}

Tsne embed(const std::vector<float>& rows, const TsneOptions& options = {}, int threads = 2,
           int64_t dim = kDim) {
  const auto context = make_context("cpu", {.threads = threads});
  return tsne(*context, {rows.data(), {std::ssize(rows) / dim, dim}}, options);
}

TEST(Tsne, NeighboursInThePlaneAreThoseOfTheRows) {
  const int64_t n = 150;
  const Tsne found = embed(clouds(n));

  int64_t own = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t nearest = -1;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < n; ++j) {
      const auto at = [&](int64_t row, int64_t axis) {
        return found.points[static_cast<std::size_t>(2 * row + axis)];
      };
      const double distance = std::hypot(at(i, 0) - at(j, 0), at(i, 1) - at(j, 1));
      if (j != i && distance < least) least = distance, nearest = j;
    }
    own += nearest % 3 == i % 3;
  }
  EXPECT_EQ(own, n);
}

// Every pair is a neighbour here, so that the divergence can be written down as it is defined.
TEST(Tsne, DivergenceIsThatOfTheDefinition) {
  const int64_t n = 25;
  const double perplexity = 8;
  const std::vector<float> rows = clouds(n);
  const Tsne found = embed(rows, {.perplexity = perplexity});
  const auto size = static_cast<std::size_t>(n);
  const auto distance = [&](const auto& values, std::size_t i, std::size_t j, std::size_t dim) {
    double sum = 0;
    for (std::size_t k = 0; k < dim; ++k) {
      const double d = double(values[i * dim + k]) - double(values[j * dim + k]);
      sum += d * d;
    }
    return sum;
  };

  std::vector<double> p(size * size), q(size * size);
  double q_sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    double low = 0, high = 1e3;
    for (int round = 0; round < 200; ++round) {
      const double beta = (low + high) / 2;
      double sum = 0, entropy = 0;
      for (std::size_t j = 0; j < size; ++j) {
        p[i * size + j] = i == j ? 0 : std::exp(-beta * distance(rows, i, j, kDim));
        sum += p[i * size + j];
      }
      for (std::size_t j = 0; j < size; ++j) {
        p[i * size + j] /= sum;
        if (p[i * size + j] > 0) entropy -= p[i * size + j] * std::log(p[i * size + j]);
      }
      (entropy > std::log(perplexity) ? low : high) = beta;
    }
    for (std::size_t j = 0; j < size; ++j) {
      q[i * size + j] = i == j ? 0 : 1 / (1 + distance(found.points, i, j, 2));
      q_sum += q[i * size + j];
    }
  }
  double wanted = 0;
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) {
      const double both = (p[i * size + j] + p[j * size + i]) / (2 * double(n));
      if (both > 0) wanted += both * std::log(both / (q[i * size + j] / q_sum));
    }
  }
  EXPECT_TRUE(close(found.divergence, wanted, 1e-4));
}

TEST(Tsne, DescendsAndStaysThere) {
  const std::vector<float> rows = clouds(60);

  const double early = embed(rows, {.iterations = 60}).divergence,
               late = embed(rows, {.iterations = 750}).divergence,
               later = embed(rows, {.iterations = 1500}).divergence;

  EXPECT_LT(late, 0.8 * early);
  EXPECT_LT(later, 1.2 * late);
}

TEST(Tsne, ATreeGivesTheDivergenceOfAllPairs) {
  const std::vector<float> rows = clouds(300);

  EXPECT_TRUE(close(embed(rows, {.exact_rows = 0}).divergence, embed(rows).divergence, 0.05));
}

TEST(Tsne, HasTheSameBitsForEveryNumberOfThreads) {
  const std::vector<float> rows = clouds(200);

  for (const int64_t exact_rows : {0, 4000}) {
    const TsneOptions options{.iterations = 50, .exact_rows = exact_rows};
    const Tsne one = embed(rows, options, 1);
    for (const int threads : {2, 5}) EXPECT_EQ(one.points, embed(rows, options, threads).points);
  }
}

TEST(Tsne, FewAndEqualRowsHaveAnAnswer) {
  EXPECT_TRUE(embed({}).points.empty());
  EXPECT_EQ(embed(std::vector<float>(kDim, 1)).points, (std::vector<float>{0, 0}));
  for (const int64_t rows : {2, 3, 40}) {
    for (const float value :
         embed(std::vector<float>(static_cast<std::size_t>(rows * kDim), 1)).points) {
      EXPECT_TRUE(std::isfinite(value)) << rows;
    }
  }
}

}  // namespace
}  // namespace cfaa::test
