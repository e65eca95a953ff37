// The MLP scorer on the CPU.
//
// One hidden layer: the hot loop of evaluation. With the output's weights multiplied in beforehand,
// a = w u and b = w i, a term w relu(u + i) is max(b, -a) + a where w > 0 and min(b, -a) + a where
// not; the sum of a over h is the user's own. So a pair costs one max or min and one addition per
// hidden unit, on different ports of the processor: a panel of items is packed (h, items) with the
// units of positive weight first, four users are broadcast against two vectors of items, and the
// sums stay in registers. The user's sum is added up in the same order, so that a pair with every
// unit off scores the bias exactly.
//
// Further layers: tiles of kPairs pairs of one user go through OpenBLAS. A tile has kPairs rows
// however many are used, so that a pair's bits do not depend on the block it is in.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "host/cpu/pair_scores.cpp"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "host/cpu/blas.h"
#include "host/cpu/vector_dispatch.h"
#include "host/ops/pair_scores.h"

#ifndef CFAA_HOST_CPU_PAIR_SCORES_ONCE
#define CFAA_HOST_CPU_PAIR_SCORES_ONCE
namespace cfaa::cpu {
namespace {

constexpr int64_t kUsersAtOnce = 4;
constexpr int64_t kItemsAtOnce = 64;  // of a task; a multiple of every target's panel
constexpr int64_t kUserBlock = 256;   // of a task: 300 hidden units of them stay in L2
constexpr int64_t kPairs = 256;

int64_t round_up(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// The layers of a scorer with one hidden layer, its units of positive weight first.
template <class T>
struct OneHidden {
  int64_t units, positive;
  const int32_t* order;  // (units)  which unit comes at which place
  const T* weight;       // (units)  in that order
  T bias;
};

// Users first_user .. last_user against items first_item .. last_item, at most kItemsAtOnce.
template <class T>
struct FusedTask {
  const OneHidden<T>& layer;
  const T* minus_a;   // (R / 4, units, 4)  -w u
  const T* user_sum;  // (R)                sum_h w u
  MatrixView<const T> items;
  int64_t first_user, last_user, first_item, last_item;
  bool add;
  MatrixView<T> scores;
  T* panel;  // (units, kItemsAtOnce at most)
};

}  // namespace
}  // namespace cfaa::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Sums of four users (a: -w u, four adjacent per unit) and two vectors of items (b, `width` apart
// per unit) over `units`, added to s.
template <bool kPositive, class D, class T, class V>
HWY_INLINE void add_units(D d, const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, int64_t units,
                          int64_t width, V& s00, V& s01, V& s10, V& s11, V& s20, V& s21, V& s30,
                          V& s31) {
  const auto limit = [](V x, V y) HWY_ATTR { return kPositive ? hn::Max(x, y) : hn::Min(x, y); };
  const int64_t lanes = width / 2;
  for (int64_t h = 0; h < units; ++h, a += kUsersAtOnce, b += width) {
    const V b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + lanes);
    const V a0 = hn::Set(d, a[0]), a1 = hn::Set(d, a[1]);
    s00 = hn::Add(s00, limit(a0, b0));
    s01 = hn::Add(s01, limit(a0, b1));
    s10 = hn::Add(s10, limit(a1, b0));
    s11 = hn::Add(s11, limit(a1, b1));
    const V a2 = hn::Set(d, a[2]), a3 = hn::Set(d, a[3]);
    s20 = hn::Add(s20, limit(a2, b0));
    s21 = hn::Add(s21, limit(a2, b1));
    s30 = hn::Add(s30, limit(a3, b0));
    s31 = hn::Add(s31, limit(a3, b1));
  }
}

// Packs `count` items from `first` on; returns in `spoilt` NaN for an item that has one, 0
// otherwise: a maximum may lose it.
template <class T>
void pack_items(const FusedTask<T>& task, int64_t first, int64_t count, int64_t width, T* spoilt) {
  const OneHidden<T>& layer = task.layer;
  for (int64_t c = 0; c < width; ++c) {
    spoilt[c] = T(0);
    if (c >= count) {
      for (int64_t h = 0; h < layer.units; ++h) task.panel[h * width + c] = T(0);
      continue;
    }
    const T* item = task.items.data + (first + c) * task.items.stride[0];
    bool has_nan = false;
    for (int64_t h = 0; h < layer.units; ++h) {
      const T value = layer.weight[h] * item[layer.order[h]];
      has_nan |= value != value;
      task.panel[h * width + c] = value;
    }
    if (has_nan) spoilt[c] = std::numeric_limits<T>::quiet_NaN();
  }
}

template <class T>
void fused(const FusedTask<T>& task) {
  const hn::CappedTag<T, 16> d;
  const OneHidden<T>& layer = task.layer;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = 2 * lanes;
  const auto bias = hn::Set(d, layer.bias);
  HWY_ALIGN T spoilt[kItemsAtOnce], results[kUsersAtOnce * kItemsAtOnce];
  for (int64_t item = task.first_item; item < task.last_item; item += width) {
    const int64_t count = std::min(width, task.last_item - item);
    pack_items(task, item, count, width, spoilt);
    const auto spoilt0 = hn::Load(d, spoilt), spoilt1 = hn::Load(d, spoilt + lanes);
    for (int64_t user = task.first_user; user < task.last_user; user += kUsersAtOnce) {
      const T* a = task.minus_a + user * layer.units;
      auto s00 = hn::Zero(d), s01 = hn::Zero(d), s10 = hn::Zero(d), s11 = hn::Zero(d);
      auto s20 = hn::Zero(d), s21 = hn::Zero(d), s30 = hn::Zero(d), s31 = hn::Zero(d);
      add_units<true>(d, a, task.panel, layer.positive, width, s00, s01, s10, s11, s20, s21, s30,
                      s31);
      add_units<false>(d, a + layer.positive * kUsersAtOnce, task.panel + layer.positive * width,
                       layer.units - layer.positive, width, s00, s01, s10, s11, s20, s21, s30, s31);
      const auto finish = [&](int64_t u, auto s0, auto s1) HWY_ATTR {
        const auto own = hn::Set(d, task.user_sum[user + u]);
        hn::Store(hn::Add(hn::Add(hn::Add(s0, own), spoilt0), bias), d, results + u * width);
        hn::Store(hn::Add(hn::Add(hn::Add(s1, own), spoilt1), bias), d,
                  results + u * width + lanes);
      };
      finish(0, s00, s01);
      finish(1, s10, s11);
      finish(2, s20, s21);
      finish(3, s30, s31);
      for (int64_t u = 0; u < std::min(kUsersAtOnce, task.last_user - user); ++u) {
        T* HWY_RESTRICT to = task.scores.data + (user + u) * task.scores.stride[0] + item;
        const T* HWY_RESTRICT from = results + u * width;
        if (task.add) {
          for (int64_t c = 0; c < count; ++c) to[c] += from[c];
        } else {
          std::copy_n(from, count, to);
        }
      }
    }
  }
}

}  // namespace
}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cfaa::cpu {
namespace {

template <class T>
OneHidden<T> sort_units(Context& context, const PairLayer<T>& last) {
  const int64_t units = last.weight.cols();
  const auto order = context.scratch().take<int32_t, 1>({units});
  const auto weight = context.scratch().template take<T, 1>({units});
  const auto is_positive = [&](int32_t h) { return last.weight.data[h] > T(0); };
  for (int64_t h = 0; h < units; ++h) order.data[h] = static_cast<int32_t>(h);
  const int32_t* middle = std::stable_partition(order.data, order.data + units, is_positive);
  for (int64_t h = 0; h < units; ++h) weight.data[h] = last.weight.data[order.data[h]];
  return {units, middle - order.data, order.data, weight.data, last.bias.data[0]};
}

template <class T>
void one_hidden_layer(Context& context, MatrixView<const T> users, MatrixView<const T> items,
                      const PairLayer<T>& last, bool add, MatrixView<T> scores) {
  const OneHidden<T> layer = sort_units(context, last);
  const int64_t units = layer.units, rows = users.rows();
  const int64_t padded = round_up(rows, kUsersAtOnce);
  const auto minus_a = context.scratch().template take<T, 1>({padded * units});
  const auto user_sum = context.scratch().template take<T, 1>({padded});
  const auto panels =
      context.scratch().template take<T, 2>({context.threads().threads(), units * kItemsAtOnce});

  context.threads().parallel_for(padded, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      T* to = minus_a.data + r / kUsersAtOnce * kUsersAtOnce * units + r % kUsersAtOnce;
      T sum = 0;
      for (int64_t h = 0; h < units; ++h) {
        const T a = r < rows ? layer.weight[h] * users(r, layer.order[h]) : T(0);
        to[h * kUsersAtOnce] = -a;
        sum += a;
      }
      user_sum.data[r] = sum;
    }
  });

  const auto run = CFAA_VECTOR_DISPATCH(fused<T>);
  const int64_t user_blocks = round_up(rows, kUserBlock) / kUserBlock;
  const int64_t item_blocks = round_up(items.rows(), kItemsAtOnce) / kItemsAtOnce;
  context.threads().parallel_for(
      user_blocks * item_blocks, 1, [&](int64_t begin, int64_t end, int worker) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t user = task / item_blocks * kUserBlock;
          const int64_t item = task % item_blocks * kItemsAtOnce;
          run(FusedTask<T>{
              layer, minus_a.data, user_sum.data, items, user, std::min(user + kUserBlock, rows),
              item, std::min(item + kItemsAtOnce, items.rows()), add, scores, panels[worker].data});
        }
      });
}

// Written so that NaN stays NaN.
template <class T>
T relu(T x) {
  return x < T(0) ? T(0) : x;
}

template <class T>
void further_layers(Context& context, MatrixView<const T> users, MatrixView<const T> items,
                    std::span<const PairLayer<T>> layers, bool add, MatrixView<T> scores) {
  use_one_blas_thread();
  int64_t widest = 0;
  for (const PairLayer<T>& layer : layers) widest = std::max(widest, layer.weight.cols());
  const auto tiles =
      context.scratch().template take<T, 3>({context.threads().threads(), 2, kPairs * widest});
  const int64_t blocks = round_up(items.rows(), kPairs) / kPairs;
  const int64_t units = users.cols();

  context.threads().parallel_for(
      users.rows() * blocks, 1, [&](int64_t begin, int64_t end, int worker) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t r = task / blocks, first = task % blocks * kPairs;
          const int64_t count = std::min(kPairs, items.rows() - first);
          T *x = tiles[worker][0].data, *y = tiles[worker][1].data;
          const T* user = users.data + r * users.stride[0];
          for (int64_t c = 0; c < count; ++c) {
            const T* item = items.data + (first + c) * items.stride[0];
            for (int64_t h = 0; h < units; ++h) x[c * units + h] = relu(user[h] + item[h]);
          }
          std::fill(x + count * units, x + kPairs * units, T(0));

          for (const PairLayer<T>& layer : layers.first(layers.size() - 1)) {
            const int64_t in = layer.weight.cols(), out = layer.weight.rows();
            for (int64_t c = 0; c < kPairs; ++c) std::copy_n(layer.bias.data, out, y + c * out);
            gemm(Transpose::no, Transpose::yes, kPairs, out, in, T(1), x, in, layer.weight.data, in,
                 T(1), y, out);
            for (int64_t i = 0; i < kPairs * out; ++i) y[i] = relu(y[i]);
            std::swap(x, y);
          }

          const PairLayer<T>& last = layers.back();
          const int64_t in = last.weight.cols();
          T* to = scores.data + r * scores.stride[0] + first;
          for (int64_t c = 0; c < count; ++c) {
            const T score =
                static_cast<T>(dot(in, last.weight.data, x + c * in) + last.bias.data[0]);
            to[c] = add ? to[c] + score : score;
          }
        }
      });
}

}  // namespace

template <class T>
void pair_scores(Context& context, MatrixView<const T> users, MatrixView<const T> items,
                 std::span<const PairLayer<T>> layers, bool add, MatrixView<T> scores) {
  if (layers.size() == 1) {
    one_hidden_layer(context, users, items, layers[0], add, scores);
  } else {
    further_layers(context, users, items, layers, add, scores);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(pair_scores);

}  // namespace cfaa::cpu
#endif  // HWY_ONCE
