// Sums of Gaussians on a uniform grid, in float:  f(y) = sum_p v_p 2^(-(y - x_p)^2)
//
//   spread      every point's value to the 8 nodes around it, by Lagrange's weights
//   convolve    the nodes with 2^(-r^2), as far as it reaches
//   gather      f at any y from the 8 nodes around it, by the same weights
//
// O(points + nodes) multiplications where the direct sum takes an exponential a pair. Nodes are 1/6
// apart, at multiples of it: positions within a cell are exact, and the weights of a point do not
// depend on which part of the grid is used. Interpolation is off by 43 h^8 max|g^(8)| / 8! of a
// Gaussian's peak, once at either end, and so by at most 5e-7; what lies beyond 33 nodes, where a
// Gaussian has fallen to 8e-10, is left out. Whoever wants f to that accuracy relative to f itself
// uses it where f is not much smaller than a peak.
//
// For targets with vectors of eight floats, where CFAA_GAUSS_GRID is 1. Compiled once per Highway
// target: include it after hwy/highway.h.

#if defined(CFAA_HOST_CPU_GAUSS_GRID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CFAA_HOST_CPU_GAUSS_GRID_INL_H_
#undef CFAA_HOST_CPU_GAUSS_GRID_INL_H_
#else
#define CFAA_HOST_CPU_GAUSS_GRID_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "hwy/highway.h"

#undef CFAA_GAUSS_GRID
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
#define CFAA_GAUSS_GRID 1
#else
#define CFAA_GAUSS_GRID 0
#endif

#if CFAA_GAUSS_GRID
HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int64_t kGridNodes = 8;   // that a point is spread to: 3 below its cell, 4 above
inline constexpr int64_t kGridReach = 33;  // nodes
inline constexpr int64_t kGridBlock = 16;  // nodes convolved together
inline constexpr int64_t kGridTaps = kGridBlock + 2 * kGridReach;
inline constexpr float kNodesPerUnit = 6;

struct GridTables {
  // Lagrange's weights as polynomials of the position u in [-1/2, 1/2) of a cell: [power][node].
  alignas(64) float power[kGridNodes][kGridNodes];
  // What node t of those that reach a block gives to the block's nodes.
  alignas(64) float gaussian[kGridTaps][kGridBlock];
  // To move a vector of nodes down by s places: read from element s on.
  alignas(64) int32_t place[2 * kGridNodes];
  alignas(64) int32_t kept[2 * kGridNodes];

  GridTables() {
    for (int64_t node = 0; node < kGridNodes; ++node) {
      double polynomial[kGridNodes] = {1};
      double scale = 1;
      for (int64_t other = 0, degree = 0; other < kGridNodes; ++other) {
        if (other == node) continue;
        const double root = static_cast<double>(other) - 3.5;
        ++degree;
        for (int64_t p = degree; p >= 0; --p) {
          polynomial[p] = (p > 0 ? polynomial[p - 1] : 0) - root * polynomial[p];
        }
        scale *= static_cast<double>(node - other);
      }
      for (int64_t p = 0; p < kGridNodes; ++p) {
        power[p][node] = static_cast<float>(polynomial[p] / scale);
      }
    }
    for (int64_t t = 0; t < kGridTaps; ++t) {
      for (int64_t node = 0; node < kGridBlock; ++node) {
        const int64_t apart = node + kGridReach - t;
        const double r = static_cast<double>(apart) / static_cast<double>(kNodesPerUnit);
        gaussian[t][node] =
            std::abs(apart) > kGridReach ? 0 : static_cast<float>(std::exp2(-r * r));
      }
    }
    for (int64_t i = 0; i < 2 * kGridNodes; ++i) {
      place[i] = static_cast<int32_t>(std::min(i, kGridNodes - 1));
      kept[i] = i < kGridNodes ? -1 : 0;
    }
  }
};

inline const GridTables& grid_tables() {
  static const GridTables tables;
  return tables;
}

using GridVector = hn::CappedTag<float, 8>;

// Points in ascending order, as the grid sees them. Arrays have room for a multiple of 16.
struct GridPoints {
  int32_t* cell;    // (points)     the node below
  int32_t* skip;    // (points)     cells to the next point, at most 8
  float* position;  // (points)     in the cell, -1/2 to 1/2
  float* weights;   // (points, 8)
};

inline void place(const float* x, int64_t count, const GridPoints& points) {
  const hn::CappedTag<float, 16> wide;
  const hn::RebindToSigned<decltype(wide)> wide_signed;
  const auto nodes = hn::Set(wide, kNodesPerUnit);
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(wide))) {
    const auto at = hn::LoadU(wide, x + i);
    const auto cell = hn::Floor(hn::Mul(at, nodes));
    hn::StoreU(hn::ConvertTo(wide_signed, cell), wide_signed, points.cell + i);
    hn::StoreU(hn::Sub(hn::MulSub(at, nodes, cell), hn::Set(wide, 0.5f)), wide,
               points.position + i);
  }
  for (int64_t i = 0; i + 1 < count; ++i) {
    points.skip[i] = std::min(points.cell[i + 1] - points.cell[i], 8);
  }
  points.skip[count - 1] = 8;
  const GridVector d;
  const auto& power = grid_tables().power;
  for (int64_t i = 0; i < count; ++i) {
    const auto u = hn::Set(d, points.position[i]);
    auto w = hn::Load(d, power[7]);
    w = hn::MulAdd(w, u, hn::Load(d, power[6]));
    w = hn::MulAdd(w, u, hn::Load(d, power[5]));
    w = hn::MulAdd(w, u, hn::Load(d, power[4]));
    w = hn::MulAdd(w, u, hn::Load(d, power[3]));
    w = hn::MulAdd(w, u, hn::Load(d, power[2]));
    w = hn::MulAdd(w, u, hn::Load(d, power[1]));
    w = hn::MulAdd(w, u, hn::Load(d, power[0]));
    hn::StoreU(w, d, points.weights + i * kGridNodes);
  }
}

// Some points on their way to the nodes. The eight nodes under way stay in a register, which moves
// along with the cells: no node is read, and no branch guesses. nodes[kGridReach] is the node below
// cell `first`, and nodes that no point reaches are zero already.
class Spread {
 public:
  Spread(const GridPoints& points, int32_t first, const float* value, float* nodes)
      : tables_(grid_tables()),
        points_(points),
        value_(value),
        nodes_(nodes + kGridReach - first),
        window_(hn::Zero(GridVector())) {}

  HWY_INLINE void add(int64_t i) {
    const GridVector d;
    const hn::RebindToSigned<GridVector> di;
    const auto weights = hn::LoadU(d, points_.weights + i * kGridNodes);
    const auto sum = hn::MulAdd(weights, hn::Set(d, value_[i]), window_);
    hn::StoreU(sum, d, nodes_ + points_.cell[i]);
    const int32_t skip = points_.skip[i];
    const auto place = hn::IndicesFromVec(d, hn::LoadU(di, tables_.place + skip));
    const auto kept = hn::BitCast(d, hn::LoadU(di, tables_.kept + skip));
    window_ = hn::And(hn::TableLookupLanes(sum, place), kept);
  }

 private:
  const GridTables& tables_;
  const GridPoints points_;
  const float* value_;
  float* nodes_;  // at cell 0
  hn::Vec<GridVector> window_;
};

// out[b] = sum over nodes of in[kGridReach + b + t] 2^(-(t / 6)^2), for b < count. `out` has room
// for a multiple of 64, and `in` for as much and kGridTaps.
inline void convolve(const float* HWY_RESTRICT in, int64_t count, float* HWY_RESTRICT out) {
  const hn::CappedTag<float, kGridBlock> d;
  const auto& gaussian = grid_tables().gaussian;
  for (int64_t b = 0; b < count; b += 4 * kGridBlock) {
    for (int64_t lane = 0; lane < kGridBlock; lane += static_cast<int64_t>(hn::Lanes(d))) {
      auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
      for (int64_t t = 0; t < kGridTaps; ++t) {
        const auto g = hn::Load(d, gaussian[t] + lane);
        s0 = hn::MulAdd(g, hn::Set(d, in[b + t]), s0);
        s1 = hn::MulAdd(g, hn::Set(d, in[b + t + kGridBlock]), s1);
        s2 = hn::MulAdd(g, hn::Set(d, in[b + t + 2 * kGridBlock]), s2);
        s3 = hn::MulAdd(g, hn::Set(d, in[b + t + 3 * kGridBlock]), s3);
      }
      hn::StoreU(s0, d, out + b + lane);
      hn::StoreU(s1, d, out + b + lane + kGridBlock);
      hn::StoreU(s2, d, out + b + lane + 2 * kGridBlock);
      hn::StoreU(s3, d, out + b + lane + 3 * kGridBlock);
    }
  }
}

// f at a point from the nodes, the first of which is that below cell `first`.
HWY_INLINE float gather(const float* nodes, const GridPoints& points, int64_t i, int32_t first) {
  const GridVector d;
  const auto around = hn::LoadU(d, nodes + points.cell[i] - first);
  return hn::GetLane(
      hn::SumOfLanes(d, hn::Mul(around, hn::LoadU(d, points.weights + i * kGridNodes))));
}

}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // CFAA_GAUSS_GRID

#endif  // CFAA_HOST_CPU_GAUSS_GRID_INL_H_
