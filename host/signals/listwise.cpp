#include "host/signals/listwise.h"

#include <algorithm>
#include <cmath>

#include "host/core/error.h"

namespace cfaa {
namespace {

constexpr int64_t kGroupsAtOnce = 16;
constexpr int kMostSteps = 100;
constexpr double kListLength = 10;

// Sums over a chunk of groups: value, gradient, the lower triangle of the Hessian.
struct Part {
  double value = 0;
  std::vector<double> gradient, hessian;
};

double dot(const float* f, std::span<const double> w) {
  double sum = 0;
  for (std::size_t s = 0; s < w.size(); ++s) sum += w[s] * f[s];
  return sum;
}

void add_group(const ListwiseGroups& all, int64_t group, std::span<const double> w, Part& part,
               std::vector<double>& score) {
  const std::size_t k = w.size();
  const auto g = static_cast<std::size_t>(group);
  const int64_t first = all.negative_offset[g], count = all.negative_offset[g + 1] - first;
  const float* negatives = all.negatives.data() + first * static_cast<int64_t>(k);
  score.resize(static_cast<std::size_t>(count));
  double top = -HUGE_VAL;
  for (std::size_t n = 0; n < score.size(); ++n) {
    score[n] = dot(negatives + n * k, w);
    top = std::max(top, score[n]);
  }
  // Moments of the negatives, over exp(top).
  double mass = 0;
  std::vector<double> mean(k), second(k * k);
  for (std::size_t n = 0; n < score.size(); ++n) {
    const double e = all.stands_for[g] * std::exp(score[n] - top);
    const float* f = negatives + n * k;
    mass += e;
    for (std::size_t a = 0; a < k; ++a) {
      const double x = e * f[a];
      mean[a] += x;
      for (std::size_t b = 0; b <= a; ++b) second[a * k + b] += x * f[b];
    }
  }
  for (int64_t p = all.positive_offset[g]; p < all.positive_offset[g + 1]; ++p) {
    const float* f = all.positives.data() + p * static_cast<int64_t>(k);
    const double s = dot(f, w);
    const double shift = std::max(top, s);
    const double of_positive = std::exp(s - shift);
    const double of_negatives = score.empty() ? 0 : std::exp(top - shift);
    const double total = of_positive + of_negatives * mass;
    part.value += std::log(total) + shift - s;
    const double q = of_positive / total, r = of_negatives / total;
    for (std::size_t a = 0; a < k; ++a) {
      const double m_a = q * f[a] + r * mean[a];
      part.gradient[a] += m_a - f[a];
      for (std::size_t b = 0; b <= a; ++b) {
        const double m_b = q * f[b] + r * mean[b];
        part.hessian[a * k + b] +=
            q * double{f[a]} * double{f[b]} + r * second[a * k + b] - m_a * m_b;
      }
    }
  }
}

// step = hessian^-1 gradient by Cholesky, over the weights that are free; the ridge makes the
// Hessian positive definite.
std::vector<double> newton_step(const ListwiseLoss& loss, const std::vector<std::size_t>& free) {
  const std::size_t all = loss.gradient.size();
  std::vector<double> h, y;
  for (const std::size_t a : free) {
    y.push_back(loss.gradient[a]);
    for (const std::size_t b : free) {
      h.push_back(loss.hessian[std::max(a, b) * all + std::min(a, b)]);  // the lower triangle
    }
  }
  const std::size_t k = y.size();
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t i = j; i < k; ++i) {
      double sum = h[i * k + j];
      for (std::size_t c = 0; c < j; ++c) sum -= h[i * k + c] * h[j * k + c];
      h[i * k + j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / h[j * k + j];
    }
  }
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t c = 0; c < i; ++c) y[i] -= h[i * k + c] * y[c];
    y[i] /= h[i * k + i];
  }
  for (std::size_t i = k; i-- > 0;) {
    for (std::size_t c = i + 1; c < k; ++c) y[i] -= h[c * k + i] * y[c];
    y[i] /= h[i * k + i];
  }
  return y;
}

}  // namespace

ListwiseLoss listwise_loss(ThreadPool& threads, std::span<const ListwiseTerm> terms, double ridge,
                           std::span<const double> w) {
  const std::size_t k = w.size();
  ListwiseLoss loss;
  loss.gradient.resize(k);
  loss.hessian.resize(k * k);
  for (std::size_t a = 0; a < k; ++a) {
    loss.value += ridge / 2 * w[a] * w[a];
    loss.gradient[a] = ridge * w[a];
    loss.hessian[a * k + a] = ridge;
  }
  for (const ListwiseTerm& term : terms) {
    const ListwiseGroups& groups = *term.groups;
    CFAA_ASSERT(groups.signals == static_cast<int64_t>(k));
    std::vector<Part> parts(
        static_cast<std::size_t>((groups.groups() + kGroupsAtOnce - 1) / kGroupsAtOnce));
    threads.parallel_for(groups.groups(), kGroupsAtOnce, [&](int64_t begin, int64_t end, int) {
      Part& part = parts[static_cast<std::size_t>(begin / kGroupsAtOnce)];
      part.gradient.resize(k);
      part.hessian.resize(k * k);
      std::vector<double> score;
      for (int64_t g = begin; g < end; ++g) add_group(groups, g, w, part, score);
    });
    for (const Part& part : parts) {
      loss.value += term.factor * part.value;
      for (std::size_t a = 0; a < k; ++a) loss.gradient[a] += term.factor * part.gradient[a];
      for (std::size_t e = 0; e < k * k; ++e) loss.hessian[e] += term.factor * part.hessian[e];
    }
  }
  return loss;
}

std::vector<double> fit_listwise(ThreadPool& threads, std::span<const ListwiseTerm> terms,
                                 double ridge, int64_t signals) {
  std::vector<double> w(static_cast<std::size_t>(signals));
  ListwiseLoss loss = listwise_loss(threads, terms, ridge, w);
  for (int step = 0; step < kMostSteps; ++step) {
    // A weight at 0 that the gradient would push below stays there.
    std::vector<std::size_t> free;
    for (std::size_t a = 0; a < w.size(); ++a) {
      if (w[a] > 0 || loss.gradient[a] < 0) free.push_back(a);
    }
    const std::vector<double> direction = newton_step(loss, free);
    double decrease = 0;
    for (std::size_t f = 0; f < free.size(); ++f) decrease += direction[f] * loss.gradient[free[f]];
    if (!(decrease > 1e-10 * std::max(1.0, loss.value))) break;
    // Halve until the loss falls by a tenth of what its slope promises.
    bool moved = false;
    for (double length = 1; length > 1e-6 && !moved; length /= 2) {
      std::vector<double> next(w);
      double promised = 0;
      for (std::size_t f = 0; f < free.size(); ++f) {
        const std::size_t a = free[f];
        next[a] = std::max(0.0, w[a] - length * direction[f]);
        promised += loss.gradient[a] * (w[a] - next[a]);
      }
      ListwiseLoss at_next = listwise_loss(threads, terms, ridge, next);
      moved = promised > 0 && at_next.value <= loss.value - 0.1 * promised;
      if (!moved) continue;
      w = std::move(next);
      loss = std::move(at_next);
    }
    if (!moved) break;
  }
  return w;
}

std::vector<double> listwise_ndcg(ThreadPool& threads, const ListwiseGroups& groups,
                                  std::span<const double> w) {
  const auto k = static_cast<int64_t>(w.size());
  CFAA_ASSERT(groups.signals == k);
  std::vector<double> ndcg(static_cast<std::size_t>(groups.groups()));
  threads.parallel_for(groups.groups(), kGroupsAtOnce, [&](int64_t begin, int64_t end, int) {
    std::vector<double> of_positives, of_negatives;
    const auto score = [&](const std::vector<float>& rows, int64_t first, int64_t last,
                           std::vector<double>& scores) {
      scores.clear();
      for (int64_t r = first; r < last; ++r) scores.push_back(dot(rows.data() + r * k, w));
    };
    for (auto g = static_cast<std::size_t>(begin); g < static_cast<std::size_t>(end); ++g) {
      score(groups.positives, groups.positive_offset[g], groups.positive_offset[g + 1],
            of_positives);
      score(groups.negatives, groups.negative_offset[g], groups.negative_offset[g + 1],
            of_negatives);
      double gain = 0, ideal = 0;
      for (std::size_t p = 0; p < of_positives.size(); ++p) {
        const double s = of_positives[p];
        const auto before = [s](const std::vector<double>& others) {
          double count = 0;
          for (const double x : others) count += x > s ? 1 : x == s ? 0.5 : 0;
          return count;
        };
        // Itself is one of the positives with the same score.
        const double place =
            before(of_positives) - 0.5 + groups.stands_for[g] * before(of_negatives);
        if (place < kListLength) gain += 1 / std::log2(place + 2);
        if (static_cast<double>(p) < kListLength) {
          ideal += 1 / std::log2(static_cast<double>(p) + 2);
        }
      }
      ndcg[g] = gain / ideal;
    }
  });
  return ndcg;
}

}  // namespace cfaa
