#include "host/eval/proxy_distance.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/core/error.h"
#include "host/core/philox.h"

namespace cfaa {
namespace {

constexpr int64_t kRowsAtOnce = 256;

// `most` of the rows at most, in random order.
std::vector<int64_t> drawn_rows(int64_t rows, int64_t most, uint64_t seed, uint64_t stream) {
  const Philox random{seed};
  std::vector<int64_t> order(static_cast<std::size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) order[static_cast<std::size_t>(i)] = i;
  for (int64_t i = rows - 1; i > 0; --i) {
    const auto other = random.below(static_cast<uint64_t>(i) + 1, static_cast<uint64_t>(i), stream);
    std::swap(order[static_cast<std::size_t>(i)], order[other]);
  }
  order.resize(static_cast<std::size_t>(std::min(rows, most)));
  return order;
}

// Rows of both sets, a column of ones behind the attributes, a label and a weight each.
struct Examples {
  int64_t width = 0;
  std::vector<double> x;  // (rows, width)
  std::vector<double> label, weight;

  int64_t rows() const { return static_cast<int64_t>(label.size()); }
  const double* row(int64_t r) const { return x.data() + r * width; }
  double* row(int64_t r) { return x.data() + r * width; }

  void add(MatrixView<const float> matrix, const std::vector<int64_t>& order, std::size_t first,
           std::size_t last, double of_class) {
    for (std::size_t i = first; i < last; ++i) {
      const float* values = matrix.data + order[i] * matrix.stride[0];
      x.insert(x.end(), values, values + matrix.cols());
      x.push_back(1);
      label.push_back(of_class);
      weight.push_back(0.5 / static_cast<double>(last - first));
    }
  }
};

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Takes mean and deviation of the training rows off both. A constant attribute becomes 0.
void standardize(Examples& train, Examples& held_out) {
  const int64_t dim = train.width - 1;
  for (int64_t c = 0; c < dim; ++c) {
    double mean = 0, square = 0;
    for (int64_t r = 0; r < train.rows(); ++r) {
      mean += train.weight[static_cast<std::size_t>(r)] * train.row(r)[c];
    }
    for (int64_t r = 0; r < train.rows(); ++r) {
      const double off = train.row(r)[c] - mean;
      square += train.weight[static_cast<std::size_t>(r)] * off * off;
    }
    const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
    for (Examples* examples : {&train, &held_out}) {
      for (int64_t r = 0; r < examples->rows(); ++r) {
        double& value = examples->row(r)[c];
        value = (value - mean) * scale;
      }
    }
  }
}

// sum_r coefficient(r, <x_r, w>) x_r, in parts whose borders do not depend on the threads.
template <class Coefficient>
std::vector<double> weighted_rows(Context& context, const Examples& examples,
                                  const std::vector<double>& w, Coefficient coefficient) {
  const int64_t width = examples.width;
  const int64_t parts = (examples.rows() + kRowsAtOnce - 1) / kRowsAtOnce;
  std::vector<double> part(static_cast<std::size_t>(parts * width));
  context.threads().parallel_for(
      examples.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
        double* sum = part.data() + begin / kRowsAtOnce * width;
        for (int64_t r = begin; r < end; ++r) {
          const double* x = examples.row(r);
          const double scale = coefficient(static_cast<std::size_t>(r), dot(x, w.data(), width));
          for (int64_t c = 0; c < width; ++c) sum[c] += scale * x[c];
        }
      });
  std::vector<double> sum(static_cast<std::size_t>(width));
  for (int64_t p = 0; p < parts; ++p) {
    for (int64_t c = 0; c < width; ++c) {
      sum[static_cast<std::size_t>(c)] += part[static_cast<std::size_t>(p * width + c)];
    }
  }
  return sum;
}

// The largest eigenvalue of the weighted second moments, by power iteration.
double largest_moment(Context& context, const Examples& examples) {
  std::vector<double> v(static_cast<std::size_t>(examples.width));
  for (std::size_t c = 0; c < v.size(); ++c) v[c] = 1 + 0.1 * static_cast<double>(c % 7);
  double norm = 0;
  for (int round = 0; round < 30; ++round) {
    v = weighted_rows(context, examples, v,
                      [&](std::size_t r, double xv) { return examples.weight[r] * xv; });
    norm = std::sqrt(dot(v.data(), v.data(), examples.width));
    if (norm == 0) return 0;
    for (double& value : v) value /= norm;
  }
  return norm;
}

// Logistic regression by accelerated gradient descent; the loss is smooth with constant
// largest moment / 4 + penalty, which gives the step.
std::vector<double> train_classifier(Context& context, const Examples& examples,
                                     const ProxyDistanceOptions& options) {
  const auto width = static_cast<std::size_t>(examples.width);
  // Power iteration comes from below: a tenth more keeps the step on the safe side.
  const double step = 1 / (1.1 * largest_moment(context, examples) / 4 + options.penalty);
  std::vector<double> w(width), before(width), ahead(width);
  for (int64_t t = 0; t < options.iterations; ++t) {
    const double momentum = static_cast<double>(t) / static_cast<double>(t + 3);
    for (std::size_t c = 0; c < width; ++c) ahead[c] = w[c] + momentum * (w[c] - before[c]);
    const std::vector<double> gradient =
        weighted_rows(context, examples, ahead, [&](std::size_t r, double score) {
          return examples.weight[r] * (1 / (1 + std::exp(-score)) - examples.label[r]);
        });
    before = w;
    for (std::size_t c = 0; c < width; ++c) {
      const double decay = c + 1 < width ? options.penalty * ahead[c] : 0;
      w[c] = ahead[c] - step * (gradient[c] + decay);
    }
  }
  return w;
}

}  // namespace

ProxyDistance proxy_distance(Context& context, MatrixView<const float> source,
                             MatrixView<const float> target, const ProxyDistanceOptions& options) {
  CFAA_ASSERT(source.cols() == target.cols() && source.rows() >= 2 && target.rows() >= 2);
  Examples train, held_out;
  train.width = held_out.width = source.cols() + 1;
  for (const double of_class : {0.0, 1.0}) {
    const MatrixView<const float> matrix = of_class == 0 ? source : target;
    const std::vector<int64_t> order =
        drawn_rows(matrix.rows(), options.most_rows, options.seed, of_class == 0 ? 0 : 1);
    const std::size_t half = order.size() / 2;
    train.add(matrix, order, 0, half, of_class);
    held_out.add(matrix, order, half, order.size(), of_class);
  }
  standardize(train, held_out);
  const std::vector<double> w = train_classifier(context, train, options);

  ProxyDistance result;
  result.train = train.rows();
  result.held_out = held_out.rows();
  result.error = 0;
  for (int64_t r = 0; r < held_out.rows(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    const double score = dot(held_out.row(r), w.data(), held_out.width);
    // A score of 0 is half an error: a classifier that knows nothing guesses.
    const double wrong = score == 0 ? 0.5 : (score > 0) != (held_out.label[at] > 0) ? 1.0 : 0.0;
    result.error += held_out.weight[at] * wrong;
  }
  result.distance = std::max(0.0, 2 * (1 - 2 * result.error));
  return result;
}

}  // namespace cfaa
