#include "host/eval/tsne.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "host/core/error.h"
#include "host/core/normal.h"
#include "host/core/parallel.h"

namespace cfaa {
namespace {

constexpr double kExaggeration = 12;
constexpr int64_t kGrain = 64;  // rows a thread takes at once

struct Point {
  double x = 0, y = 0;
};

// Row i's neighbours stand at [offset[i], offset[i + 1]), by index.
struct Neighbours {
  std::vector<int64_t> offset;
  std::vector<int32_t> index;
  std::vector<double> weight;
};

double squared_distance(const float* a, const float* b, int64_t dim) {
  float sum = 0;
  for (int64_t k = 0; k < dim; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

// The weights exp(-beta d), summing to one, whose entropy is the perplexity's logarithm.
void set_conditional_weights(const std::vector<double>& distances, double perplexity,
                             double* weights) {
  const double wanted = std::log(perplexity);
  double low = 0, high = std::numeric_limits<double>::infinity();
  const double mean =
      std::accumulate(distances.begin(), distances.end(), 0.0) / std::ssize(distances);
  double beta = mean > 0 ? 1 / mean : 1;
  for (int round = 0; round < 100; ++round) {
    double sum = 0, moment = 0;
    for (std::size_t j = 0; j < distances.size(); ++j) {
      weights[j] = std::exp(-beta * (distances[j] - distances[0]));
      sum += weights[j];
      moment += weights[j] * (distances[j] - distances[0]);
    }
    for (std::size_t j = 0; j < distances.size(); ++j) weights[j] /= sum;
    const double entropy = std::log(sum) + beta * moment / sum;
    if (std::abs(entropy - wanted) < 1e-6) return;
    (entropy > wanted ? low : high) = beta;
    beta = std::isinf(high) ? 2 * beta : (low + high) / 2;
    if (beta > 1e300) return;  // as many rows at no distance at all as there are neighbours
  }
}

// The nearest `count` of each row with their conditional weights, nearest first.
Neighbours nearest(ThreadPool& threads, MatrixView<const float> rows, int64_t count,
                   double perplexity) {
  const int64_t n = rows.shape[0], dim = rows.shape[1];
  Neighbours result;
  for (int64_t i = 0; i <= n; ++i) result.offset.push_back(i * count);
  result.index.resize(static_cast<std::size_t>(n * count));
  result.weight.resize(static_cast<std::size_t>(n * count));
  threads.parallel_for(n, kGrain, [&](int64_t begin, int64_t end, int) {
    std::vector<std::pair<double, int32_t>> others;
    std::vector<double> distances(static_cast<std::size_t>(count));
    for (int64_t i = begin; i < end; ++i) {
      others.clear();
      for (int64_t j = 0; j < n; ++j) {
        if (j == i) continue;
        others.emplace_back(squared_distance(rows.data + i * dim, rows.data + j * dim, dim),
                            static_cast<int32_t>(j));
      }
      std::partial_sort(others.begin(), others.begin() + count, others.end());
      for (int64_t j = 0; j < count; ++j) {
        distances[static_cast<std::size_t>(j)] = others[static_cast<std::size_t>(j)].first;
        result.index[static_cast<std::size_t>(i * count + j)] =
            others[static_cast<std::size_t>(j)].second;
      }
      set_conditional_weights(distances, perplexity,
                              &result.weight[static_cast<std::size_t>(i * count)]);
    }
  });
  return result;
}

// (p_ij + p_ji) / 2N of both rows of a pair.
Neighbours joint(const Neighbours& conditional) {
  const std::size_t n = conditional.offset.size() - 1;
  std::vector<std::vector<std::pair<int32_t, double>>> rows(n);
  const double share = 0.5 / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (auto at = static_cast<std::size_t>(conditional.offset[i]);
         at < static_cast<std::size_t>(conditional.offset[i + 1]); ++at) {
      const int32_t j = conditional.index[at];
      const double weight = share * conditional.weight[at];
      rows[i].emplace_back(j, weight);
      rows[static_cast<std::size_t>(j)].emplace_back(static_cast<int32_t>(i), weight);
    }
  }
  Neighbours result;
  result.offset.push_back(0);
  for (auto& row : rows) {
    std::sort(row.begin(), row.end());
    for (const auto& [index, weight] : row) {
      const bool again =
          std::ssize(result.index) > result.offset.back() && result.index.back() == index;
      if (again) {
        result.weight.back() += weight;
      } else {
        result.index.push_back(index);
        result.weight.push_back(weight);
      }
    }
    result.offset.push_back(std::ssize(result.index));
  }
  return result;
}

// The rows' products with a direction, and a direction that is their sum weighted by those: one
// round of the power method on the covariance.
std::vector<double> products(MatrixView<const float> rows, const std::vector<double>& mean,
                             const std::vector<double>& direction) {
  std::vector<double> result;
  for (int64_t i = 0; i < rows.shape[0]; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < direction.size(); ++k) {
      sum += (rows.data[i * rows.shape[1] + static_cast<int64_t>(k)] - mean[k]) * direction[k];
    }
    result.push_back(sum);
  }
  return result;
}

void make_unit(std::vector<double>& direction) {
  double sum = 0;
  for (const double value : direction) sum += value * value;
  for (double& value : direction) value /= sum > 0 ? std::sqrt(sum) : 1;
}

void make_orthogonal(std::vector<double>& direction, const std::vector<double>& to) {
  const double share = std::inner_product(direction.begin(), direction.end(), to.begin(), 0.0);
  for (std::size_t k = 0; k < direction.size(); ++k) direction[k] -= share * to[k];
}

// The first two principal components, the first with a standard deviation of 1e-4.
std::vector<Point> first_points(MatrixView<const float> rows, uint64_t seed) {
  const int64_t n = rows.shape[0];
  const auto dim = static_cast<std::size_t>(rows.shape[1]);
  std::vector<double> mean(dim);
  for (int64_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < dim; ++k) {
      mean[k] += rows.data[i * rows.shape[1] + static_cast<int64_t>(k)] / static_cast<double>(n);
    }
  }
  const Philox random{seed};
  std::array<std::vector<double>, 2> direction, component;
  for (std::size_t c = 0; c < 2; ++c) {
    for (std::size_t k = 0; k < dim; ++k) direction[c].push_back(standard_normal(random(k, c)));
    for (int round = 0; round < 20; ++round) {
      if (c == 1) make_orthogonal(direction[1], direction[0]);
      make_unit(direction[c]);
      const std::vector<double> along = products(rows, mean, direction[c]);
      std::fill(direction[c].begin(), direction[c].end(), 0.0);
      for (int64_t i = 0; i < n; ++i) {
        const float* row = rows.data + i * rows.shape[1];
        for (std::size_t k = 0; k < dim; ++k) {
          direction[c][k] += along[static_cast<std::size_t>(i)] * (row[k] - mean[k]);
        }
      }
    }
    if (c == 1) make_orthogonal(direction[1], direction[0]);
    make_unit(direction[c]);
    component[c] = products(rows, mean, direction[c]);
  }
  double squares = 0;
  for (const double value : component[0]) squares += value * value;
  const double scale = squares > 0 ? 1e-4 / std::sqrt(squares / static_cast<double>(n)) : 0;
  std::vector<Point> points;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const NormalPair noise(random(i, 2));  // equal rows must part
    points.push_back({scale * component[0][i] + 1e-8 * noise.radius * std::cos(noise.angle),
                      scale * component[1][i] + 1e-8 * noise.radius * std::sin(noise.angle)});
  }
  return points;
}

// Squares within squares, by the interleaved digits of the points' coordinates. A square of one
// point, or of points that 16 digits do not tell apart, is not divided further.
class Tree {
 public:
  explicit Tree(const std::vector<Point>& points) : points_(points) {
    Point low = points[0], high = points[0];
    for (const Point& p : points) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
    width_ = std::max({high.x - low.x, high.y - low.y, 1e-300}) * (1 + 1e-9);
    const auto digits = [&](double value) { return static_cast<uint32_t>(value / width_ * 65536); };
    order_.reserve(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      order_.emplace_back(
          interleaved(digits(points[i].x - low.x)) | interleaved(digits(points[i].y - low.y)) << 1,
          static_cast<int32_t>(i));
    }
    std::sort(order_.begin(), order_.end());
    place_.resize(points.size());
    for (std::size_t at = 0; at < order_.size(); ++at) {
      place_[static_cast<std::size_t>(order_[at].second)] = static_cast<int32_t>(at);
    }
    cells_.reserve(2 * points.size());
    divide(0, static_cast<int32_t>(points.size()), 0);
  }

  double repel(std::size_t i, double theta, Point& force) const {
    const Point here = points_[i];
    double sum = 0;
    std::array<int32_t, 128> stack;
    std::size_t waiting = 0;
    stack[waiting++] = 0;
    while (waiting > 0) {
      const Cell& cell = cells_[static_cast<std::size_t>(stack[--waiting])];
      const bool inside = place_[i] >= cell.begin && place_[i] < cell.end;
      const double dx = here.x - cell.centre.x, dy = here.y - cell.centre.y;
      const double distance = dx * dx + dy * dy;
      const bool far = !inside && cell.width * cell.width < theta * theta * distance;
      if (!far && cell.children > 0) {
        for (int32_t c = 0; c < cell.children; ++c) stack[waiting++] = child_[cell.first + c];
        continue;
      }
      const double kernel = 1 / (1 + distance), mass = cell.end - cell.begin - (inside ? 1 : 0);
      sum += mass * kernel;
      force.x += mass * kernel * kernel * dx;
      force.y += mass * kernel * kernel * dy;
    }
    return sum;
  }

 private:
  struct Cell {
    int32_t begin, end;  // in order_
    Point centre;        // of its points
    double width;
    int32_t first = 0, children = 0;  // in child_
  };

  // Bit b to bit 2 b.
  static uint32_t interleaved(uint32_t bits) {
    bits = (bits | bits << 8) & 0x00FF00FFu;
    bits = (bits | bits << 4) & 0x0F0F0F0Fu;
    bits = (bits | bits << 2) & 0x33333333u;
    return (bits | bits << 1) & 0x55555555u;
  }

  int32_t divide(int32_t begin, int32_t end, int depth) {
    const auto number = static_cast<int32_t>(cells_.size());
    Cell cell{begin, end, {}, std::ldexp(width_, -depth)};
    for (int32_t at = begin; at < end; ++at) {
      const Point& p =
          points_[static_cast<std::size_t>(order_[static_cast<std::size_t>(at)].second)];
      cell.centre.x += p.x / (end - begin);
      cell.centre.y += p.y / (end - begin);
    }
    cells_.push_back(cell);
    if (end - begin == 1 || depth == 16) return number;
    std::array<int32_t, 4> made{};
    int32_t children = 0;
    for (int32_t from = begin; from < end;) {
      const int shift = 30 - 2 * depth;
      const auto digit = [&](int32_t at) {
        return order_[static_cast<std::size_t>(at)].first >> shift & 3;
      };
      int32_t to = from + 1;
      while (to < end && digit(to) == digit(from)) ++to;
      made[static_cast<std::size_t>(children++)] = divide(from, to, depth + 1);
      from = to;
    }
    Cell& kept = cells_[static_cast<std::size_t>(number)];
    kept.first = static_cast<int32_t>(child_.size());
    kept.children = children;
    child_.insert(child_.end(), made.begin(), made.begin() + children);
    return number;
  }

  const std::vector<Point>& points_;
  double width_ = 0;
  std::vector<std::pair<uint32_t, int32_t>> order_;  // digits and point
  std::vector<int32_t> place_;                       // of a point in order_
  std::vector<Cell> cells_;
  std::vector<int32_t> child_;
};

// Pair by pair, in float and in lanes that a compiler makes vectors of.
class AllPairs {
 public:
  explicit AllPairs(const std::vector<Point>& points) {
    for (const Point& p : points) {
      x_.push_back(static_cast<float>(p.x));
      y_.push_back(static_cast<float>(p.y));
    }
    // Too far away to count.
    while (x_.size() % kLanes != 0) x_.push_back(1e15f), y_.push_back(1e15f);
  }

  double repel(std::size_t i, Point& force) const {
    const float here_x = x_[i], here_y = y_[i];
    std::array<float, kLanes> sum{}, force_x{}, force_y{};
    for (std::size_t j = 0; j < x_.size(); j += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const float dx = here_x - x_[j + lane], dy = here_y - y_[j + lane];
        const float kernel = 1 / (1 + dx * dx + dy * dy), square = kernel * kernel;
        sum[lane] += kernel;
        force_x[lane] += square * dx;
        force_y[lane] += square * dy;
      }
    }
    force = {std::accumulate(force_x.begin(), force_x.end(), 0.0),
             std::accumulate(force_y.begin(), force_y.end(), 0.0)};
    return std::accumulate(sum.begin(), sum.end(), 0.0) - 1;  // its own kernel
  }

 private:
  static constexpr std::size_t kLanes = 16;
  std::vector<float> x_, y_;
};

// What pushes points apart, not yet divided by the sum of all kernels: for each point the force,
// and its part of that sum.
struct Repulsion {
  std::vector<Point> force;
  std::vector<double> kernels;
};

Repulsion repulsion(ThreadPool& threads, const std::vector<Point>& points,
                    const TsneOptions& options) {
  Repulsion found{std::vector<Point>(points.size()), std::vector<double>(points.size())};
  const auto each = [&](const auto& repel) {
    threads.parallel_for(std::ssize(points), kGrain, [&](int64_t begin, int64_t end, int) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        found.kernels[i] = repel(i, found.force[i]);
      }
    });
  };
  if (std::ssize(points) <= options.exact_rows) {
    const AllPairs pairs(points);
    each([&](std::size_t i, Point& force) { return pairs.repel(i, force); });
  } else {
    const Tree tree(points);
    each([&](std::size_t i, Point& force) { return tree.repel(i, options.theta, force); });
  }
  return found;
}

// Gradient / 4 of the divergence at the points.
std::vector<Point> gradient(ThreadPool& threads, const Neighbours& p,
                            const std::vector<Point>& points, double exaggeration,
                            const TsneOptions& options) {
  const Repulsion away = repulsion(threads, points, options);
  std::vector<Point> pull(points.size());
  threads.parallel_for(std::ssize(points), kGrain, [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      for (auto at = static_cast<std::size_t>(p.offset[i]);
           at < static_cast<std::size_t>(p.offset[i + 1]); ++at) {
        const Point& other = points[static_cast<std::size_t>(p.index[at])];
        const double dx = points[i].x - other.x, dy = points[i].y - other.y;
        const double force = p.weight[at] / (1 + dx * dx + dy * dy);
        pull[i].x += force * dx;
        pull[i].y += force * dy;
      }
    }
  });
  const double sum = std::accumulate(away.kernels.begin(), away.kernels.end(), 0.0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    pull[i] = {exaggeration * pull[i].x - away.force[i].x / sum,
               exaggeration * pull[i].y - away.force[i].y / sum};
  }
  return pull;
}

double divergence(ThreadPool& threads, const Neighbours& p, const std::vector<Point>& points,
                  const TsneOptions& options) {
  const Repulsion away = repulsion(threads, points, options);
  const double sum = std::accumulate(away.kernels.begin(), away.kernels.end(), 0.0);
  double result = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (auto at = static_cast<std::size_t>(p.offset[i]);
         at < static_cast<std::size_t>(p.offset[i + 1]); ++at) {
      const Point& other = points[static_cast<std::size_t>(p.index[at])];
      const double dx = points[i].x - other.x, dy = points[i].y - other.y;
      if (p.weight[at] > 0) {
        result += p.weight[at] * std::log(p.weight[at] * sum * (1 + dx * dx + dy * dy));
      }
    }
  }
  return result;
}

// One coordinate of a descent with momentum, whose step grows where the direction stays.
struct Descent {
  double step = 0, gain = 1;

  double next(double slope, double rate, double momentum) {
    gain = slope * step < 0 ? gain + 0.2 : std::max(0.01, gain * 0.8);
    return step = momentum * step - rate * gain * slope;
  }
};

}  // namespace

Tsne tsne(Context& context, MatrixView<const float> rows, const TsneOptions& options) {
  const int64_t n = rows.shape[0];
  if (n < 2) return {std::vector<float>(static_cast<std::size_t>(2 * n)), 0};
  const double perplexity =
      std::max(1.0, std::min(options.perplexity, static_cast<double>(n - 1) / 3));
  const int64_t count = std::min<int64_t>(n - 1, static_cast<int64_t>(3 * perplexity));
  ThreadPool& threads = context.threads();
  const Neighbours p = joint(nearest(threads, rows, count, perplexity));

  std::vector<Point> points = first_points(rows, options.seed);
  std::vector<std::array<Descent, 2>> descent(points.size());
  const double rate = std::max(static_cast<double>(n) / kExaggeration, 50.0);
  const int64_t exaggerated = options.iterations / 3;
  for (int64_t round = 0; round < options.iterations; ++round) {
    const bool early = round < exaggerated;
    const std::vector<Point> slope =
        gradient(threads, p, points, early ? kExaggeration : 1, options);
    const double momentum = early ? 0.5 : 0.8;
    Point mean;
    for (std::size_t i = 0; i < points.size(); ++i) {
      points[i].x += descent[i][0].next(slope[i].x, rate, momentum);
      points[i].y += descent[i][1].next(slope[i].y, rate, momentum);
      mean.x += points[i].x / static_cast<double>(n);
      mean.y += points[i].y / static_cast<double>(n);
    }
    for (Point& point : points) point = {point.x - mean.x, point.y - mean.y};
  }
  Tsne result;
  result.divergence = divergence(threads, p, points, options);
  for (const Point& point : points) {
    result.points.push_back(static_cast<float>(point.x));
    result.points.push_back(static_cast<float>(point.y));
  }
  return result;
}

}  // namespace cfaa
