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
#include "host/signals/later_users.h"
#include "host/signals/signal.h"

namespace cfaa {

class SignalScores {
 public:
  // score(u, .) = user_scale[u] sum_s weights[s] signals[s]; without user_scale 1. Nothing of the
  // arguments is needed afterwards.
  SignalScores(Context& context, const Evidence& evidence, std::span<const Signal> signals,
               std::span<const double> weights, std::span<const double> user_scale = {});

  int64_t users() const { return users_.left.rows(); }
  int64_t items() const { return right_.columns; }

  // score(u, i) = <left of u, column i of right> + <user_factors of u, item_factors of i>
  const SparseRows& left() const { return users_.left; }
  const SparseRows& right() const { return right_; }
  int64_t dim() const { return dim_; }  // of the factors; 0: there are none
  const std::vector<float>& user_factors() const { return users_.factors; }
  const std::vector<float>& item_factors() const { return item_factors_; }

  // scores (R, last - first), contiguous, on the device, of `users` (R) and items first ... last -
  // 1. The same bits for every split into blocks and every number of threads.
  void fill(Context& context, std::span<const int32_t> users, int64_t first, int64_t last,
            MatrixView<float> scores) const;

  // Of one user and some items, on the host. From any thread.
  void score(int32_t user, std::span<const int32_t> items, double* scores) const;

  // Users in the form that scores are made from.
  struct Users {
    SparseRows left;             // (users, items + 1 + terms): what the user liked, 1, its words
    DeviceRows device_left;      // the same
    std::vector<float> factors;  // (users, dim) times their weight
  };
  // Of users who came later; their scores are then the same functions of them.
  Users users_of(Context& context, const LaterUsers& later,
                 std::span<const double> user_scale = {}) const;
  void fill(Context& context, const Users& who, std::span<const int32_t> users, int64_t first,
            int64_t last, MatrixView<float> scores) const;
  void score(const Users& who, int32_t user, std::span<const int32_t> items, double* scores) const;

 private:
  Users make_users(Context& context, const SparseRows& liked, const SparseRows* words,
                   std::vector<float> factors, std::span<const double> user_scale) const;

  Users users_;
  SparseRows right_;  // (items + 1 + terms, items): votes, popularity, the items' words
  DeviceRows device_right_;
  int64_t dim_ = 0;
  double factor_weight_ = 0;
  std::vector<float> item_factors_;
  Tensor<float, 2> device_item_factors_;
  Tensor<float, 1> no_bias_;  // (items)
};

}  // namespace cfaa
