#pragma once

// What a list is worth. With P the held-out positives of a user, hits the members of P among the
// first k of the list, and r the rank of the first hit (from 1):
//
//   HR@k         1 if there is a hit, else 0
//   Recall@k     hits / |P|
//   NDCG@k       sum over hits of 1/log2(rank + 1), over the most it could be:
//                sum_{rank <= min(k, |P|)} 1/log2(rank + 1)
//   MRR@k        1/r, or 0 without a hit
//   Precision@k  hits / k
//
// each averaged over the users who have a held-out positive; and over all users together
//
//   pooled_HR@k  all hits / all positives: the paper's Table 1 has Recall above HR, which the
//                per-user HR cannot be below
//   Coverage@k   distinct items in the lists / items
//
// Sums are in user order, so that metrics have the same bits for every number of threads.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/eval/scorer.h"
#include "host/eval/user_items.h"

namespace cfaa {

inline constexpr int kUserMetrics = 5;  // averaged over users; then pooled HR and coverage
inline constexpr int kMetrics = 7;
inline constexpr std::array<const char*, kMetrics> kMetricNames = {
    "HR", "Recall", "NDCG", "MRR", "Precision", "pooled_HR", "Coverage"};

// The metrics of each user who has positives.
struct UserMetrics {
  std::vector<int64_t> ks;
  std::vector<int32_t> user;       // (n)
  std::vector<int32_t> positives;  // (n)
  std::vector<int32_t> hits;       // (n, ks)
  std::vector<double> value;       // (n, ks, kUserMetrics)
};

// One number per metric at one k.
struct MetricsAt {
  int64_t k = 0;
  std::array<double, kMetrics> value{};
};

struct Interval {
  double low = 0, high = 0;
};

// `lists.k` is at least every one of `ks`. Users of `lists` without positives are left out.
UserMetrics measure_users(const Lists& lists, const UserItems& positives,
                          const std::vector<int64_t>& ks);

// Means over the users, all 0 where there are none. Coverage is that of the measured users' lists.
std::vector<MetricsAt> summarize(const UserMetrics& metrics, const Lists& lists, int64_t items);

// The middle 95 % of `resamples` means, each over as many users drawn with replacement: percentiles
// 2.5 and 97.5 with linear interpolation, per k and per metric up to pooled HR. Draw i of resample
// b is word i % 4 of Philox(i / 4, b).
std::vector<std::array<Interval, kUserMetrics + 1>> bootstrap(Context& context,
                                                              const UserMetrics& metrics,
                                                              int64_t resamples, uint64_t seed);

}  // namespace cfaa
