#include "host/eval/metrics.h"

#include <algorithm>
#include <cmath>

#include "host/core/error.h"
#include "host/core/philox.h"

namespace cfaa {
namespace {

double discount(int64_t rank) {
  return 1 / std::log2(static_cast<double>(rank) + 1);
}

// The metrics of one list at one k.
void measure(std::span<const int32_t> list, std::span<const int32_t> positives, int64_t k,
             int32_t& hits, double* value) {
  double gain = 0, reciprocal = 0;
  hits = 0;
  for (int64_t rank = 1; rank <= k && list[static_cast<std::size_t>(rank - 1)] >= 0; ++rank) {
    const int32_t item = list[static_cast<std::size_t>(rank - 1)];
    if (!std::binary_search(positives.begin(), positives.end(), item)) continue;
    if (hits == 0) reciprocal = 1 / static_cast<double>(rank);
    ++hits;
    gain += discount(rank);
  }
  const auto count = static_cast<int64_t>(positives.size());
  double ideal = 0;
  for (int64_t rank = 1; rank <= std::min(k, count); ++rank) ideal += discount(rank);
  value[0] = hits > 0 ? 1 : 0;
  value[1] = hits / static_cast<double>(count);
  value[2] = gain / ideal;
  value[3] = reciprocal;
  value[4] = hits / static_cast<double>(k);
}

double percentile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

UserMetrics measure_users(const Lists& lists, const UserItems& positives,
                          const std::vector<int64_t>& ks) {
  UserMetrics result;
  result.ks = ks;
  for (std::size_t row = 0; row < lists.user.size(); ++row) {
    const auto wanted = positives.of(lists.user[row]);
    if (wanted.empty()) continue;
    result.user.push_back(lists.user[row]);
    result.positives.push_back(static_cast<int32_t>(wanted.size()));
    for (const int64_t k : ks) {
      CFAA_ASSERT(k >= 1 && k <= lists.k);
      int32_t hits = 0;
      std::array<double, kUserMetrics> value{};
      measure(lists.of(row), wanted, k, hits, value.data());
      result.hits.push_back(hits);
      result.value.insert(result.value.end(), value.begin(), value.end());
    }
  }
  return result;
}

std::vector<MetricsAt> summarize(const UserMetrics& metrics, const Lists& lists, int64_t items) {
  const std::size_t users = metrics.user.size(), ks = metrics.ks.size();
  std::vector<MetricsAt> result(ks);
  for (std::size_t i = 0; i < ks; ++i) {
    MetricsAt& at = result[i];
    at.k = metrics.ks[i];
    int64_t hits = 0, positives = 0;
    for (std::size_t u = 0; u < users; ++u) {
      const double* value = metrics.value.data() + (u * ks + i) * kUserMetrics;
      for (std::size_t m = 0; m < kUserMetrics; ++m) at.value[m] += value[m];
      hits += metrics.hits[u * ks + i];
      positives += metrics.positives[u];
    }
    if (users == 0) continue;
    for (std::size_t m = 0; m < kUserMetrics; ++m) at.value[m] /= static_cast<double>(users);
    at.value[kUserMetrics] = static_cast<double>(hits) / static_cast<double>(positives);

    std::vector<char> listed(static_cast<std::size_t>(items), 0);
    int64_t distinct = 0;
    std::size_t u = 0;
    for (std::size_t row = 0; row < lists.user.size() && u < users; ++row) {
      if (lists.user[row] != metrics.user[u]) continue;
      ++u;
      for (const int32_t item : lists.of(row).first(static_cast<std::size_t>(at.k))) {
        if (item < 0 || listed[static_cast<std::size_t>(item)] != 0) continue;
        listed[static_cast<std::size_t>(item)] = 1;
        ++distinct;
      }
    }
    at.value[kUserMetrics + 1] = static_cast<double>(distinct) / static_cast<double>(items);
  }
  return result;
}

std::vector<std::array<Interval, kUserMetrics + 1>> bootstrap(Context& context,
                                                              const UserMetrics& metrics,
                                                              int64_t resamples, uint64_t seed) {
  const std::size_t users = metrics.user.size(), ks = metrics.ks.size();
  std::vector<std::array<Interval, kUserMetrics + 1>> result(ks);
  if (users == 0 || resamples < 1) return result;

  // A user's numbers side by side: the draws jump from user to user.
  const std::size_t width = ks * (kUserMetrics + 1) + 1;
  std::vector<double> numbers(users * width);
  for (std::size_t u = 0; u < users; ++u) {
    double* to = numbers.data() + u * width;
    to = std::copy_n(metrics.value.data() + u * ks * kUserMetrics, ks * kUserMetrics, to);
    to = std::copy_n(metrics.hits.data() + u * ks, ks, to);
    *to = metrics.positives[u];
  }

  const Philox random{seed};
  std::vector<double> sums(static_cast<std::size_t>(resamples) * width, 0.0);
  context.threads().parallel_for(resamples, 1, [&](int64_t b, int64_t, int) {
    double* sum = sums.data() + static_cast<std::size_t>(b) * width;
    Philox::Block block{};
    for (std::size_t i = 0; i < users; ++i) {
      if (i % 4 == 0) block = random(i / 4, static_cast<uint64_t>(b));
      const double* row =
          numbers.data() + (static_cast<uint64_t>(block.word[i % 4]) * users >> 32) * width;
      for (std::size_t n = 0; n < width; ++n) sum[n] += row[n];
    }
  });

  std::vector<double> means(static_cast<std::size_t>(resamples));
  const auto interval = [&](auto mean_of) {
    for (std::size_t b = 0; b < means.size(); ++b) means[b] = mean_of(sums.data() + b * width);
    std::sort(means.begin(), means.end());
    return Interval{percentile(means, 0.025), percentile(means, 0.975)};
  };
  for (std::size_t i = 0; i < ks; ++i) {
    for (std::size_t m = 0; m < kUserMetrics; ++m) {
      result[i][m] = interval([&](const double* sum) {
        return sum[i * kUserMetrics + m] / static_cast<double>(users);
      });
    }
    result[i][kUserMetrics] =
        interval([&](const double* sum) { return sum[ks * kUserMetrics + i] / sum[width - 1]; });
  }
  return result;
}

}  // namespace cfaa
