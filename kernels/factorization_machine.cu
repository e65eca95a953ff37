// Factorisation machines on the GPU (contract: host/ops/factorization_machine.h): a warp per row,
// which takes the factors in turn, and for the parameters a warp per 32 columns of one factor, of
// w, or of b, which adds up the rows in order. Machines are small: 8 factors of 64 columns.

#include "host/ops/factorization_machine.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kWarps = 4;

template <class T>
struct MachineTask {
  const T* z;  // (rows, columns)
  int64_t z_stride;
  const T* factors;  // (terms, columns)
  int64_t factors_stride;
  const T* linear;  // (columns)
  const T* bias;    // (1)
  DropoutDraw mask;
  int rows, columns, terms;

  template <class F>
  void for_each_pointer(F f) const {
    for (const T* pointer : {z, factors, linear, bias}) f(pointer);
    mask.for_each_pointer(f);
  }
};

template <class T>
MachineTask<T> task_of(Context& context, MatrixView<const T> z,
                       const FactorizationMachine<T>& machine, const Dropout& dropout) {
  return {z.data,
          z.stride[0],
          machine.factors.data,
          machine.factors.stride[0],
          machine.linear.data,
          machine.bias.data,
          DropoutDraw(context.random(), dropout),
          static_cast<int>(z.rows()),
          static_cast<int>(z.cols()),
          static_cast<int>(machine.factors.rows())};
}

// report: factorization_machine_kernel threads=128 bytes=R*C*T flops=8*5*R*C
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads)
    factorization_machine_kernel(MachineTask<T> task,
                                 T* score)  // (rows)
{
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  if (row >= task.rows) return;
  const T* z = task.z + row * task.z_stride;
  T total = 0;
  for (int k = lane_index(); k < task.columns; k += warp_threads) total += task.linear[k] * z[k];
  total = warp_sum(total);
  for (int f = 0; f < task.terms; ++f) {
    const T* v = task.factors + f * task.factors_stride;
    T sum = 0, squares = 0;
    for (int k = lane_index(); k < task.columns; k += warp_threads) {
      const T product = v[k] * z[k];
      sum += product;
      squares += product * product;
    }
    sum = warp_sum(sum);
    squares = warp_sum(squares);
    const T kept = static_cast<T>(task.mask.factor(static_cast<int64_t>(row) * task.terms + f));
    total += kept * T(0.5) * (sum * sum - squares);
  }
  if (lane_index() == 0) score[row] += task.bias[0] + total;
}

// report: factorization_machine_rows threads=128 bytes=2*R*C*T flops=8*6*R*C
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads)
    factorization_machine_rows(MachineTask<T> task,
                               const T* dscore,                 // (rows)
                               T* dz,                           // (rows, columns)
                               int64_t dz_stride, T* g, T* gs)  // (rows, terms)
{
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  if (row >= task.rows) return;
  const T *z = task.z + row * task.z_stride, ds = dscore[row];
  T* out = dz + row * dz_stride;
  for (int k = lane_index(); k < task.columns; k += warp_threads) out[k] = ds * task.linear[k];
  for (int f = 0; f < task.terms; ++f) {
    const T* v = task.factors + f * task.factors_stride;
    const int64_t term = static_cast<int64_t>(row) * task.terms + f;
    T sum = 0;
    for (int k = lane_index(); k < task.columns; k += warp_threads) sum += v[k] * z[k];
    sum = warp_sum(sum);
    const T factor = ds * static_cast<T>(task.mask.factor(term));
#pragma unroll 1  // unrolled in double, it spills
    for (int k = lane_index(); k < task.columns; k += warp_threads) {
      out[k] += factor * v[k] * (sum - v[k] * z[k]);
    }
    if (lane_index() == 0) {
      g[term] = factor;
      gs[term] = factor * sum;
    }
  }
}

// Line f < terms of the grid is factor f, line `terms` is w, and column 0 of line terms + 1 is b.
// report: factorization_machine_parameters threads=128 bytes=R*C*T flops=8*4*R*C
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads)
    factorization_machine_parameters(MachineTask<T> task,
                                     const T* dscore,          // (rows)
                                     const T* g, const T* gs,  // (rows, terms)
                                     T* dfactors,              // (terms, columns)
                                     int64_t stride,
                                     T* dlinear,  // (columns)
                                     T* dbias)    // (1)
{
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int f = static_cast<int>(blockIdx.y);
  if (f == task.terms + 1) {
    if (k != 0) return;
    T sum = 0;
    for (int r = 0; r < task.rows; ++r) sum += dscore[r];
    dbias[0] += sum;
    return;
  }
  if (k >= task.columns) return;
  T sum = 0;
  if (f == task.terms) {
    for (int r = 0; r < task.rows; ++r) sum += dscore[r] * task.z[r * task.z_stride + k];
    dlinear[k] += sum;
    return;
  }
  const T v = task.factors[f * task.factors_stride + k];
  for (int r = 0; r < task.rows; ++r) {
    const T z = task.z[r * task.z_stride + k];
    const int64_t term = static_cast<int64_t>(r) * task.terms + f;
    sum += z * (gs[term] - g[term] * v * z);
  }
  dfactors[f * stride + k] += sum;
}

dim3 grid_of_rows(int64_t rows) {
  return dim3(static_cast<unsigned>((rows + kWarps - 1) / kWarps));
}

}  // namespace

template <class T>
void factorization_machine(Context& context, MatrixView<const T> z,
                           const FactorizationMachine<T>& machine, const Dropout& dropout,
                           VectorView<T> score) {
  launch(device_of(context).stream(), factorization_machine_kernel<T>, grid_of_rows(z.rows()),
         dim3(kWarps * warp_threads), 0, task_of(context, z, machine, dropout), score.data);
}

template <class T>
void factorization_machine_backward(Context& context, MatrixView<const T> z,
                                    const FactorizationMachine<T>& machine, const Dropout& dropout,
                                    VectorView<const T> dscore, MatrixView<T> dz,
                                    const FactorizationMachineGradient<T>& gradient) {
  constexpr int64_t threads = kWarps * warp_threads;
  const MachineTask<T> task = task_of(context, z, machine, dropout);
  const int64_t terms = machine.factors.rows();
  T* g = context.scratch().template take<T, 2>({z.rows(), terms}).data;
  T* gs = context.scratch().template take<T, 2>({z.rows(), terms}).data;
  const cudaStream_t stream = device_of(context).stream();
  launch(stream, factorization_machine_rows<T>, grid_of_rows(z.rows()), dim3(threads), 0, task,
         dscore.data, dz.data, dz.stride[0], g, gs);
  launch(stream, factorization_machine_parameters<T>,
         dim3(static_cast<unsigned>((z.cols() + threads - 1) / threads),
              static_cast<unsigned>(terms + 2)),
         dim3(threads), 0, task, dscore.data, g, gs, gradient.factors.data,
         gradient.factors.stride[0], gradient.linear.data, gradient.bias.data);
}

CFAA_FOR_FLOAT_AND_DOUBLE(factorization_machine);
CFAA_FOR_FLOAT_AND_DOUBLE(factorization_machine_backward);

}  // namespace cfaa::cuda
