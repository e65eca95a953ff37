#pragma once

// Anything that gives scores to users and items can be ranked. Three kinds: dot products of
// embeddings, a full matrix of scores, and a function that fills a block of scores (an MLP, whose
// hidden layer then exists for one block at a time).

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "host/core/context.h"
#include "host/core/error.h"
#include "host/core/view.h"
#include "host/eval/user_items.h"

namespace cfaa {

// Items of each ranked user, best first.
struct Lists {
  int64_t k = 0;
  std::vector<int32_t> user;  // (n)     the ranked users
  std::vector<int32_t> item;  // (n, k)  -1 beyond the end of a list that ran out of items
  std::vector<double> score;  // (n, k)

  std::span<const int32_t> of(std::size_t row) const {
    const auto width = static_cast<std::size_t>(k);
    return std::span(item).subspan(row * width, width);
  }
};

struct RankingOptions {
  int64_t k = 20;
  // Rows and columns of the score matrix held at once; 0: what suits the device. They change the
  // memory and the time, never the lists.
  int64_t user_block = 0;
  int64_t item_block = 0;
};

// A score that has no place in an order.
class NanScore : public Error {
 public:
  NanScore(int32_t user, int32_t item);
  int32_t user, item;
};

class Scorer {
 public:
  virtual ~Scorer() = default;

  virtual int64_t users() const = 0;
  virtual int64_t items() const = 0;

  // The k best items of each of `users`, those of `masked` left out, equal scores in ascending item
  // order. Throws NanScore for the first user who has one.
  virtual Lists rank(Context& context, std::span<const int32_t> users, const UserItems& masked,
                     const RankingOptions& options) const = 0;

  // The scores of one user and some items. Called from several threads.
  virtual void score(int32_t user, std::span<const int32_t> items, double* scores) const = 0;
};

// score(u, i) = <users_u, items_i>, as exact double products: see host/ops/top_k.h. The lists are
// the same on every device, for every number of threads and block size.
template <class T>
class DotScorer final : public Scorer {
 public:
  // `user_rows` (users, D) and `item_rows` (items, D) in host memory that outlives the scorer.
  DotScorer(MatrixView<const T> user_rows, MatrixView<const T> item_rows);

  int64_t users() const override { return users_.rows(); }
  int64_t items() const override { return items_.rows(); }
  Lists rank(Context& context, std::span<const int32_t> users, const UserItems& masked,
             const RankingOptions& options) const override;
  void score(int32_t user, std::span<const int32_t> items, double* scores) const override;

 private:
  MatrixView<const T> users_, items_;
};

// score(u, i) = scores[u][i], (users, items) in host memory; a mapped file is read row by row.
template <class T>
class MatrixScorer final : public Scorer {
 public:
  explicit MatrixScorer(MatrixView<const T> scores);

  int64_t users() const override { return scores_.rows(); }
  int64_t items() const override { return scores_.cols(); }
  Lists rank(Context& context, std::span<const int32_t> users, const UserItems& masked,
             const RankingOptions& options) const override;
  void score(int32_t user, std::span<const int32_t> items, double* scores) const override;

 private:
  MatrixView<const T> scores_;
};

// Scores that a function fills in: those of `users` (R) and items first ... last - 1 into `scores`
// (R, last - first), contiguous, in the memory of the context's device, in stream order. Lists have
// the same bits on the same device with the same number of threads, as far as the function has.
using BlockFunction = std::function<void(Context& context, std::span<const int32_t> users,
                                         int64_t first, int64_t last, MatrixView<float> scores)>;
using PairFunction =
    std::function<void(int32_t user, std::span<const int32_t> items, double* scores)>;

class BlockScorer final : public Scorer {
 public:
  BlockScorer(int64_t users, int64_t items, BlockFunction block, PairFunction pairs);

  int64_t users() const override { return users_; }
  int64_t items() const override { return items_; }
  Lists rank(Context& context, std::span<const int32_t> users, const UserItems& masked,
             const RankingOptions& options) const override;
  void score(int32_t user, std::span<const int32_t> items, double* scores) const override {
    pairs_(user, items, scores);
  }

 private:
  int64_t users_, items_;
  BlockFunction block_;
  PairFunction pairs_;
};

}  // namespace cfaa
