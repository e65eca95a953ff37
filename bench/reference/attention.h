#pragma once

// Attention over bags and over words by plain loops in double, values only: their central
// differences are the gradients.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/reference/bags.h"

namespace cfaa::reference {

// out_r = sum_e softmax_e(logit(r, e)) x[index_e], over the entries e of bag r.
template <class Logit>
std::vector<double> attention(const BagLists& lists, const std::vector<double>& x, int64_t columns,
                              Logit logit) {
  const auto width = static_cast<std::size_t>(columns);
  std::vector<double> out(static_cast<std::size_t>(lists.bags()) * width);
  for (std::size_t r = 0; r + 1 < lists.offset.size(); ++r) {
    const auto begin = static_cast<std::size_t>(lists.offset[r]);
    const auto end = static_cast<std::size_t>(lists.offset[r + 1]);
    double sum = 0;
    for (std::size_t e = begin; e < end; ++e) sum += std::exp(logit(r, lists.index[e]));
    for (std::size_t e = begin; e < end; ++e) {
      const double share = std::exp(logit(r, lists.index[e])) / sum;
      for (std::size_t c = 0; c < width; ++c) {
        out[r * width + c] += share * x[static_cast<std::size_t>(lists.index[e]) * width + c];
      }
    }
  }
  return out;
}

inline std::vector<double> bag_attention(const BagLists& lists, const std::vector<double>& x,
                                         int64_t columns, const std::vector<double>& logits) {
  return attention(lists, x, columns,
                   [&](std::size_t, int32_t e) { return logits[static_cast<std::size_t>(e)]; });
}

// query (R, width), key (V, width), value (V, columns).
inline std::vector<double> word_attention(const BagLists& lists, const std::vector<double>& query,
                                          const std::vector<double>& key, int64_t width,
                                          const std::vector<double>& value, int64_t columns,
                                          double scale) {
  return attention(lists, value, columns, [&](std::size_t r, int32_t w) {
    double fit = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(width); ++k) {
      fit += query[r * static_cast<std::size_t>(width) + k] *
             key[static_cast<std::size_t>(w) * static_cast<std::size_t>(width) + k];
    }
    return scale * fit;
  });
}

}  // namespace cfaa::reference
