#pragma once

// A weighted sum of signals of one domain, ready for ranking: blocks of users x items, never users
// x items x signals. Popularity, votes and words are folded into one pair of sparse matrices, so
// that a block is one sparse product (and one dense one where factors take part).

#include <cstdint>
#include <span>
#include <vector>

#include "host/core/context.h"
#include "host/core/tensor.h"
#include "host/signals/device_rows.h"
#include "host/signals/signal.h"

namespace cfaa {

class SignalScores {
 public:
  // score(u, .) = user_scale[u] sum_s weights[s] signals[s]; without user_scale 1. Nothing of the
  // arguments is needed afterwards.
  SignalScores(Context& context, const Evidence& evidence, std::span<const Signal> signals,
               std::span<const double> weights, std::span<const double> user_scale = {});

  int64_t users() const { return left_.rows(); }
  int64_t items() const { return right_.columns; }

  // score(u, i) = <left of u, column i of right> + <user_factors of u, item_factors of i>
  const SparseRows& left() const { return left_; }
  const SparseRows& right() const { return right_; }
  int64_t dim() const { return dim_; }  // of the factors; 0: there are none
  const std::vector<float>& user_factors() const { return user_factors_; }
  const std::vector<float>& item_factors() const { return item_factors_; }

  // scores (R, last - first), contiguous, on the device, of `users` (R) and items first ... last -
  // 1. The same bits for every split into blocks and every number of threads.
  void fill(Context& context, std::span<const int32_t> users, int64_t first, int64_t last,
            MatrixView<float> scores) const;

  // Of one user and some items, on the host. From any thread.
  void score(int32_t user, std::span<const int32_t> items, double* scores) const;

 private:
  SparseRows left_;   // (users, items + 1 + terms): what the user liked, 1, the words it wrote
  SparseRows right_;  // (items + 1 + terms, items): votes, popularity, the items' words
  DeviceRows device_left_, device_right_;
  int64_t dim_ = 0;
  std::vector<float> user_factors_, item_factors_;  // weights in the users'
  Tensor<float, 2> device_item_factors_;
  Tensor<float, 1> no_bias_;  // (items)
};

}  // namespace cfaa
