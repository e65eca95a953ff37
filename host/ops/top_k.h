#pragma once

// top_k: the k best columns of every row of a score matrix that is never whole in memory. Blocks of
// float scores go by in ascending column order; each row keeps the few columns that may still be
// among its k best. Columns are items and rows are users here, but nothing depends on it.
//
// Exact lists from float scores. The order is that of the exact score: the dot product in double of
// the embeddings as they were given, its terms added in index order; equal scores go to the lower
// item. The float score f_j of a block differs from the exact s_j by at most
//
//   e_j = gamma |u| |v_j| + underflow,   gamma = (D + 8) 2^-24 / (1 - (D + 8) 2^-24),
//
// since |fl(u.v) - u.v| <= gamma_D sum |u_i v_i| <= gamma_D |u| |v| in whatever order the D terms
// are added (Higham, 3.1), the 8 further roundings cover embeddings of double rounded to float and
// the error of the double product itself. If L is the k-th largest f_j - e_j, then at least k items
// score L or more, and an item with f_j + e_j < L is not among the k best. All others are kept,
// scored again in double and sorted: the lists do not depend on block sizes, threads or device.
//
// So that nothing overflows, float copies are scaled by powers of two (`float_rows`): a ranking
// does not change when its user's row, or every item's, is scaled.

#include <cstdint>

#include "host/core/context.h"
#include "host/core/philox.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// The longest list: what a block of a GPU can sort.
inline constexpr int64_t kMaxTopK = 1024;

// Sorted items of each row as CSR: those of row r are item[offset[r]] ... item[offset[r + 1] - 1].
struct RowItems {
  VectorView<const int64_t> offset;  // (R + 1)
  VectorView<const int32_t> item;
};

// Where float scores come from: what is needed to bound their error and to score again. Empty
// (`users.data == nullptr`): the scores are exact as they are.
template <class T>
struct DotProducts {
  MatrixView<const T> users;                // (R, D)  as given
  MatrixView<const T> items;                // (I, D)  as given
  VectorView<const int32_t> user_exponent;  // (R)  float score = exact score * 2^user_exponent
  VectorView<const double> user_bound;      // (R)     gamma |u| of the scaled row; inf: not finite
  VectorView<const float> item_norm;        // (I)     |v| of the scaled row; inf: not finite
  double underflow = 0;
};

// Rows scaled for the float GEMM, to elements of at most 1. A row that is not finite has zeros in
// place of what is not, and an infinite norm, so that every score with it is computed again.
//
// `rows` (N, D) -> `scaled` (N, D), contiguous, each row times 2^exponent[n], `norm` (N) of it.
// With `common`, one exponent for all rows. On the host.
template <class T>
void float_rows(Context& context, MatrixView<const T> rows, bool common, MatrixView<float> scaled,
                int32_t* exponent, double* norm);

// gamma of the bound above, and its underflow term.
double dot_product_gamma(int64_t d);
double dot_product_underflow(int64_t d);

// e_j of the bound above.
CFAA_HOST_DEVICE inline double score_error(double user_bound, float item_norm, double underflow) {
  if (user_bound > 1e300 || item_norm > 3e38f) return 1e300 * 1e300;
  return user_bound > 0 ? user_bound * item_norm + underflow : 0.0;
}

// The order of the lists.
template <class S>
CFAA_HOST_DEVICE inline bool ranks_before(S score_a, int32_t item_a, S score_b, int32_t item_b) {
  return score_a > score_b || (score_a == score_b && item_a < item_b);
}

// What each row holds between two blocks, in the arena of the context.
struct TopKCandidates {
  int64_t k = 0;
  MatrixView<float> score;       // (R, capacity)
  MatrixView<int32_t> item;      // (R, capacity)
  VectorView<int32_t> count;     // (R)  of the two above
  VectorView<double> kth;        // (R)  a lower bound of the k-th best score, scaled; -inf at first
  VectorView<int32_t> nan_item;  // (R)  the lowest item seen whose score is NaN, or INT32_MAX
};

// Empty candidates of `rows` rows; k is 1 ... kMaxTopK. Takes memory from context.scratch().
TopKCandidates top_k_candidates(Context& context, int64_t rows, int64_t k);

// scores (R, C) = users (R, D) items' (D, C) in float; contiguous rows.
CFAA_OP(void dot_scores(Context& context, MatrixView<const float> users,
                        MatrixView<const float> items, MatrixView<float> scores));

// Takes in the scores (R, C) of items first_item ... first_item + C - 1, save those in `masked`.
// `largest_norm` is the largest of their item_norm. Blocks come in ascending order.
CFAA_OP(template <class T>
        void top_k_update(Context& context, MatrixView<const float> scores, int64_t first_item,
                          float largest_norm, const RowItems& masked, const DotProducts<T>& dots,
                          const TopKCandidates& candidates));

// Writes the lists: item (R, k), -1 beyond the end of a short list, and their exact scores (R, k).
CFAA_OP(template <class T>
        void top_k_finish(Context& context, const DotProducts<T>& dots,
                          const TopKCandidates& candidates, MatrixView<int32_t> item,
                          MatrixView<double> score));

// The same for whole rows of scores in host memory, such as a mapped file, always on the CPU: to
// copy them to a GPU takes longer than to read them. `nan_item` as in TopKCandidates.
template <class T>
void top_k_of_rows(Context& context, MatrixView<const T> scores, const RowItems& masked, int64_t k,
                   MatrixView<int32_t> item, MatrixView<double> score,
                   VectorView<int32_t> nan_item);

// The exact scores of one user and some items, in host memory.
template <class T>
void exact_scores(const T* user, MatrixView<const T> items, const int32_t* which, int64_t count,
                  double* score);

// Of top_k_candidates: columns that a row has room for, and how it empties them.
CFAA_DEVICE_OP(int64_t top_k_capacity(int64_t k));
CFAA_DEVICE_OP(void top_k_clear(Context& context, const TopKCandidates& candidates));

}  // namespace cfaa
