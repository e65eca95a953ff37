#include "host/ops/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "host/core/error.h"

namespace cfaa {
namespace {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
constexpr BitsOf<T> kInfinityBits = std::bit_cast<BitsOf<T>>(std::numeric_limits<T>::infinity());

// The bits of |value|: in their order, with infinity and NaN above all else.
template <class T>
BitsOf<T> magnitude_bits(T value) {
  return std::bit_cast<BitsOf<T>>(value) & ~(BitsOf<T>{1} << (8 * sizeof(T) - 1));
}

// Largest magnitude of the finite elements.
template <class T>
double largest(const T* row, int64_t d) {
  BitsOf<T> most = 0;
  for (int64_t i = 0; i < d; ++i) {
    const BitsOf<T> bits = magnitude_bits(row[i]);
    most = std::max(most, bits < kInfinityBits<T> ? bits : BitsOf<T>{0});
  }
  return std::bit_cast<T>(most);
}

// out = row * scale, zero where that is not finite; returns the norm, infinite then. The squares
// are added up in eight parts, so that the loop is one of vectors.
template <class T>
double scale_row(const T* row, int64_t d, double scale, float* out) {
  constexpr int64_t kParts = 8;
  double square[kParts] = {};
  const auto add = [&](int64_t i, int64_t part) {
    const bool finite = magnitude_bits(row[i]) < kInfinityBits<T>;
    const double value = static_cast<double>(row[i]) * scale;
    out[i] = finite ? static_cast<float>(value) : 0.0f;
    square[part] += finite ? value * value : std::numeric_limits<double>::infinity();
  };
  int64_t i = 0;
  for (; i + kParts <= d; i += kParts) {
    for (int64_t part = 0; part < kParts; ++part) add(i + part, part);
  }
  for (; i < d; ++i) add(i, 0);
  double sum = 0;
  for (const double part : square) sum += part;
  return std::sqrt(sum);
}

// The exponent that brings `most` into [1/2, 1), short of where 2^exponent is no double.
int32_t exponent_for(double most) {
  int exponent = 0;
  if (most > 0) std::frexp(most, &exponent);
  return std::min(-exponent, 1000);
}

constexpr int64_t kRowGrain = 256;

template <class T>
void check_rows(int64_t rows, const RowItems& masked, const DotProducts<T>& dots) {
  CFAA_ASSERT(masked.offset.size() == rows + 1);
  if (dots.users.data == nullptr) return;
  CFAA_ASSERT(dots.users.rows() == rows && dots.users.cols() == dots.items.cols());
  CFAA_ASSERT(dots.users.stride[1] == 1 || dots.users.cols() == 1);
  CFAA_ASSERT(dots.items.stride[1] == 1 || dots.items.cols() == 1);
  CFAA_ASSERT(dots.user_exponent.size() == rows && dots.user_bound.size() == rows);
  CFAA_ASSERT(dots.item_norm.size() == dots.items.rows());
}

}  // namespace

double dot_product_gamma(int64_t d) {
  const double n_u = static_cast<double>(d + 8) * 0x1p-24;
  CFAA_ASSERT(n_u < 0.5);
  return n_u / (1 - n_u);
}

// Each of the D products and sums, and each element rounded to float, may lose up to the smallest
// normal number when the device flushes what is below it to zero.
double dot_product_underflow(int64_t d) {
  return static_cast<double>(d) * 0x1p-124;
}

template <class T>
void float_rows(Context& context, MatrixView<const T> rows, bool common, MatrixView<float> scaled,
                int32_t* exponent, double* norm) {
  const int64_t n = rows.rows(), d = rows.cols();
  CFAA_ASSERT(scaled.shape == rows.shape && scaled.contiguous());
  CFAA_ASSERT(rows.stride[1] == 1 || d == 1);
  const auto row_of = [&](int64_t r) { return rows.data + r * rows.stride[0]; };
  std::vector<double> most(static_cast<std::size_t>(n));
  context.threads().parallel_for(n, kRowGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) most[static_cast<std::size_t>(r)] = largest(row_of(r), d);
  });
  if (common && n > 0)
    std::fill(most.begin(), most.end(), *std::max_element(most.begin(), most.end()));
  context.threads().parallel_for(n, kRowGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      exponent[r] = exponent_for(most[static_cast<std::size_t>(r)]);
      norm[r] = scale_row(row_of(r), d, std::ldexp(1.0, exponent[r]), scaled.data + r * d);
    }
  });
}

TopKCandidates top_k_candidates(Context& context, int64_t rows, int64_t k) {
  CFAA_ASSERT(k >= 1 && k <= kMaxTopK && rows >= 1);
  const int64_t capacity = CFAA_DISPATCH(context, top_k_capacity)(k);
  Arena& arena = context.scratch();
  TopKCandidates candidates;
  candidates.k = k;
  candidates.score = arena.take<float, 2>({rows, capacity});
  candidates.item = arena.take<int32_t, 2>({rows, capacity});
  candidates.count = arena.take<int32_t, 1>({rows});
  candidates.kth = arena.take<double, 1>({rows});
  candidates.nan_item = arena.take<int32_t, 1>({rows});
  CFAA_DISPATCH(context, top_k_clear)(context, candidates);
  return candidates;
}

void dot_scores(Context& context, MatrixView<const float> users, MatrixView<const float> items,
                MatrixView<float> scores) {
  CFAA_ASSERT(users.cols() == items.cols() && users.contiguous() && items.contiguous());
  CFAA_ASSERT(scores.rows() == users.rows() && scores.cols() == items.rows());
  CFAA_ASSERT(scores.contiguous());
  CFAA_DISPATCH(context, dot_scores)(context, users, items, scores);
}

template <class T>
void top_k_update(Context& context, MatrixView<const float> scores, int64_t first_item,
                  float largest_norm, const RowItems& masked, const DotProducts<T>& dots,
                  const TopKCandidates& candidates) {
  CFAA_ASSERT(scores.rows() == candidates.count.size() && scores.contiguous());
  CFAA_ASSERT(first_item >= 0 && first_item + scores.cols() <= std::numeric_limits<int32_t>::max());
  check_rows(scores.rows(), masked, dots);
  CFAA_DISPATCH(context, top_k_update<T>)
  (context, scores, first_item, largest_norm, masked, dots, candidates);
}

template <class T>
void top_k_finish(Context& context, const DotProducts<T>& dots, const TopKCandidates& candidates,
                  MatrixView<int32_t> item, MatrixView<double> score) {
  CFAA_ASSERT(item.rows() == candidates.count.size() && item.cols() == candidates.k);
  CFAA_ASSERT(item.contiguous() && score.contiguous() && score.shape == item.shape);
  CFAA_DISPATCH(context, top_k_finish<T>)(context, dots, candidates, item, score);
}

CFAA_FOR_FLOAT_AND_DOUBLE(float_rows);
CFAA_FOR_FLOAT_AND_DOUBLE(top_k_update);
CFAA_FOR_FLOAT_AND_DOUBLE(top_k_finish);

}  // namespace cfaa
