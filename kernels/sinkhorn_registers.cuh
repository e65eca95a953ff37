#pragma once

// Sinkhorn with its kernel matrix G in registers, for up to 128 samples a side (64 in double)
// (kernels/sinkhorn.cuh has the iteration). 256 threads are 16 groups of 16 lanes; a group holds R
// rows of G and a lane R of its columns, 64 entries at K = 128 (kernels/lane_tile.cuh). Missing
// rows and columns, when K is less than 16 R, have potentials of minus infinity and so entries of
// 0.
//
// A half-step for u stays within a warp: R^2 multiplications a thread, R shuffles to combine rows,
// R to hand u back. One for v meets in shared memory, 8 warps' parts of a column, and costs the two
// barriers of an iteration; each also brings word whether a scaling left its range. Read from
// shared memory, G would be loaded once a multiplication, at half the rate of multiplying.

#include "kernels/lane_tile.cuh"
#include "kernels/sinkhorn.cuh"

namespace cfaa::cuda {

inline constexpr int kTileThreads = 256;
inline constexpr int kTileWarps = kTileThreads / warp_threads;

template <class T>
struct SharedSides {
  Shared<T> x, y, f, g, v;  // (16 R): samples, potentials, the target's scalings
  Shared<T> most;           // (16 R): of the columns
  Shared<T> parts;          // (8, 16 R)
};

// Whose potential the log domain resumes from, when it must.
enum class Resume { nowhere, from_source, from_target };

// One problem, solved by one block.
template <class T, int R>
struct RegisterSinkhorn {
  static constexpr int kCapacity = kTileLanes * R;

  int k;
  SharedSides<T> in;
  EntropicUnits<T> units;
  LaneTile<T, R, R, kTileWarps> tile;  // G, or what stands in its place
  int own_row;                         // whose total this thread gets
  bool owner;                          // and whether it is the one who writes what comes of it
  T own_u;                             // scaling of own_row

  __device__ RegisterSinkhorn(const SharedSides<T>& sides, const EntropicUnits<T>& scale, int count)
      : k(count), in(sides), units(scale) {
    own_row = tile.own_row();
    owner = owns_tile_row<R>() && own_row < k;
    own_u = 0;
  }

  __device__ void load_samples(const T* source, const T* target, int exponent) const {
    const T none = -std::numeric_limits<T>::infinity();
    for (int i = threadIdx.x; i < kCapacity; i += kTileThreads) {
      const bool there = i < k;
      in.x[i] = there ? std::ldexp(source[i], -exponent) : T(0);
      in.y[i] = there ? std::ldexp(target[i], -exponent) : T(0);
      in.f[i] = none;
      in.g[i] = there ? T(0) : none;
      in.v[i] = 0;
      in.most[i] = -none;
    }
    __syncthreads();
  }

  // entry_ij = make(x_i, f_i, y_j, g_j)
  template <class Make>
  __device__ void make_entries(Make make) {
    T x[R], f[R];
    tile.load_rows(in.x, x);
    tile.load_rows(in.f, f);
#pragma unroll
    for (int c = 0; c < R; ++c) {
      const T y = in.y[tile.column(c)], g = in.g[tile.column(c)];
#pragma unroll
      for (int r = 0; r < R; ++r) tile.entry[r][c] = make(x[r], f[r], y, g);
    }
  }

  __device__ void make_kernel() {
    const T beta = units.beta;
    make_entries(
        [=](T x, T f, T y, T g) -> T { return std::exp2(min(beta * reduced(f + g, x, y), T(0))); });
  }

  // f_i = -most_i - log2(K sum_j 2^(beta (g_j - c_ij - most_i))) / beta, u_i = 1
  __device__ void log_half_step_of_source() {
    make_entries([](T x, T, T y, T g) -> T { return reduced(g, x, y); });
    const T own_most = tile.over_columns(
        -std::numeric_limits<T>::infinity(),
        [&](T most, int r, int c) { return max(most, tile.entry[r][c]); }, Max{});
    T most[R];
    spread_rows(own_most, most);
    const T sum = tile.over_columns(
        0,
        [&](T total, int r, int c) {
          return total + std::exp2(units.beta * (tile.entry[r][c] - most[r]));
        },
        Sum{});
    __syncthreads();  // f was read
    if (owner) in.f[own_row] = -own_most - units.inverse_beta * std::log2(T(k) * sum);
    own_u = own_row < k ? T(1) : T(0);
    __syncthreads();
  }

  // entry_ij = 2^(beta (f_i - c_ij - most_j)); then, by one thread a column, finish(j, most_j,
  // sum_i entry_ij)
  template <class Finish>
  __device__ void log_columns(Finish finish) {
    const int j = threadIdx.x;
    make_entries([](T x, T f, T y, T) -> T { return reduced(f, x, y); });
    tile.over_rows(
        in.parts, -std::numeric_limits<T>::infinity(),
        [&](T most, int r, int c) { return max(most, tile.entry[r][c]); }, Max{});
    __syncthreads();
    if (j < k) in.most[j] = tile.total_over_rows(in.parts, j, Max{});
    __syncthreads();
    T most[R];
    tile.load_columns(in.most, most);
    tile.over_rows(
        in.parts, 0,
        [&](T total, int r, int c) {
          tile.entry[r][c] = std::exp2(units.beta * (tile.entry[r][c] - most[c]));
          return total + tile.entry[r][c];
        },
        Sum{});
    __syncthreads();
    if (j < k) finish(j, T(in.most[j]), tile.total_over_rows(in.parts, j, Sum{}));
    __syncthreads();
  }

  __device__ void log_half_step_of_target() {
    log_columns([this](int j, T most, T sum) {
      in.g[j] = -most - units.inverse_beta * std::log2(T(k) * sum);
      in.v[j] = 1;
    });
  }

  __device__ void absorb_source() {
    if (owner) in.f[own_row] += units.inverse_beta * std::log2(own_u);
    own_u = own_row < k ? T(1) : T(0);
    __syncthreads();
  }
  __device__ void absorb_target() const {
    const int j = threadIdx.x;
    if (j < k) in.g[j] += units.inverse_beta * std::log2(T(in.v[j]));
    __syncthreads();
  }

  // sum_j G_ij v_j of own_row.
  __device__ T row_product() {
    T v[R];
    tile.load_columns(in.v, v);
    return tile.over_columns(
        0, [&](T total, int r, int c) { return std::fma(tile.entry[r][c], v[c], total); }, Sum{});
  }

  // The warps' parts of sum_i G_ij u_i.
  __device__ void put_column_product() {
    T u[R];
    spread_rows(own_u, u);
    tile.over_rows(
        in.parts, 0, [&](T total, int r, int c) { return std::fma(tile.entry[r][c], u[r], total); },
        Sum{});
  }

  // The sum over all rows of values (K), by every warp for itself.
  __device__ T sum_of(const Shared<T>& values) const {
    T sum = 0;
#pragma unroll
    for (int i = 0; i < kCapacity; i += warp_threads) {
      if (i + lane_index() < k) sum += T(values[i + lane_index()]);
    }
    return warp_sum(sum);
  }

  // Iterations by products, until `most` were made, the L1 distance of the rows' marginal from 1/K
  // is at most `tolerance`, or a scaling leaves its range; then says from where to resume.
  __device__ Resume iterate(int& used, int most, double tolerance) {
    const int j = threadIdx.x;
    for (; used < most; ++used) {
      const T sum = row_product(), before = own_u;
      if (tolerance > 0 && owner) in.most[own_row] = std::abs(own_u * sum - units.share);
      own_u = own_row < k ? units.share / sum : T(0);
      put_column_product();
      const bool ordinary = __syncthreads_and(own_row >= k || is_ordinary(own_u));
      if (tolerance > 0 && sum_of(in.most) <= tolerance) [[unlikely]] {
        own_u = before;
        return Resume::nowhere;
      }
      if (!ordinary) {
        absorb_target();
        return Resume::from_target;
      }
      bool column_ordinary = true;
      if (j < k) {
        const T value = units.share / tile.total_over_rows(in.parts, j, Sum{});
        in.v[j] = value;
        column_ordinary = is_ordinary(value);
      }
      if (!__syncthreads_and(column_ordinary)) {
        absorb_source();
        return Resume::from_source;
      }
    }
    return Resume::nowhere;
  }

  // Returns how many iterations it took, of at most `most`.
  __device__ int solve(int most, double tolerance) {
    int used = 0;
    Resume resume = Resume::from_target;
    do {
      if (resume == Resume::from_target) log_half_step_of_source();
      log_half_step_of_target();
      make_kernel();
      ++used;
      resume = iterate(used, most, tolerance);
    } while (resume != Resume::nowhere);
    return used;
  }

  // The plan in G's place, and in `out` (K, K) where somebody wants it.
  __device__ void make_plan(T* out) {
    __syncthreads();  // after a single iteration f was just read
    absorb_source();
    log_columns([this](int j, T, T sum) { in.v[j] = units.share / sum; });
    T factor[R];
    tile.load_columns(in.v, factor);
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int c = 0; c < R; ++c) tile.entry[r][c] *= factor[c];
    }
    if (out == nullptr) return;
    T* at = out + int64_t{tile.row(0)} * k + tile.column(0);
#pragma unroll
    for (int r = 0; r < R; ++r, at += k) {
      if (tile.row(r) >= k) break;
#pragma unroll
      for (int c = 0; c < R; ++c) {
        if (tile.column(c) < k) at[kTileLanes * c] = tile.entry[r][c];
      }
    }
  }

  // d<plan, C>/dx_i = 2^exponent factor sum_j plan_ij (x_i - y_j). Returns the L1 distance of the
  // rows' marginal from 1/K, of the row that this thread owns.
  __device__ double write_source_gradient(double factor, int exponent, T* gradient) {
    const T mass = tile.over_columns(
        0, [&](T total, int r, int c) { return total + tile.entry[r][c]; }, Sum{});
    const T pull = tile.over_columns(
        0,
        [&](T total, int r, int c) { return std::fma(tile.entry[r][c], difference(r, c), total); },
        Sum{});
    if (!owner) return 0;
    gradient[own_row] = T(std::ldexp(factor * double(pull), exponent));
    return std::abs(double(mass) - 1.0 / k);
  }

  // The same of y, and of this thread's column.
  __device__ double write_target_gradient(double factor, int exponent, T* gradient) {
    const int j = threadIdx.x;
    double error = 0;
    tile.over_rows(
        in.parts, 0, [&](T total, int r, int c) { return total + tile.entry[r][c]; }, Sum{});
    __syncthreads();
    if (j < k) error = std::abs(double(tile.total_over_rows(in.parts, j, Sum{})) - 1.0 / k);
    __syncthreads();
    tile.over_rows(
        in.parts, 0,
        [&](T total, int r, int c) { return std::fma(tile.entry[r][c], -difference(r, c), total); },
        Sum{});
    __syncthreads();
    if (j < k) {
      const double pull = double(tile.total_over_rows(in.parts, j, Sum{}));
      gradient[j] = T(std::ldexp(factor * pull, exponent));
    }
    return error;
  }

  // <plan, C>, of the row that this thread owns.
  __device__ double plan_cost() {
    const T cost = tile.over_columns(
        0,
        [&](T total, int r, int c) {
          const T apart = difference(r, c);
          return std::fma(tile.entry[r][c] * apart, apart, total);
        },
        Sum{});
    return owner ? double(cost) : 0.0;
  }

  __device__ T difference(int r, int c) const {
    return T(in.x[tile.row(r)]) - T(in.y[tile.column(c)]);
  }
};

}  // namespace cfaa::cuda
