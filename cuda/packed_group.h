#pragma once

// The problems of a grouped product, and the same as a grouped kernel wants them. Host code alone,
// so that tests/cutlass packs what grouped_gemm.cu packs.

#include <cstddef>
#include <cstdint>
#include <span>

namespace cfaa::cuda {

inline constexpr int kMaxGroup = 4;

// Row-major; `ld` is the distance between the rows of the matrix as it is stored.
template <class T>
struct GemmProblem {
  int64_t m, n, k;
  const T* a;  // op(A) (m, k)
  int64_t lda;
  const T* b;  // op(B) (k, n)
  int64_t ldb;
  const T* c;   // (m, n), may be d; with ldc = 0 one row of n for all: a bias
  int64_t ldc;  // not read when beta = 0
  T* d;         // (m, n)
  int64_t ldd;
};

struct GroupedEpilogue {
  bool relu = false;
  double beta = 0;
};

// The problems as a grouped kernel wants them: an array per property, in device memory.
template <class T>
struct PackedGroup {
  int32_t extents[kMaxGroup][3];  // m, n, k
  T* a[kMaxGroup];
  T* b[kMaxGroup];
  T* c[kMaxGroup];
  T* d[kMaxGroup];
  int64_t lda[kMaxGroup], ldb[kMaxGroup], ldc[kMaxGroup], ldd[kMaxGroup];

  template <class F>
  void for_each_pointer(F f) const {
    for (int g = 0; g < kMaxGroup; ++g) {
      for (const T* pointer : {a[g], b[g], c[g], d[g]}) f(pointer);
    }
  }
};

template <class T>
PackedGroup<T> pack_group(std::span<const GemmProblem<T>> problems, double beta) {
  PackedGroup<T> group{};
  for (std::size_t g = 0; g < problems.size(); ++g) {
    const GemmProblem<T>& problem = problems[g];
    group.extents[g][0] = static_cast<int32_t>(problem.m);
    group.extents[g][1] = static_cast<int32_t>(problem.n);
    group.extents[g][2] = static_cast<int32_t>(problem.k);
    group.a[g] = const_cast<T*>(problem.a);
    group.b[g] = const_cast<T*>(problem.b);
    // Without a C the epilogue still forms its address.
    group.c[g] = beta == 0 ? problem.d : const_cast<T*>(problem.c);
    group.d[g] = problem.d;
    group.lda[g] = problem.lda;
    group.ldb[g] = problem.ldb;
    group.ldc[g] = beta == 0 ? problem.ldd : problem.ldc;
    group.ldd[g] = problem.ldd;
  }
  return group;
}

}  // namespace cfaa::cuda
