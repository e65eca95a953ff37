#pragma once

// Embedding sets on a device: P pairs of a source and a target set, with gradients of the same
// shapes that start at zero. Rows are padded.

#include <utility>
#include <vector>

#include "bench/reference/inputs.h"
#include "host/ops/embedding_pair.h"

namespace cfaa::reference {

// A set on the host, row-major.
struct HostSet {
  int64_t rows, cols;
  std::vector<double> values;

  std::vector<double> column(int64_t q) const {
    std::vector<double> out;
    for (int64_t i = 0; i < rows; ++i) {
      out.push_back(values[static_cast<std::size_t>(i * cols + q)]);
    }
    return out;
  }
};

inline HostSet normal_set(int64_t rows, int64_t cols, uint64_t seed, double mean = 0,
                          double spread = 1) {
  return {rows, cols, normal<double>(rows * cols, seed, mean, spread)};
}

template <class T>
class EmbeddingSets {
 public:
  // Sources first, then targets, as the ops number them. Rows are `padding` elements apart.
  EmbeddingSets(Context& context, std::vector<HostSet> sets, int64_t padding = 3)
      : host_(std::move(sets)) {
    const std::size_t p = host_.size() / 2;
    for (HostSet& set : host_) {
      const std::vector<T> values(set.values.begin(), set.values.end());
      set.values.assign(values.begin(), values.end());  // rounded as the op sees them
      const std::vector<T> zeros(values.size(), T(0));
      sets_.emplace_back(context, set.rows, set.cols, values, padding);
      gradients_.emplace_back(context, set.rows, set.cols, zeros, padding);
    }
    for (std::size_t i = 0; i < p; ++i) {
      pairs_.push_back({sets_[i].view(), sets_[p + i].view()});
      gradient_pairs_.push_back({gradients_[i].view(), gradients_[p + i].view()});
    }
  }

  const HostSet& host(std::size_t set) const { return host_[set]; }
  EmbeddingPairs<T> pairs() const { return pairs_; }
  GradientPairs<T> gradient_pairs() const { return gradient_pairs_; }
  std::vector<T> gradient(std::size_t set) const { return gradients_[set].to_host(); }
  void clear_gradients() {
    for (PaddedMatrix<T>& gradient : gradients_) gradient.fill_zero();
  }

 private:
  std::vector<HostSet> host_;
  std::vector<PaddedMatrix<T>> sets_, gradients_;
  std::vector<EmbeddingPair<T>> pairs_;
  std::vector<GradientPair<T>> gradient_pairs_;
};

}  // namespace cfaa::reference
