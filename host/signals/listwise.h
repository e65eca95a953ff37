#pragma once

// Weights of a few signals by a listwise loss. For a positive p of a user and the items n that the
// user neither has nor will be shown to like,
//
//   loss = log(exp(s_p) + r sum_n exp(s_n)) - s_p,    s = <w, f>
//
// with r = 1 over the whole catalogue, or what each drawn item stands for where items are drawn. It
// is convex in w; a few Newton steps in double find the minimum. A constant added to all of a
// user's scores changes nothing, so that signals need a scale but no centre.

#include <cstdint>
#include <span>
#include <vector>

#include "host/core/parallel.h"

namespace cfaa {

// Users with held-out positives. All positives of a group share its negatives.
struct ListwiseGroups {
  int64_t signals = 0;
  std::vector<int64_t> positive_offset = {0}, negative_offset = {0};  // (groups + 1)
  std::vector<float> positives;                                       // (positives, signals)
  std::vector<float> negatives;                                       // (negatives, signals)
  std::vector<float> stands_for;                                      // (groups) r

  int64_t groups() const { return static_cast<int64_t>(stands_for.size()); }
  int64_t edges() const { return positive_offset.back(); }
};

// `factor` times the sum of the losses of these positives.
struct ListwiseTerm {
  const ListwiseGroups* groups = nullptr;
  double factor = 1;
};

struct ListwiseLoss {
  double value = 0;
  std::vector<double> gradient;  // (signals)
  std::vector<double> hessian;   // (signals, signals)
};

// Sum over the terms, plus ridge / 2 ||w||^2. The same bits for every number of threads.
ListwiseLoss listwise_loss(ThreadPool& threads, std::span<const ListwiseTerm> terms, double ridge,
                           std::span<const double> w);

// The minimiser over weights that are not negative; ridge > 0. Every signal is made so that more of
// it speaks for an item: a negative weight on few edges is chance, and costs dearly on new ones.
std::vector<double> fit_listwise(ThreadPool& threads, std::span<const ListwiseTerm> terms,
                                 double ridge, int64_t signals);

// NDCG@10 of each group where its items are ranked by <w, f>. A drawn item counts as all that it
// stands for, and one with the same score as half of it.
std::vector<double> listwise_ndcg(ThreadPool& threads, const ListwiseGroups& groups,
                                  std::span<const double> w);

}  // namespace cfaa
