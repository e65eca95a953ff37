// The sweep of Gauss and Jordan on tiles of a symmetric matrix S (its lower triangle is kept). For
// each diagonal tile k, with D = S_kk^-1 by Cholesky:
//
//   C_i  = S_ik D                      i != k
//   S_ij = S_ij - C_i S_kj             i, j != k
//   S_ik = C_i,   S_kk = -D
//
// and after the last tile S = -A^-1. While A is positive definite every S_kk met is a Schur
// complement of it and is so too. The work is n^3, as much as potrf + potri, nearly all of it in
// products of one shape, and their borders do not depend on the number of threads; OpenBLAS's
// threaded potrf cuts the matrix by the threads it has.

#include "host/ops/spd_inverse.h"

#include <algorithm>

#include "host/cpu/blas.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kTile = 256;
constexpr int64_t kWideTile = 4 * kTile;  // columns of S that one product updates

template <class T>
class Sweep {
 public:
  Sweep(Context& context, MatrixView<T> s)
      : context_(context),
        s_(s),
        n_(s.rows()),
        tiles_((n_ + kTile - 1) / kTile),
        panel_(context.scratch().template take<T, 2>({n_, kTile})),
        product_(context.scratch().template take<T, 2>({n_, kTile})),
        pivot_(context.scratch().template take<T, 2>({kTile, kTile})) {}

  // 0, or the leading minor that is not positive.
  int64_t run() {
    for (int64_t k = 0; k < tiles_; ++k) {
      if (const int64_t minor = invert_pivot(k)) return begin(k) + minor;
      for_each_tile([&](int64_t i) { make_product(k, i); });
      update_rest(k);
      for_each_tile([&](int64_t i) { write_back(k, i); });
    }
    return 0;
  }

  // S becomes A^-1 in both triangles.
  void finish() {
    for_each_tile([&](int64_t i) {
      for (int64_t r = begin(i); r < end(i); ++r) {
        for (int64_t c = 0; c <= r; ++c) at(r, c) = -at(r, c);
      }
    });
    for_each_tile([&](int64_t i) {
      for (int64_t c0 = begin(i); c0 < n_; c0 += kMirror) {
        for (int64_t r = begin(i); r < end(i); ++r) {
          for (int64_t c = std::max(c0, r + 1); c < std::min(c0 + kMirror, n_); ++c) {
            at(r, c) = at(c, r);
          }
        }
      }
    });
  }

 private:
  static constexpr int64_t kMirror = 64;  // columns turned at a time, for the cache's sake

  int64_t begin(int64_t tile) const { return tile * kTile; }
  int64_t end(int64_t tile) const { return std::min(n_, (tile + 1) * kTile); }
  int64_t size(int64_t tile) const { return end(tile) - begin(tile); }
  T& at(int64_t row, int64_t column) const { return s_.data[row * n_ + column]; }

  template <class Body>
  void for_each_tile(Body body) {
    context_.threads().parallel_for(tiles_, 1, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) body(i);
    });
  }

  int64_t invert_pivot(int64_t k) {
    const int64_t width = size(k);
    for (int64_t r = 0; r < width; ++r) {
      std::copy_n(&at(begin(k) + r, begin(k)), r + 1, &pivot_(r, 0));
    }
    if (const int info = cholesky(width, pivot_.data, kTile)) return info;
    return inverse_from_cholesky(width, pivot_.data, kTile);
  }

  // panel_ = S_ik, which for i < k lies turned in row k; product_ = C_i.
  void make_product(int64_t k, int64_t i) {
    const int64_t width = size(k);
    for (int64_t r = begin(i); r < end(i); ++r) {
      for (int64_t c = 0; c < width; ++c) {
        panel_(r, c) = i >= k ? at(r, begin(k) + c) : at(begin(k) + c, r);
      }
    }
    gemm(Transpose::no, Transpose::no, size(i), width, width, T(1), &panel_(begin(i), 0), kTile,
         pivot_.data, kTile, T(0), &product_(begin(i), 0), kTile);
  }

  // Row tiles from the last, which is the longest, each in wide tiles, but for row and column k.
  void update_rest(int64_t k) {
    const int64_t across = (n_ + kWideTile - 1) / kWideTile;
    context_.threads().parallel_for(tiles_ * across, 1, [&](int64_t first, int64_t last, int) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t i = tiles_ - 1 - task / across;
        const int64_t from = task % across * kWideTile;
        const int64_t to = std::min(from + kWideTile, end(i));
        if (i == k || from >= to) continue;
        update(k, i, from, std::min(to, begin(k)));
        update(k, i, std::max(from, end(k)), to);
      }
    });
  }

  void update(int64_t k, int64_t i, int64_t from, int64_t to) {
    if (from >= to) return;
    gemm(Transpose::no, Transpose::yes, size(i), to - from, size(k), T(-1), &product_(begin(i), 0),
         kTile, &panel_(from, 0), kTile, T(1), &at(begin(i), from), n_);
  }

  void write_back(int64_t k, int64_t i) {
    const int64_t width = size(k);
    for (int64_t r = begin(i); r < end(i); ++r) {
      for (int64_t c = 0; c < width; ++c) {
        if (i == k) {
          at(r, begin(k) + c) = -pivot_(r - begin(k), c);
        } else if (i > k) {
          at(r, begin(k) + c) = product_(r, c);
        } else {
          at(begin(k) + c, r) = product_(r, c);
        }
      }
    }
  }

  Context& context_;
  MatrixView<T> s_;
  int64_t n_, tiles_;
  MatrixView<T> panel_, product_;  // (n, tile)
  MatrixView<T> pivot_;            // (tile, tile)
};

}  // namespace

template <class T>
int64_t spd_inverse(Context& context, MatrixView<T> a) {
  use_one_blas_thread();
  const Arena::Scope scope(context.scratch());
  Sweep<T> sweep(context, a);
  if (const int64_t minor = sweep.run()) return minor;
  sweep.finish();
  return 0;
}

CFAA_FOR_FLOAT_AND_DOUBLE(spd_inverse);

}  // namespace cfaa::cpu
