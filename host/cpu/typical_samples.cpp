// Typical samples on the CPU: one task is eight adjacent columns (a cache line or less of each row)
// of both sets of a pair.
//
// A column is taken out of Z once, as x = (z - centre) / spread, and sorted: the iteration depends
// on the multiset only, and with x and M ascending the nearest M of each x, whose exponent the
// softmax subtracts, is found by walking. M stays ascending because the weights of M_j' > M_j grow
// with x against those of M_j (monotone likelihood ratio); rounding is repaired after each step.
//
// Cost: N K exponentials a column and iteration, vectors along j, about 18 vector operations each.
// In float, where the samples lie dense enough, both sums of an iteration are taken on a grid
// instead (host/cpu/gauss_grid-inl.h), in a time that grows with N + K. Rows and samples whose sums
// are small against the peak of a Gaussian, because nothing is near them, are summed directly; so
// the grid's error, 5e-7 of a peak, is of the order of float's own. The backward sums directly.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "host/cpu/typical_samples.cpp"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "host/core/error.h"
#include "host/cpu/exp2-inl.h"
#include "host/cpu/gauss_grid-inl.h"
#include "host/cpu/problems.h"
#include "host/cpu/vector_dispatch.h"
#include "host/ops/typical_samples.h"

#ifndef CFAA_HOST_CPU_TYPICAL_SAMPLES_ONCE
#define CFAA_HOST_CPU_TYPICAL_SAMPLES_ONCE
namespace cfaa::cpu {
namespace {

constexpr int64_t kColumns = 8;     // of a task
constexpr int64_t kRowsAtOnce = 4;  // rows of Psi that share a pass over M
constexpr int64_t kMostLanes = 16;  // of the vectors used; K is padded to a multiple of it

int64_t padded(int64_t count) {
  return (count + kMostLanes - 1) / kMostLanes * kMostLanes;
}

// 1 / alpha in units of the spread is kept within these bounds: beyond them Psi is a hard, or a
// uniform, assignment to the last bit, and squares of x neither overflow nor vanish.
template <class T>
constexpr double kLargestBandwidth = sizeof(T) == 4 ? 1e20 : 1e40;

// A sample counts as without weight where s_j / N is at or below this: far above the weight at
// which exponents are cut off, far below any that matters, and its inverse is finite.
template <class T>
constexpr T kLeastWeight = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-960);

// Stands for the padding of M: so far away that its weight is as small as can be.
template <class T>
constexpr T kNowhere = sizeof(T) == 4 ? T(1e17) : T(1e100);

constexpr int64_t kMostGridRows = 1 << 16;  // of a column: each wants 14 numbers more
constexpr int64_t kMostGridNodes = 1024;
constexpr int64_t kGridPadding = 160;  // for what convolutions read and write beyond the nodes

// A row further than this from the first and the last sample is not looked for on the grid.
constexpr float kFar = 1.44f;  // 1.2 sqrt(alpha)
// The least sum_j 2^(-(x - m_j)^2) of a row that is taken from the grid: that of one sample at that
// distance. And the least s_j of a sample, where there are fewer samples than rows.
constexpr float kLeastRowSum = 0.24f;
constexpr float kLeastSampleSum = 0.05f;

// Of the grid, where there is one.
struct GridScratch {
  int32_t *x_cell, *x_skip, *m_cell, *m_skip;    // (N), (N), (K), (K)
  float *x_position, *x_weights;                 // (N), (N, 8)
  float *m_position, *m_weights;                 // (K), (K, 8)
  int32_t* far_row;                              // (N)
  float *share, *weighted_share;                 // (N)  1 / sum_j and x / sum_j of a row
  float* ones;                                   // (K)
  float *in, *weighted_in, *out, *weighted_out;  // (kMostGridNodes + kGridPadding)
};

// Scratch of one worker; everything in units of spread / sqrt(bandwidth * log2 e).
template <class T>
struct TypicalSamplesScratch {
  T* x;         // (kColumns, N)        columns of Z
  T* m;         // (padded K)           M
  T* rows;      // (kRowsAtOnce, padded K)  rows of Psi before they are normalised
  T* weight;    // (padded K)           sum_i Psi_ij
  T* weighted;  // (padded K)           sum_i Psi_ij x_i
  GridScratch grid;
};

// Numbers that are not NaN, ascending. As unsigned integers they ascend too, once the sign's bit is
// turned, and all bits of a negative number.
inline void sort_by_digits(float* x, int64_t n, uint32_t* keys, uint32_t* other) {
  constexpr int kDigits = 4, kValues = 256;
  int32_t count[kDigits][kValues] = {};
  for (int64_t i = 0; i < n; ++i) {
    uint32_t key;
    std::memcpy(&key, x + i, sizeof(key));
    key ^= static_cast<uint32_t>(-static_cast<int32_t>(key >> 31)) | 0x80000000u;
    keys[i] = key;
    for (int digit = 0; digit < kDigits; ++digit) ++count[digit][key >> (8 * digit) & 255];
  }
  for (int digit = 0; digit < kDigits; ++digit) {
    int32_t before = 0;
    for (int32_t& c : count[digit]) before += std::exchange(c, before);
    for (int64_t i = 0; i < n; ++i) {
      other[count[digit][keys[i] >> (8 * digit) & 255]++] = keys[i];
    }
    std::swap(keys, other);
  }
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t key = keys[i] ^ ((keys[i] >> 31) - 1 | 0x80000000u);
    std::memcpy(x + i, &key, sizeof(key));
  }
}

// What one task works on: columns first .. first + columns of both sets of pair p.
template <class T>
struct ForwardColumns {
  const EmbeddingPair<T>& pair;
  int64_t p, pairs, first, columns;
  const TypicalSamplesOptions& options;
  TypicalSamplesScratch<T> scratch;
  const TypicalSamples<T>& result;
};

// And in the backward: the same columns of one set.
template <class T>
struct BackwardColumns {
  MatrixView<const T> z;
  int64_t set, p, first, columns;
  const TypicalSamples<T>& forward;
  View<const T, 3> samples_gradient;
  double scale;
  TypicalSamplesScratch<T> scratch;
  MatrixView<T> gradient;
};

}  // namespace
}  // namespace cfaa::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {
namespace {

// log2 of the weight of m for a point x whose nearest sample is `nearest`, against that one's:
// (x - nearest)^2 - (x - m)^2, factored so that it is as accurate far out as near by.
template <class V>
HWY_INLINE V exponent(V m, V nearest, V twice_x_minus_nearest) {
  return hn::Mul(hn::Sub(m, nearest), hn::Sub(twice_x_minus_nearest, m));
}

// The weights of four points for every sample, and their sums over the samples.
template <class D, class T>
HWY_INLINE void four_rows(D d, const T* HWY_RESTRICT m, int64_t k, const T* x, const T* nearest,
                          T* HWY_RESTRICT rows, T* sums) {
  const auto n0 = hn::Set(d, nearest[0]), n1 = hn::Set(d, nearest[1]);
  const auto n2 = hn::Set(d, nearest[2]), n3 = hn::Set(d, nearest[3]);
  const auto b0 = hn::Set(d, 2 * x[0] - nearest[0]), b1 = hn::Set(d, 2 * x[1] - nearest[1]);
  const auto b2 = hn::Set(d, 2 * x[2] - nearest[2]), b3 = hn::Set(d, 2 * x[3] - nearest[3]);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  for (int64_t j = 0; j < k; j += static_cast<int64_t>(hn::Lanes(d))) {
    const auto mj = hn::Load(d, m + j);
    const auto w0 = exp2(d, exponent(mj, n0, b0));
    const auto w1 = exp2(d, exponent(mj, n1, b1));
    const auto w2 = exp2(d, exponent(mj, n2, b2));
    const auto w3 = exp2(d, exponent(mj, n3, b3));
    hn::Store(w0, d, rows + j);
    hn::Store(w1, d, rows + k + j);
    hn::Store(w2, d, rows + 2 * k + j);
    hn::Store(w3, d, rows + 3 * k + j);
    s0 = hn::Add(s0, w0);
    s1 = hn::Add(s1, w1);
    s2 = hn::Add(s2, w2);
    s3 = hn::Add(s3, w3);
  }
  sums[0] = hn::GetLane(hn::SumOfLanes(d, s0));
  sums[1] = hn::GetLane(hn::SumOfLanes(d, s1));
  sums[2] = hn::GetLane(hn::SumOfLanes(d, s2));
  sums[3] = hn::GetLane(hn::SumOfLanes(d, s3));
}

// weight_j += sum_r rows_rj a_r and weighted_j += sum_r rows_rj b_r over four rows.
template <class D, class T>
HWY_INLINE void accumulate(D d, const T* HWY_RESTRICT rows, int64_t k, const T* a, const T* b,
                           T* HWY_RESTRICT weight, T* HWY_RESTRICT weighted) {
  const auto a0 = hn::Set(d, a[0]), a1 = hn::Set(d, a[1]);
  const auto a2 = hn::Set(d, a[2]), a3 = hn::Set(d, a[3]);
  const auto b0 = hn::Set(d, b[0]), b1 = hn::Set(d, b[1]);
  const auto b2 = hn::Set(d, b[2]), b3 = hn::Set(d, b[3]);
  for (int64_t j = 0; j < k; j += static_cast<int64_t>(hn::Lanes(d))) {
    const auto w0 = hn::Load(d, rows + j), w1 = hn::Load(d, rows + k + j);
    const auto w2 = hn::Load(d, rows + 2 * k + j), w3 = hn::Load(d, rows + 3 * k + j);
    auto s = hn::MulAdd(w0, a0, hn::Load(d, weight + j));
    auto t = hn::MulAdd(w0, b0, hn::Load(d, weighted + j));
    s = hn::MulAdd(w1, a1, s);
    t = hn::MulAdd(w1, b1, t);
    s = hn::MulAdd(w2, a2, s);
    t = hn::MulAdd(w2, b2, t);
    hn::Store(hn::MulAdd(w3, a3, s), d, weight + j);
    hn::Store(hn::MulAdd(w3, b3, t), d, weighted + j);
  }
}

// One iteration on a sorted column x of n points: fills scratch.weight and .weighted from
// scratch.m.
template <class T>
void assign(const T* x, int64_t n, int64_t k, const TypicalSamplesScratch<T>& scratch) {
  const hn::CappedTag<T, kMostLanes> d;
  const int64_t kp = padded(k);
  const T* m = scratch.m;
  std::fill_n(scratch.weight, kp, T(0));
  std::fill_n(scratch.weighted, kp, T(0));
  int64_t near = 0;
  for (int64_t i = 0; i < n; i += kRowsAtOnce) {
    T point[kRowsAtOnce], nearest[kRowsAtOnce], sums[kRowsAtOnce];
    T share[kRowsAtOnce], weighted_share[kRowsAtOnce];
    for (int64_t r = 0; r < kRowsAtOnce; ++r) {
      point[r] = x[std::min(i + r, n - 1)];
      while (near + 1 < k && m[near] + m[near + 1] <= 2 * point[r]) ++near;
      nearest[r] = m[near];
    }
    four_rows(d, m, kp, point, nearest, scratch.rows, sums);
    for (int64_t r = 0; r < kRowsAtOnce; ++r) {
      share[r] = i + r < n ? 1 / sums[r] : T(0);
      weighted_share[r] = share[r] * point[r];
    }
    accumulate(d, scratch.rows, kp, share, weighted_share, scratch.weight, scratch.weighted);
  }
}

// The sample nearest to a point.
template <class T>
T nearest_of(const T* m, int64_t k, T point) {
  const T* above = std::lower_bound(m, m + k, point);
  const bool below_is_nearer =
      above == m + k || (above > m && point - above[-1] <= above[0] - point);
  return below_is_nearer ? above[-1] : above[0];
}

// Where there is no grid.
struct NoGrid {
  template <class... Arguments>
  explicit NoGrid(const Arguments&...) {}
  bool assign() { return false; }
};

#if CFAA_GAUSS_GRID
// Iterations of one column on a grid.
class GridColumn {
 public:
  GridColumn(const float* x, int64_t n, int64_t k, const TypicalSamplesScratch<float>& scratch)
      : x_(x), n_(n), k_(k), scratch_(scratch), grid_(scratch.grid) {
    // Cells are counted in 32 bits; so far out nothing lies dense.
    usable_ = grid_.x_cell != nullptr && std::max(-x[0], x[n - 1]) < 1e6f;
    if (!usable_) return;
    x_points_ = {grid_.x_cell, grid_.x_skip, grid_.x_position, grid_.x_weights};
    m_points_ = {grid_.m_cell, grid_.m_skip, grid_.m_position, grid_.m_weights};
    place(x, n, x_points_);
    std::fill_n(grid_.ones, k, 1.0f);
  }

  // `assign` on the grid. False, with nothing done, where the direct sums take less.
  bool assign() {
    if (!usable_ || !choose_nodes()) return false;
    place(scratch_.m, k_, m_points_);
    sum_rows();
    if (8 * far_rows_ > n_) return false;
    std::fill_n(scratch_.weight, padded(k_), 0.0f);
    std::fill_n(scratch_.weighted, padded(k_), 0.0f);
    add_far_rows();
    sum_samples();
    return true;
  }

 private:
  // The rows within reach of the samples, and the nodes that they and the samples need.
  bool choose_nodes() {
    const float low = scratch_.m[0] - kFar, high = scratch_.m[k_ - 1] + kFar;
    const float span = (high - low) * kNodesPerUnit + 2 * kGridNodes;
    // A node costs about as much as 24 pairs of a row and a sample.
    if (!(span <= static_cast<float>(std::min(kMostGridNodes, n_ * k_ / 24)))) return false;
    first_ = static_cast<int32_t>(std::floor(low * kNodesPerUnit));
    nodes_ = static_cast<int64_t>(span);
    begin_ = std::lower_bound(x_, x_ + n_, low) - x_;
    end_ = std::upper_bound(x_ + begin_, x_ + n_, high) - x_;
    return true;
  }

  void clear(float* nodes) const { std::fill_n(nodes, nodes_ + kGridPadding, 0.0f); }

  void join(const float* HWY_RESTRICT from, float* HWY_RESTRICT to) const {
    for (int64_t i = 0; i < nodes_ + kGridPadding; ++i) to[i] += from[i];
  }

  // share_i = 1 / sum_j 2^(-(x_i - m_j)^2), but 0 for far rows, which are listed.
  void sum_rows() {
    // Two halves at a time: the next sum of a half waits for the one before.
    clear(grid_.in);
    clear(grid_.weighted_in);
    const int64_t half = k_ / 2;
    Spread low(m_points_, first_, grid_.ones, grid_.in);
    Spread high(m_points_, first_, grid_.ones, grid_.weighted_in);
    for (int64_t j = 0; j < half; ++j) {
      low.add(j);
      high.add(half + j);
    }
    if (k_ % 2 == 1) high.add(k_ - 1);
    join(grid_.weighted_in, grid_.in);
    convolve(grid_.in, nodes_, grid_.out);
    far_rows_ = 0;
    for (int64_t i = 0; i < begin_; ++i) grid_.far_row[far_rows_++] = static_cast<int32_t>(i);
    for (int64_t i = begin_; i < end_; ++i) {
      const float sum = gather(grid_.out, x_points_, i, first_);
      const bool near = sum >= kLeastRowSum;
      grid_.share[i] = near ? 1 / sum : 0.0f;
      grid_.weighted_share[i] = grid_.share[i] * x_[i];
      if (!near) grid_.far_row[far_rows_++] = static_cast<int32_t>(i);
    }
    for (int64_t i = end_; i < n_; ++i) grid_.far_row[far_rows_++] = static_cast<int32_t>(i);
  }

  // As the direct sums do.
  void add_far_rows() const {
    const hn::CappedTag<float, kMostLanes> d;
    const float* m = scratch_.m;
    const int64_t kp = padded(k_);
    for (int64_t i = 0; i < far_rows_; i += kRowsAtOnce) {
      float point[kRowsAtOnce], nearest[kRowsAtOnce], sums[kRowsAtOnce];
      float share[kRowsAtOnce], weighted_share[kRowsAtOnce];
      for (int64_t r = 0; r < kRowsAtOnce; ++r) {
        point[r] = x_[grid_.far_row[std::min(i + r, far_rows_ - 1)]];
        nearest[r] = nearest_of(m, k_, point[r]);
      }
      four_rows(d, m, kp, point, nearest, scratch_.rows, sums);
      for (int64_t r = 0; r < kRowsAtOnce; ++r) {
        share[r] = i + r < far_rows_ ? 1 / sums[r] : 0.0f;
        weighted_share[r] = share[r] * point[r];
      }
      accumulate(d, scratch_.rows, kp, share, weighted_share, scratch_.weight, scratch_.weighted);
    }
  }

  // Adds sum_i share_i 2^(-(x_i - m_j)^2), and the same of x_i, over the rows that are not far.
  void sum_samples() const {
    for (float* nodes : {grid_.in, grid_.weighted_in, grid_.out, grid_.weighted_out}) clear(nodes);
    const int64_t half = (end_ - begin_) / 2, middle = begin_ + half;
    Spread low(x_points_, first_, grid_.share, grid_.in);
    Spread weighted_low(x_points_, first_, grid_.weighted_share, grid_.weighted_in);
    Spread high(x_points_, first_, grid_.share, grid_.out);
    Spread weighted_high(x_points_, first_, grid_.weighted_share, grid_.weighted_out);
    for (int64_t i = 0; i < half; ++i) {
      low.add(begin_ + i);
      weighted_low.add(begin_ + i);
      high.add(middle + i);
      weighted_high.add(middle + i);
    }
    if (middle + half < end_) {
      high.add(end_ - 1);
      weighted_high.add(end_ - 1);
    }
    join(grid_.out, grid_.in);
    join(grid_.weighted_out, grid_.weighted_in);
    convolve(grid_.in, nodes_, grid_.out);
    convolve(grid_.weighted_in, nodes_, grid_.weighted_out);
    const float least =
        kLeastSampleSum * std::min(1.0f, static_cast<float>(n_) / static_cast<float>(k_));
    for (int64_t j = 0; j < k_; ++j) {
      const float sum = gather(grid_.out, m_points_, j, first_);
      if (sum >= least) {
        scratch_.weight[j] += sum;
        scratch_.weighted[j] += gather(grid_.weighted_out, m_points_, j, first_);
      } else {
        add_to_far_sample(j);
      }
    }
  }

  void add_to_far_sample(int64_t j) const {
    const hn::CappedTag<float, kMostLanes> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto m = hn::Set(d, scratch_.m[j]);
    auto sum = hn::Zero(d), weighted = hn::Zero(d);
    int64_t i = begin_;
    for (; i + lanes <= end_; i += lanes) {
      const auto r = hn::Sub(hn::LoadU(d, x_ + i), m);
      const auto w = exp2(d, hn::Neg(hn::Mul(r, r)));
      sum = hn::MulAdd(w, hn::LoadU(d, grid_.share + i), sum);
      weighted = hn::MulAdd(w, hn::LoadU(d, grid_.weighted_share + i), weighted);
    }
    scratch_.weight[j] += hn::GetLane(hn::SumOfLanes(d, sum));
    scratch_.weighted[j] += hn::GetLane(hn::SumOfLanes(d, weighted));
    for (; i < end_; ++i) {
      const float r = x_[i] - scratch_.m[j];
      const float w = std::exp2(std::max(-r * r, kSmallestExponent<float>));
      scratch_.weight[j] += w * grid_.share[i];
      scratch_.weighted[j] += w * grid_.weighted_share[i];
    }
  }

  const float* x_;
  int64_t n_, k_;
  const TypicalSamplesScratch<float>& scratch_;
  const GridScratch& grid_;
  bool usable_;
  GridPoints x_points_{}, m_points_{};
  int32_t first_ = 0;  // cell of the first node
  int64_t nodes_ = 0, begin_ = 0, end_ = 0, far_rows_ = 0;
};

template <class T>
using ColumnGrid = std::conditional_t<std::is_same_v<T, float>, GridColumn, NoGrid>;
#else
template <class T>
using ColumnGrid = NoGrid;
#endif

// M_j = sum_i Psi_ij x_i / s_j, where s_j > 0; s_j that count as 0 become it.
template <class T>
void move_samples(int64_t n, int64_t k, const TypicalSamplesScratch<T>& scratch) {
  const hn::CappedTag<T, kMostLanes> d;
  const auto least = hn::Set(d, static_cast<T>(n) * kLeastWeight<T>), one = hn::Set(d, T(1));
  for (int64_t j = 0; j < padded(k); j += static_cast<int64_t>(hn::Lanes(d))) {
    const auto s = hn::Load(d, scratch.weight + j);
    const auto has_weight = hn::Gt(s, least);
    const auto mean =
        hn::Div(hn::Load(d, scratch.weighted + j), hn::IfThenElse(has_weight, s, one));
    hn::Store(hn::IfThenElse(has_weight, mean, hn::Load(d, scratch.m + j)), d, scratch.m + j);
    hn::Store(hn::IfThenElseZero(has_weight, s), d, scratch.weight + j);
  }
  for (int64_t j = 1; j < k; ++j) {
    if (scratch.m[j] < scratch.m[j - 1]) scratch.m[j] = scratch.m[j - 1];
  }
}

// By digits of 8 bits, from the last, where there is room and enough to sort: branches that cannot
// be foreseen are what sorting costs.
template <class T>
void sort_column(T* x, int64_t n, const TypicalSamplesScratch<T>& scratch) {
  if constexpr (std::is_same_v<T, float>) {
    constexpr int64_t kEnough = 64;
    if (scratch.grid.x_cell != nullptr && n >= kEnough) {
      sort_by_digits(x, n, reinterpret_cast<uint32_t*>(scratch.grid.x_cell),
                     reinterpret_cast<uint32_t*>(scratch.grid.x_skip));
      return;
    }
  }
  std::sort(x, x + n);
}

// M_j = the value at position (j + 1/2) n/k - 1/2 of the sorted column.
template <class T>
void start_at_quantiles(const T* x, int64_t n, int64_t k, T* m) {
  for (int64_t j = 0; j < k; ++j) {
    const double at =
        (static_cast<double>(j) + 0.5) * static_cast<double>(n) / static_cast<double>(k) - 0.5;
    const double position = std::clamp(at, 0.0, static_cast<double>(n - 1));
    const int64_t below = static_cast<int64_t>(position);
    const int64_t above = std::min(below + 1, n - 1);
    const double fraction = position - static_cast<double>(below);
    const double low = x[below], high = x[above];
    m[j] = static_cast<T>(low + fraction * (high - low));
  }
  std::fill(m + k, m + padded(k), kNowhere<T>);
}

// Centre, largest distance from it and mean square in units of that distance. The mean is taken of
// differences from the first row, so that a constant column has distance 0 exactly.
struct ColumnStatistics {
  double centre[kColumns], reach[kColumns], variance[kColumns];
};

template <class T>
void column_statistics(const MatrixView<const T>& z, int64_t first, int64_t columns,
                       ColumnStatistics& result) {
  const int64_t n = z.rows();
  double base[kColumns] = {}, sum[kColumns] = {}, low[kColumns] = {}, high[kColumns] = {};
  for (int64_t c = 0; c < columns; ++c) base[c] = z(0, first + c);
  for (int64_t i = 0; i < n; ++i) {
    const T* row = z.data + i * z.stride[0] + first;
    for (int64_t c = 0; c < columns; ++c) {
      const double difference = static_cast<double>(row[c]) - base[c];
      sum[c] += difference;
      low[c] = std::min(low[c], difference);
      high[c] = std::max(high[c], difference);
    }
  }
  double inverse[kColumns] = {}, squares[kColumns] = {};
  for (int64_t c = 0; c < columns; ++c) {
    const double mean = sum[c] / static_cast<double>(n);
    result.centre[c] = base[c] + mean;
    result.reach[c] = std::max(high[c] - mean, mean - low[c]);
    inverse[c] = result.reach[c] > 0 ? 1 / result.reach[c] : 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    const T* row = z.data + i * z.stride[0] + first;
    for (int64_t c = 0; c < columns; ++c) {
      const double u = (static_cast<double>(row[c]) - result.centre[c]) * inverse[c];
      squares[c] += u * u;
    }
  }
  for (int64_t c = 0; c < columns; ++c) result.variance[c] = squares[c] / static_cast<double>(n);
}

// The unit in which squares of both columns are taken: the root of their mean variance. Taken in
// units of the larger reach, so that no square overflows or vanishes.
double spread_of(const ColumnStatistics& source, const ColumnStatistics& target, int64_t c) {
  const double reach = std::max(source.reach[c], target.reach[c]);
  if (!(reach > 0)) return 0;
  const double s = source.reach[c] / reach, t = target.reach[c] / reach;
  return reach * std::sqrt((source.variance[c] * s * s + target.variance[c] * t * t) / 2);
}

// Factor from units of `spread` to those in which the weight of a distance r is 2^(-r^2).
template <class T>
double exponent_unit(T bandwidth) {
  return std::sqrt(static_cast<double>(bandwidth) * kLog2E<double>);
}

// Columns first .. of z to x (columns, n), as (z - centre) / spread * unit.
template <class T>
void take_columns(const MatrixView<const T>& z, int64_t first, int64_t columns, const T* centre,
                  const T* spread, const T* bandwidth, T* x) {
  const int64_t n = z.rows();
  double factor[kColumns] = {};
  for (int64_t c = 0; c < columns; ++c) {
    factor[c] = spread[c] > 0 ? exponent_unit(bandwidth[c]) / static_cast<double>(spread[c]) : 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    const T* row = z.data + i * z.stride[0] + first;
    for (int64_t c = 0; c < columns; ++c) {
      const double offset = static_cast<double>(row[c]) - static_cast<double>(centre[c]);
      x[c * n + i] = static_cast<T>(offset * factor[c]);
    }
  }
}

template <class T>
void forward_columns(const ForwardColumns<T>& task) {
  const auto& [pair, p, pairs, first, columns, options, scratch, result] = task;
  const int64_t k = result.samples.cols();
  ColumnStatistics statistics[2];
  column_statistics(pair.source, first, columns, statistics[0]);
  column_statistics(pair.target, first, columns, statistics[1]);
  T* spread = &result.spread(p, first);
  T* bandwidth = &result.bandwidth(p, first);
  for (int64_t c = 0; c < columns; ++c) {
    spread[c] = static_cast<T>(spread_of(statistics[0], statistics[1], c));
    const double unit = static_cast<double>(spread[c]);
    const double wanted = options.alpha_scale == AlphaScale::relative ? 1 / options.alpha
                                                                      : unit / options.alpha * unit;
    const double limit = kLargestBandwidth<T>;
    bandwidth[c] = static_cast<T>(unit > 0 ? std::clamp(wanted, 1 / limit, limit) : 0);
  }

  for (int side = 0; side < 2; ++side) {
    const MatrixView<const T>& z = side == 0 ? pair.source : pair.target;
    const int64_t set = side * pairs + p, n = z.rows();
    T* centre = &result.centre(set, first);
    for (int64_t c = 0; c < columns; ++c) {
      const ColumnStatistics& s = statistics[side];
      centre[c] = static_cast<T>(s.centre[c]);
      result.column_std(set, first + c) = static_cast<T>(s.reach[c] * std::sqrt(s.variance[c]));
    }
    take_columns(z, first, columns, centre, spread, bandwidth, scratch.x);

    for (int64_t c = 0; c < columns; ++c) {
      T* samples = &result.samples(set, first + c, 0);
      T* previous = &result.previous(set, first + c, 0);
      T* weight = &result.weight(set, first + c, 0);
      T& sample_std = result.sample_std(set, first + c);
      if (!std::isfinite(statistics[side].variance[c]) || !std::isfinite(spread[c])) {
        // The caller finds this column by its standard deviation.
        constexpr T nan = std::numeric_limits<T>::quiet_NaN();
        std::fill_n(samples, k, nan);
        std::fill_n(previous, k, nan);
        std::fill_n(weight, k, nan);
        sample_std = result.column_std(set, first + c) = nan;
        continue;
      }
      if (!(spread[c] > 0)) {  // Psi = 1/K
        std::fill_n(samples, k, centre[c]);
        std::fill_n(previous, k, T(0));
        std::fill_n(weight, k, static_cast<T>(static_cast<double>(n) / static_cast<double>(k)));
        sample_std = 0;
        continue;
      }

      T* x = scratch.x + c * n;
      sort_column(x, n, scratch);
      start_at_quantiles(x, n, k, scratch.m);
      const double to_spread = 1 / exponent_unit(bandwidth[c]);
      ColumnGrid<T> grid(x, n, k, scratch);
      for (int64_t iteration = 0; iteration < options.iterations; ++iteration) {
        if (!grid.assign()) assign(x, n, k, scratch);
        if (iteration + 1 == options.iterations) {
          for (int64_t j = 0; j < k; ++j) {
            previous[j] = static_cast<T>(static_cast<double>(scratch.m[j]) * to_spread);
          }
        }
        move_samples(n, k, scratch);
      }
      std::copy_n(scratch.weight, k, weight);

      const double unit = to_spread * static_cast<double>(spread[c]);
      double mean = 0, squares = 0;
      for (int64_t j = 0; j < k; ++j) mean += static_cast<double>(scratch.m[j]);
      mean /= static_cast<double>(k);
      for (int64_t j = 0; j < k; ++j) {
        const double m = static_cast<double>(scratch.m[j]);
        samples[j] = static_cast<T>(static_cast<double>(centre[c]) + m * unit);
        squares += (m - mean) * (m - mean);
      }
      sample_std = static_cast<T>(std::sqrt(squares / static_cast<double>(k)) * unit);
    }
  }
}

// sum_j w_rj a_j / sum_j w_rj for four points r.
template <class D, class T>
HWY_INLINE void four_weighted_means(D d, const T* HWY_RESTRICT m, const T* HWY_RESTRICT a,
                                    int64_t k, const T* x, const T* nearest, T* means) {
  const auto n0 = hn::Set(d, nearest[0]), n1 = hn::Set(d, nearest[1]);
  const auto n2 = hn::Set(d, nearest[2]), n3 = hn::Set(d, nearest[3]);
  const auto b0 = hn::Set(d, 2 * x[0] - nearest[0]), b1 = hn::Set(d, 2 * x[1] - nearest[1]);
  const auto b2 = hn::Set(d, 2 * x[2] - nearest[2]), b3 = hn::Set(d, 2 * x[3] - nearest[3]);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  auto t0 = hn::Zero(d), t1 = hn::Zero(d), t2 = hn::Zero(d), t3 = hn::Zero(d);
  for (int64_t j = 0; j < k; j += static_cast<int64_t>(hn::Lanes(d))) {
    const auto mj = hn::Load(d, m + j), aj = hn::Load(d, a + j);
    const auto w0 = exp2(d, exponent(mj, n0, b0));
    const auto w1 = exp2(d, exponent(mj, n1, b1));
    const auto w2 = exp2(d, exponent(mj, n2, b2));
    const auto w3 = exp2(d, exponent(mj, n3, b3));
    s0 = hn::Add(s0, w0);
    s1 = hn::Add(s1, w1);
    s2 = hn::Add(s2, w2);
    s3 = hn::Add(s3, w3);
    t0 = hn::MulAdd(w0, aj, t0);
    t1 = hn::MulAdd(w1, aj, t1);
    t2 = hn::MulAdd(w2, aj, t2);
    t3 = hn::MulAdd(w3, aj, t3);
  }
  means[0] = hn::GetLane(hn::SumOfLanes(d, t0)) / hn::GetLane(hn::SumOfLanes(d, s0));
  means[1] = hn::GetLane(hn::SumOfLanes(d, t1)) / hn::GetLane(hn::SumOfLanes(d, s1));
  means[2] = hn::GetLane(hn::SumOfLanes(d, t2)) / hn::GetLane(hn::SumOfLanes(d, s2));
  means[3] = hn::GetLane(hn::SumOfLanes(d, t3)) / hn::GetLane(hn::SumOfLanes(d, s3));
}

// dZ_iq += scale * sum_j Psi_ij dM_jq / s_jq for columns first .. of one set. dM is taken relative
// to its largest entry: 1 / s_j may be as large as 2^100 / N.
template <class T>
void backward_columns(const BackwardColumns<T>& task) {
  const auto& [z, set, p, first, columns, forward, samples_gradient, scale, scratch, gradient] =
      task;
  const hn::CappedTag<T, kMostLanes> d;
  const int64_t n = z.rows(), k = samples_gradient.cols(), kp = padded(k);
  const T* spread = &forward.spread(p, first);
  const T* bandwidth = &forward.bandwidth(p, first);
  take_columns(z, first, columns, &forward.centre(set, first), spread, bandwidth, scratch.x);
  for (int64_t c = 0; c < columns; ++c) {
    const T* previous = &forward.previous(set, first + c, 0);
    const T* weight = &forward.weight(set, first + c, 0);
    const T* dm = &samples_gradient(set, first + c, 0);
    T* x = scratch.x + c * n;

    double largest = 0;
    for (int64_t j = 0; j < k; ++j)
      largest = std::max(largest, std::abs(static_cast<double>(dm[j])));
    const double inverse = largest > 0 ? 1 / largest : 0;
    const double unit = exponent_unit(bandwidth[c]);
    for (int64_t j = 0; j < k; ++j) {
      scratch.m[j] = static_cast<T>(static_cast<double>(previous[j]) * unit);
      scratch.weight[j] = weight[j] > 0 ? static_cast<T>(static_cast<double>(dm[j]) * inverse /
                                                         static_cast<double>(weight[j]))
                                        : T(0);
    }
    std::fill(scratch.m + k, scratch.m + kp, kNowhere<T>);
    std::fill(scratch.weight + k, scratch.weight + kp, T(0));

    const double factor = scale * largest;
    for (int64_t i = 0; i < n; i += kRowsAtOnce) {
      T point[kRowsAtOnce], nearest[kRowsAtOnce], means[kRowsAtOnce];
      for (int64_t r = 0; r < kRowsAtOnce; ++r) {
        point[r] = x[std::min(i + r, n - 1)];
        nearest[r] = nearest_of(scratch.m, k, point[r]);
      }
      four_weighted_means(d, scratch.m, scratch.weight, kp, point, nearest, means);
      for (int64_t r = 0; r < kRowsAtOnce && i + r < n; ++r) {
        x[i + r] = static_cast<T>(factor * static_cast<double>(means[r]));
      }
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    T* row = gradient.data + i * gradient.stride[0] + first;
    for (int64_t c = 0; c < columns; ++c) row[c] += scratch.x[c * n + i];
  }
}

}  // namespace
}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cfaa::cpu {
namespace {

// Scratch of every worker, one after the other.
template <class T>
class WorkerScratch {
 public:
  WorkerScratch(Context& context, EmbeddingPairs<T> pairs, int64_t k) : k_(padded(k)) {
    for (const EmbeddingPair<T>& pair : pairs) {
      n_ = std::max({n_, padded(pair.source.rows()), padded(pair.target.rows())});
    }
    const int64_t workers = context.threads().threads();
    memory_ = context.scratch().template take<T, 2>({workers, size()}).data;
    if (!std::is_same_v<T, float> || n_ > kMostGridRows) return;
    numbers_ = context.scratch().template take<float, 2>({workers, grid_numbers()}).data;
    counts_ = context.scratch().template take<int32_t, 2>({workers, grid_counts()}).data;
  }

  TypicalSamplesScratch<T> of(int worker) const {
    TypicalSamplesScratch<T> scratch;
    scratch.x = memory_ + worker * size();
    scratch.m = scratch.x + kColumns * n_;
    scratch.rows = scratch.m + k_;
    scratch.weight = scratch.rows + kRowsAtOnce * k_;
    scratch.weighted = scratch.weight + k_;
    scratch.grid = grid_of(worker);
    return scratch;
  }

 private:
  int64_t size() const { return kColumns * n_ + (kRowsAtOnce + 3) * k_; }
  int64_t grid_numbers() const { return 11 * n_ + 10 * k_ + 4 * (kMostGridNodes + kGridPadding); }
  int64_t grid_counts() const { return 3 * n_ + 2 * k_; }

  GridScratch grid_of(int worker) const {
    GridScratch grid{};
    if (numbers_ == nullptr) return grid;
    int32_t* counts = counts_ + worker * grid_counts();
    for (int32_t** piece : {&grid.x_cell, &grid.x_skip, &grid.far_row}) {
      *piece = std::exchange(counts, counts + n_);
    }
    for (int32_t** piece : {&grid.m_cell, &grid.m_skip}) {
      *piece = std::exchange(counts, counts + k_);
    }
    float* numbers = numbers_ + worker * grid_numbers();
    const auto take = [&](int64_t count) { return std::exchange(numbers, numbers + count); };
    grid.x_weights = take(8 * n_);
    grid.m_weights = take(8 * k_);
    for (float** piece : {&grid.x_position, &grid.share, &grid.weighted_share}) *piece = take(n_);
    for (float** piece : {&grid.m_position, &grid.ones}) *piece = take(k_);
    for (float** piece : {&grid.in, &grid.weighted_in, &grid.out, &grid.weighted_out}) {
      *piece = take(kMostGridNodes + kGridPadding);
    }
    return grid;
  }

  int64_t n_ = 0, k_;
  T* memory_;
  float* numbers_ = nullptr;  // of the grid
  int32_t* counts_ = nullptr;
};

}  // namespace

template <class T>
void typical_samples(Context& context, EmbeddingPairs<T> pairs,
                     const TypicalSamplesOptions& options, const TypicalSamples<T>& result) {
  const int64_t p = static_cast<int64_t>(pairs.size()), d = pairs[0].source.cols();
  const int64_t blocks = (d + kColumns - 1) / kColumns;
  const WorkerScratch<T> scratch(context, pairs, result.samples.cols());
  const auto run = CFAA_VECTOR_DISPATCH(forward_columns<T>);
  context.threads().parallel_for(p * blocks, 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t pair = task / blocks, first = task % blocks * kColumns;
      run(ForwardColumns<T>{pairs[static_cast<std::size_t>(pair)], pair, p, first,
                            std::min(kColumns, d - first), options, scratch.of(worker), result});
    }
  });

  for (int64_t i = 0; i < result.column_std.size(); ++i) {
    if (std::isfinite(result.column_std.data[i])) continue;
    latch_fault(context, fault_of(FaultCode::not_finite, FaultSite::typical_samples, i / d, i % d));
  }
}

template <class T>
void typical_samples_backward(Context& context, EmbeddingPairs<T> pairs,
                              const TypicalSamples<T>& forward, View<const T, 3> samples_gradient,
                              double scale, GradientPairs<T> gradients) {
  const int64_t p = static_cast<int64_t>(pairs.size()), d = pairs[0].source.cols();
  const int64_t blocks = (d + kColumns - 1) / kColumns;
  const WorkerScratch<T> scratch(context, pairs, samples_gradient.cols());
  const auto run = CFAA_VECTOR_DISPATCH(backward_columns<T>);
  context.threads().parallel_for(2 * p * blocks, 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t set = task / blocks, first = task % blocks * kColumns;
      const std::size_t pair = static_cast<std::size_t>(set % p);
      const EmbeddingPair<T>& z = pairs[pair];
      const GradientPair<T>& dz = gradients[pair];
      run(BackwardColumns<T>{set < p ? z.source : z.target, set, set % p, first,
                             std::min(kColumns, d - first), forward, samples_gradient, scale,
                             scratch.of(worker), set < p ? dz.source : dz.target});
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(typical_samples);
CFAA_FOR_FLOAT_AND_DOUBLE(typical_samples_backward);

}  // namespace cfaa::cpu
#endif  // HWY_ONCE
