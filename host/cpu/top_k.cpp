// The k best of each row on the CPU. A row's scores are compared with its threshold a vector at a
// time; the few that reach it are appended to the row's candidates. When these are full they are
// pruned: to those within the rounding bound of the k-th and, where that leaves more than half
// (many ties), to the k best by exact score. A row belongs to one thread at a time.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "host/cpu/top_k.cpp"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "host/core/error.h"
#include "host/cpu/blas.h"
#include "host/cpu/vector_dispatch.h"
#include "host/ops/top_k.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The first index from `begin` on whose value is not below `threshold` (NaN is not), or `end`.
template <class S>
int64_t next_not_below(const S* values, int64_t begin, int64_t end, S threshold) {
  const hn::ScalableTag<S> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, threshold);
  int64_t i = begin;
  for (; i + 4 * lanes <= end; i += 4 * lanes) {
    const auto b0 = hn::Lt(hn::LoadU(d, values + i), limit);
    const auto b1 = hn::Lt(hn::LoadU(d, values + i + lanes), limit);
    const auto b2 = hn::Lt(hn::LoadU(d, values + i + 2 * lanes), limit);
    const auto b3 = hn::Lt(hn::LoadU(d, values + i + 3 * lanes), limit);
    if (!hn::AllTrue(d, hn::And(hn::And(b0, b1), hn::And(b2, b3)))) break;
  }
  for (; i + lanes <= end; i += lanes) {
    const auto at = hn::Not(hn::Lt(hn::LoadU(d, values + i), limit));
    const intptr_t first = hn::FindFirstTrue(d, at);
    if (first >= 0) return i + first;
  }
  while (i < end && values[i] < threshold) ++i;
  return i;
}

}  // namespace
}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cfaa {
namespace cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kRowGrain = 64;    // rows of a task that filters
constexpr int64_t kGemmRows = 1024;  // most rows of a task that multiplies

// Several products at once, since each is one chain of additions.
template <class T, int N>
void dot_each(const T* user, const T* const* rows, int64_t d, double* score) {
  double sum[N] = {};
  for (int64_t i = 0; i < d; ++i) {
    const double u = static_cast<double>(user[i]);
    for (int n = 0; n < N; ++n) sum[n] += u * static_cast<double>(rows[n][i]);
  }
  std::copy(sum, sum + N, score);
}

template <class S>
struct Candidate {
  S score;
  double key;  // what is being sorted by
  int32_t item;
};

template <class S>
bool better(const Candidate<S>& a, const Candidate<S>& b) {
  return ranks_before(a.key, a.item, b.key, b.item);
}

// The candidates of one row while a thread works on it, and memory that it keeps from row to row.
// S: of the scores. T: of the embeddings.
template <class S, class T>
class Selection {
 public:
  Selection(int64_t k, int64_t capacity, const DotProducts<T>& dots)
      : k_(k), capacity_(capacity), dots_(dots) {
    held_.reserve(static_cast<std::size_t>(capacity));
  }

  void start(int64_t row) {
    row_ = row;
    held_.clear();
    kth_ = -kInfinity;
    nan_item_ = std::numeric_limits<int32_t>::max();
  }

  void load(int64_t row, const TopKCandidates& from) {
    start(row);
    for (int32_t i = 0; i < from.count.data[row]; ++i) {
      held_.push_back({from.score(row, i), 0, from.item(row, i)});
    }
    kth_ = from.kth.data[row];
    nan_item_ = from.nan_item.data[row];
  }

  void store(const TopKCandidates& to) const {
    for (std::size_t i = 0; i < held_.size(); ++i) {
      to.score(row_, i) = held_[i].score;
      to.item(row_, i) = held_[i].item;
    }
    to.count.data[row_] = static_cast<int32_t>(held_.size());
    to.kth.data[row_] = kth_;
    to.nan_item.data[row_] = nan_item_;
  }

  // Takes in the scores of items first_item ... first_item + count - 1.
  void scan(const S* scores, int64_t count, int64_t first_item, float largest_norm,
            const RowItems& masked) {
    const int32_t* masked_begin = masked.item.data + masked.offset.data[row_];
    const int32_t* masked_end = masked.item.data + masked.offset.data[row_ + 1];
    S threshold = threshold_for(largest_norm);
    const auto next = CFAA_VECTOR_DISPATCH(next_not_below<S>);
    for (int64_t j = 0; (j = next(scores, j, count, threshold)) < count; ++j) {
      const int32_t item = static_cast<int32_t>(first_item + j);
      if (std::isnan(scores[j])) {
        nan_item_ = std::min(nan_item_, item);
        continue;
      }
      if (std::binary_search(masked_begin, masked_end, item)) continue;
      held_.push_back({scores[j], 0, item});
      if (static_cast<int64_t>(held_.size()) < capacity_) continue;
      prune_by_bound();
      if (static_cast<int64_t>(held_.size()) > capacity_ / 2) keep_exact_best();
      threshold = threshold_for(largest_norm);
    }
  }

  // Writes the k best by exact score, sorted.
  void finish(int32_t* item, double* score) {
    prune_by_bound();
    keep_exact_best();
    for (int64_t i = 0; i < k_; ++i) {
      const bool there = i < static_cast<int64_t>(held_.size());
      item[i] = there ? held_[static_cast<std::size_t>(i)].item : -1;
      score[i] = there ? held_[static_cast<std::size_t>(i)].key : -kInfinity;
    }
  }

  int32_t nan_item() const { return nan_item_; }

 private:
  bool scores_are_exact() const { return dots_.users.data == nullptr; }

  double error(float norm) const {
    if (scores_are_exact()) return 0;
    return score_error(dots_.user_bound.data[row_], norm, dots_.underflow);
  }
  double error_of(const Candidate<S>& c) const { return error(dots_.item_norm.data[c.item]); }

  // What an item of a norm up to `largest_norm` must score to be looked at. Items come in ascending
  // order, so where scores are exact an equal one is too late.
  S threshold_for(float largest_norm) const {
    constexpr S infinity = std::numeric_limits<S>::infinity();
    const double slack = error(largest_norm);
    if (kth_ == -kInfinity || slack == kInfinity) return -infinity;
    if (slack == 0) return std::nextafter(static_cast<S>(kth_), infinity);
    return std::nextafter(static_cast<S>(kth_ - slack), -infinity);
  }

  // Drops what cannot be among the k best: upper bound below the k-th largest lower bound.
  void prune_by_bound() {
    if (scores_are_exact() || static_cast<int64_t>(held_.size()) <= k_) return;
    for (Candidate<S>& c : held_) c.key = static_cast<double>(c.score) - error_of(c);
    const auto at = held_.begin() + (k_ - 1);
    std::nth_element(held_.begin(), at, held_.end(), better<S>);
    kth_ = std::max(kth_, at->key);
    std::erase_if(held_, [&](const Candidate<S>& c) {
      return static_cast<double>(c.score) + error_of(c) < kth_;
    });
  }

  void keep_exact_best() {
    score_exactly();
    const auto end = held_.begin() + std::min<int64_t>(k_, static_cast<int64_t>(held_.size()));
    std::partial_sort(held_.begin(), end, held_.end(), better<S>);
    held_.erase(end, held_.end());
    if (static_cast<int64_t>(held_.size()) < k_) return;
    const double last = held_.back().key;
    kth_ = std::max(kth_,
                    scores_are_exact() ? last : std::ldexp(last, dots_.user_exponent.data[row_]));
  }

  // Keys become exact scores; those that are NaN go.
  void score_exactly() {
    if (scores_are_exact()) {
      for (Candidate<S>& c : held_) c.key = static_cast<double>(c.score);
      return;
    }
    items_.clear();
    for (const Candidate<S>& c : held_) items_.push_back(c.item);
    exact_.resize(items_.size());
    exact_scores<T>(dots_.users.data + row_ * dots_.users.stride[0], dots_.items, items_.data(),
                    static_cast<int64_t>(items_.size()), exact_.data());
    for (std::size_t i = 0; i < held_.size(); ++i) {
      held_[i].key = exact_[i];
      if (std::isnan(exact_[i])) nan_item_ = std::min(nan_item_, held_[i].item);
    }
    std::erase_if(held_, [](const Candidate<S>& c) { return std::isnan(c.key); });
  }

  const int64_t k_, capacity_;
  const DotProducts<T>& dots_;
  int64_t row_ = 0;
  double kth_ = -kInfinity;
  int32_t nan_item_ = 0;
  std::vector<Candidate<S>> held_;
  std::vector<int32_t> items_;
  std::vector<double> exact_;
};

}  // namespace

int64_t top_k_capacity(int64_t k) {
  return std::max<int64_t>(128, 4 * k);
}

void top_k_clear(Context&, const TopKCandidates& candidates) {
  std::fill_n(candidates.count.data, candidates.count.size(), 0);
  std::fill_n(candidates.kth.data, candidates.kth.size(), -kInfinity);
  std::fill_n(candidates.nan_item.data, candidates.nan_item.size(),
              std::numeric_limits<int32_t>::max());
}

void dot_scores(Context& context, MatrixView<const float> users, MatrixView<const float> items,
                MatrixView<float> scores) {
  const int64_t d = users.cols(), c = items.rows();
  // OpenBLAS copies the items once per call: as few calls as there are threads. So the bits of a
  // score depend on their number, within the bound.
  const int64_t threads = context.threads().threads();
  const int64_t grain = std::min((users.rows() + threads - 1) / threads, kGemmRows);
  context.threads().parallel_for(users.rows(), grain, [&](int64_t begin, int64_t end, int) {
    gemm(Transpose::no, Transpose::yes, end - begin, c, d, 1.0f, users.data + begin * d, d,
         items.data, d, 0.0f, scores.data + begin * c, c);
  });
}

template <class T>
void top_k_update(Context& context, MatrixView<const float> scores, int64_t first_item,
                  float largest_norm, const RowItems& masked, const DotProducts<T>& dots,
                  const TopKCandidates& candidates) {
  const int64_t c = scores.cols();
  context.threads().parallel_for(scores.rows(), kRowGrain, [&](int64_t begin, int64_t end, int) {
    Selection<float, T> selection(candidates.k, candidates.score.cols(), dots);
    for (int64_t row = begin; row < end; ++row) {
      selection.load(row, candidates);
      selection.scan(scores.data + row * c, c, first_item, largest_norm, masked);
      selection.store(candidates);
    }
  });
}

template <class T>
void top_k_finish(Context& context, const DotProducts<T>& dots, const TopKCandidates& candidates,
                  MatrixView<int32_t> item, MatrixView<double> score) {
  const int64_t k = candidates.k;
  context.threads().parallel_for(item.rows(), kRowGrain, [&](int64_t begin, int64_t end, int) {
    Selection<float, T> selection(k, candidates.score.cols(), dots);
    for (int64_t row = begin; row < end; ++row) {
      selection.load(row, candidates);
      selection.finish(item.data + row * k, score.data + row * k);
      candidates.nan_item.data[row] = selection.nan_item();
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(top_k_update);
CFAA_FOR_FLOAT_AND_DOUBLE(top_k_finish);

}  // namespace cpu

template <class T>
void exact_scores(const T* user, MatrixView<const T> items, const int32_t* which, int64_t count,
                  double* score) {
  constexpr int kAtOnce = 8;
  const int64_t d = items.cols();
  const T* rows[kAtOnce];
  int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    for (int n = 0; n < kAtOnce; ++n) rows[n] = items.data + which[i + n] * items.stride[0];
    cpu::dot_each<T, kAtOnce>(user, rows, d, score + i);
  }
  for (; i < count; ++i) {
    rows[0] = items.data + which[i] * items.stride[0];
    cpu::dot_each<T, 1>(user, rows, d, score + i);
  }
}

template <class T>
void top_k_of_rows(Context& context, MatrixView<const T> scores, const RowItems& masked, int64_t k,
                   MatrixView<int32_t> item, MatrixView<double> score,
                   VectorView<int32_t> nan_item) {
  CFAA_ASSERT(k >= 1 && k <= kMaxTopK && item.rows() == scores.rows() && item.cols() == k);
  CFAA_ASSERT(item.contiguous() && score.contiguous() && score.shape == item.shape);
  CFAA_ASSERT(masked.offset.size() == scores.rows() + 1 && nan_item.size() == scores.rows());
  CFAA_ASSERT(scores.stride[1] == 1 || scores.cols() == 1);
  const DotProducts<T> exact_already;
  context.threads().parallel_for(
      scores.rows(), cpu::kRowGrain, [&](int64_t begin, int64_t end, int) {
        cpu::Selection<T, T> selection(k, cpu::top_k_capacity(k), exact_already);
        for (int64_t row = begin; row < end; ++row) {
          selection.start(row);
          selection.scan(scores.data + row * scores.stride[0], scores.cols(), 0, 0, masked);
          selection.finish(item.data + row * k, score.data + row * k);
          nan_item.data[row] = selection.nan_item();
        }
      });
}

CFAA_FOR_FLOAT_AND_DOUBLE(exact_scores);
CFAA_FOR_FLOAT_AND_DOUBLE(top_k_of_rows);

}  // namespace cfaa
#endif  // HWY_ONCE
