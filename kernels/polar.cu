// The polar factor by products (contract: kernels/polar.cuh):
//
//   X <- X (a I + b M + c M^2),   M = X'X
//
// which does to every singular value what the odd polynomial a x + b x^3 + c x^5 does to a number,
// and nothing to the singular vectors. The polynomials (cuda/polar_polynomials.h) are made
// beforehand for intervals [2^-i, 1]; a problem takes the row of its own interval, found on the
// device: from below by what the caller knows of it, from above by
//
//   |X|_2^8 <= Tr M^4 = |M^2|_F^2        at most n^(1/8) too much: 2 at n = 300
//
// whose M^2 the first step needs anyway. A step is three GEMMs and one pass over n^2 elements.
//
// The residual |I - M|_F = e is looked at in front of the last step, which leaves at most e^3: with
// e <= 1e-4 that is 1e-12 at most, as a rule far less, and no product is spent on the check.
//
// In float U loses digits by rounding, not by steps. Measured on fixtures/alignment/paper in NumPy
// (condition 490; SLIM's steps in float, the last one in double): 3e-8 of the horizontal loss and
// 4e-6 of its gradients, where 2e-4 and 2e-3 are allowed.

#include "kernels/polar.cuh"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cuda/blas.h"
#include "cuda/launch.h"
#include "cuda/nvtx.h"
#include "cuda/polar_polynomials.h"
#include "kernels/block.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/latch.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = kElementThreads;
constexpr int kIntervals = 28;  // [2^-i, 1]
constexpr std::size_t kMostSteps = 16;
// In front of the last step; that of floats is mostly their rounding.
constexpr double kResidual = 1e-4, kFloatResidual = 1e-3;

// One step's polynomial for every interval; goes to a kernel by value.
struct StepPolynomials {
  OddQuintic of[kIntervals];
};

// As many steps as anybody asks for; whoever takes fewer still ends with the last one.
std::vector<StepPolynomials> make_steps() {
  std::vector<StepPolynomials> steps(kMostSteps);
  for (int i = 0; i < kIntervals; ++i) {
    const auto row = polar_polynomials(std::ldexp(1.0, -i), kMostSteps);
    for (std::size_t step = 0; step < kMostSteps; ++step) steps[step].of[i] = row[step];
  }
  return steps;
}

// The widest interval that so many steps lead out of: one doubles its lower end twice.
int last_interval(std::size_t steps) {
  return std::clamp(2 * static_cast<int>(steps) - 5, 0, kIntervals - 1);
}

// The rows' shares of |shift I - M|_F^2. One block per row of a problem.
// report: row_squares threads=256 bytes=T*S*D*D flops=3*S*D*D fp64
template <class T>
__global__ void __launch_bounds__(kThreads) row_squares(const T* m,  // (S, n, n)
                                                        double shift, int n,
                                                        double* shares)  // (S, n)
{
  const int64_t row = static_cast<int64_t>(blockIdx.y) * n + blockIdx.x;
  double sum = 0;
  for (int j = static_cast<int>(threadIdx.x); j < n; j += kThreads) {
    const double value = (j == static_cast<int>(blockIdx.x) ? shift : 0.0) - m[row * n + j];
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) shares[row] = sum;
}

__device__ __forceinline__ double sum_of(const double* shares, int n) {
  double sum = 0;
  for (int j = static_cast<int>(threadIdx.x); j < n; j += kThreads) sum += shares[j];
  return block_sum(sum);
}

// The largest singular value, from above, and the interval of the others beside it, but none that
// the steps cannot lead out of: the bound from below may be far from what is there. One block per
// problem.
// report: choose_interval threads=256 bytes=8*S*D flops=S*D fp64
__global__ void __launch_bounds__(kThreads) choose_interval(const double* shares,  // (S, n) of M^2
                                                            const double* least,   // (S)
                                                            int n, int last_interval,
                                                            double* largest,  // (S)
                                                            int* interval)    // (S)
{
  const int64_t s = blockIdx.x;
  const double sum = sum_of(shares + s * n, n);
  if (threadIdx.x != 0) return;
  const double bound = sqrt(sqrt(sqrt(sum)));
  int i = 0;
  for (double low = bound; i < last_interval && low > least[s]; low /= 2) ++i;
  largest[s] = bound;
  interval[s] = i;
}

// P = a I + b M + c M^2, for M of X / largest where `largest` is given; and that scale of X.
// report: combine threads=256 bytes=3*T*S*D*D flops=4*S*D*D fp64
template <class T>
__global__ void __launch_bounds__(kThreads) combine(StepPolynomials polynomials,
                                                    const int* interval,    // (S)
                                                    const double* largest,  // (S) or null
                                                    const T* m,             // (S, n, n)
                                                    int n,
                                                    T* p)  // (S, n, n)  M^2 given
{
  const Element e = element_of_thread(n);
  if (e.row >= n) return;
  const int64_t s = blockIdx.y, at = (s * n + e.row) * n + e.column;
  const OddQuintic q = polynomials.of[interval[s]];
  const double scale = largest == nullptr ? 1.0 : 1 / largest[s], square = scale * scale;
  const double unit = e.row == e.column ? q.a : 0.0;
  const double once = m[at], twice = p[at];
  p[at] = static_cast<T>(scale * (unit + square * (q.b * once + square * q.c * twice)));
}

// report: check_residual threads=256 bytes=8*S*D flops=S*D fp64
__global__ void __launch_bounds__(kThreads)
    check_residual(const double* shares,  // (S, n) of I - M
                   double most, int n, FaultSite site, Fault* latch) {
  const double sum = sum_of(shares + static_cast<int64_t>(blockIdx.x) * n, n);
  if (threadIdx.x != 0 || sum <= most * most) return;
  latch_fault(latch, FaultCode::not_converged, site, static_cast<int>(blockIdx.x), -1);
}

// report: convert threads=256 bytes=12*S*D*D
template <class From, class To>
__global__ void __launch_bounds__(kThreads) convert(const From* from, int64_t size, To* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) to[i] = static_cast<To>(from[i]);
}

// What all steps of a call know.
struct Call {
  Context& context;
  const double* least;
  std::size_t steps;
  FaultSite site;
  double residual;             // at most, in front of the last step
  View<double, 2> shares;      // (S, n)
  VectorView<double> largest;  // (S)
  VectorView<int> interval;    // (S)
};

const std::vector<StepPolynomials>& polynomials() {
  static const std::vector<StepPolynomials> steps = make_steps();
  return steps;
}

// Steps first .. last - 1 of a call. Returns where X is then: `x` or `other`.
template <class T>
View<T, 3> run_steps(const Call& call, std::size_t first, std::size_t last, View<T, 3> x,
                     View<T, 3> other) {
  Device& device = device_of(call.context);
  Arena& arena = call.context.scratch();
  const cudaStream_t stream = device.stream();
  const int64_t size = x.shape[1];
  const int n = static_cast<int>(size);
  const unsigned sets = static_cast<unsigned>(x.shape[0]);
  const dim3 block(kThreads), per_row(static_cast<unsigned>(n), sets), per_problem(sets);
  const Arena::Scope scope(arena);
  const auto m = arena.take<T, 3>(x.shape);
  const auto p = arena.take<T, 3>(x.shape);
  for (std::size_t step = first; step < last; ++step) {
    const bool opens = step == 0, ends = step + 1 == call.steps;
    gemm<T>(device, Transpose::yes, Transpose::no, 1, x, x, 0, m);
    gemm<T>(device, Transpose::no, Transpose::no, 1, m, m, 0, p);
    if (opens) {
      launch(stream, row_squares<T>, per_row, block, 0, p.data, 0.0, n, call.shares.data);
      launch(stream, choose_interval, per_problem, block, 0, call.shares.data, call.least, n,
             last_interval(call.steps), call.largest.data, call.interval.data);
    }
    if (ends) {
      launch(stream, row_squares<T>, per_row, block, 0, m.data, 1.0, n, call.shares.data);
      launch(stream, check_residual, per_problem, block, 0, call.shares.data, call.residual, n,
             call.site, call.context.fault_latch());
    }
    launch(stream, combine<T>, dim3(elements_grid(size * size).x, sets), block, 0,
           ends ? polynomials().back() : polynomials()[step], call.interval.data,
           opens ? call.largest.data : nullptr, m.data, n, p.data);
    gemm<T>(device, Transpose::no, Transpose::no, 1, x, p, 0, other);
    std::swap(x, other);
  }
  return x;
}

template <class From, class To>
void run_convert(Device& device, View<From, 3> from, View<To, 3> to) {
  launch(device.stream(), convert<From, To>, elements_grid(from.size()), dim3(kThreads), 0,
         from.data, from.size(), to.data);
}

}  // namespace

void polar_factor(Context& context, View<double, 3> x, const double* least, std::size_t steps,
                  FaultSite site, Steps arithmetic) {
  const Range range("polar factor");
  CFAA_ASSERT(x.contiguous() && x.shape[1] == x.shape[2] && steps >= 2 && steps <= kMostSteps);
  Device& device = device_of(context);
  Arena& arena = context.scratch();
  const bool in_float = arithmetic == Steps::in_float;
  const Arena::Scope scope(arena);
  const auto next = arena.take<double, 3>(x.shape);
  const Call call{.context = context,
                  .least = least,
                  .steps = steps,
                  .site = site,
                  .residual = in_float ? kFloatResidual : kResidual,
                  .shares = arena.take<double, 2>({x.shape[0], x.shape[1]}),
                  .largest = arena.take<double, 1>({x.shape[0]}),
                  .interval = arena.take<int, 1>({x.shape[0]})};
  std::size_t first = 0;
  if (in_float) {
    const Arena::Scope floats(arena);
    const auto narrow = arena.take<float, 3>(x.shape), other = arena.take<float, 3>(x.shape);
    run_convert(device, x, narrow);
    first = steps - 1;
    run_convert(device, run_steps(call, 0, first, narrow, other), x);
  }
  const View<double, 3> found = run_steps(call, first, steps, x, next);
  if (found.data != x.data) {
    device.copy(x.data, found.data, static_cast<std::size_t>(x.size()) * sizeof(double));
  }
}

}  // namespace cfaa::cuda
