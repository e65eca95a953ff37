#include "cuda/polar_polynomials.h"

#include <array>
#include <cmath>
#include <utility>

#include "host/core/error.h"

namespace cfaa::cuda {
namespace {

constexpr OddQuintic kLastStep{15.0 / 8, -10.0 / 8, 3.0 / 8};
constexpr double kNarrow = 1e-3;  // where Remez's equations lose their digits, and are not missed
constexpr int kMostExchanges = 50;

using Vector4 = std::array<double, 4>;

// Gauss, with row pivots.
Vector4 solve(std::array<Vector4, 4> rows, Vector4 right) {
  for (std::size_t i = 0; i < 4; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < 4; ++r) {
      if (std::abs(rows[r][i]) > std::abs(rows[pivot][i])) pivot = r;
    }
    std::swap(rows[i], rows[pivot]);
    std::swap(right[i], right[pivot]);
    for (std::size_t r = i + 1; r < 4; ++r) {
      const double factor = rows[r][i] / rows[i][i];
      for (std::size_t c = i; c < 4; ++c) rows[r][c] -= factor * rows[i][c];
      right[r] -= factor * right[i];
    }
  }
  for (std::size_t i = 4; i-- > 0;) {
    for (std::size_t c = i + 1; c < 4; ++c) right[i] -= rows[i][c] * right[c];
    right[i] /= rows[i][i];
  }
  return right;
}

// The polynomial nearest to 1 on [low, high], and how near: it meets 1 - error at low, then swings
// to 1 + error, 1 - error, and 1 + error at high. Its two inner extremes are exchanged for those of
// the last polynomial until the error stands.
std::pair<OddQuintic, double> nearest_to_one(double low, double high) {
  double first = (3 * low + high) / 4, second = (low + 3 * high) / 4;
  double error = 0;
  OddQuintic p{};
  for (int exchange = 0; exchange < kMostExchanges; ++exchange) {
    std::array<Vector4, 4> rows;
    const Vector4 points = {low, first, second, high};
    for (std::size_t i = 0; i < 4; ++i) {
      const double x = points[i], square = x * x;
      rows[i] = {x, x * square, x * square * square, i % 2 == 0 ? 1.0 : -1.0};
    }
    const Vector4 found = solve(rows, {1, 1, 1, 1});
    p = {found[0], found[1], found[2]};
    // p' = a + 3 b x^2 + 5 c x^4
    const double root = std::sqrt(9 * p.b * p.b - 20 * p.a * p.c);
    first = std::sqrt((-3 * p.b - root) / (10 * p.c));
    second = std::sqrt((-3 * p.b + root) / (10 * p.c));
    const double change = std::abs(found[3] - error);
    error = found[3];
    if (change <= 1e-15) break;
  }
  return {p, error};
}

}  // namespace

std::vector<OddQuintic> polar_polynomials(double least, std::size_t steps) {
  CFAA_ASSERT(least > 0 && least <= 1 && steps > 0);
  std::vector<OddQuintic> row;
  double low = least, high = 1;
  while (row.size() + 1 < steps && low < (1 - kNarrow) * high) {
    const auto [polynomial, error] = nearest_to_one(low, high);
    row.push_back(polynomial);
    low = 1 - error;
    high = 1 + error;
  }
  row.resize(steps, kLastStep);
  return row;
}

}  // namespace cfaa::cuda
