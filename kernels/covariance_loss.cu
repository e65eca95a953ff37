// The covariance loss on the GPU (contract: host/ops/covariance_loss.h). Columns are centred by a
// block of threads per 32 of them, the covariances and gradients are products of cuBLAS, and a warp
// squares each row of the difference; `sum` adds the rows up in double.

#include "host/ops/covariance_loss.h"

#include "cuda/blas.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "host/ops/sum.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kColumns = 32, kWarps = 8;

// out = z with the mean taken out of every column.
// report: centre_columns threads=256 bytes=2*N*D*T flops=2*N*D
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads)
    centre_columns(const T* z,  // (rows, columns)
                   int64_t stride, int rows, int columns,
                   T* out)  // (rows, columns), contiguous
{
  CFAA_SHARED(double, parts, kColumns* kWarps);
  const int lane = lane_index(), warp = warp_index();
  const int column = static_cast<int>(blockIdx.x) * kColumns + lane;
  double sum = 0;
  if (column < columns) {
    for (int row = warp; row < rows; row += kWarps) sum += z[row * stride + column];
  }
  parts[warp * kColumns + lane] = sum;
  __syncthreads();
  double mean = 0;
  for (int part = 0; part < kWarps; ++part) {
    const double next = parts[part * kColumns + lane];
    mean += next;
  }
  mean /= rows;
  if (column >= columns) return;
  for (int row = warp; row < rows; row += kWarps) {
    out[static_cast<int64_t>(row) * columns + column] =
        static_cast<T>(z[row * stride + column] - mean);
  }
}

// out_i = sum_j x_ij^2
// report: row_squares threads=256 bytes=D*D*T flops=2*D*D
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads) row_squares(const T* x,  // (d, d)
                                                                    int d,
                                                                    T* out)  // (d)
{
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  if (row >= d) return;
  double sum = 0;
  for (int c = lane_index(); c < d; c += warp_threads) {
    const double value = x[static_cast<int64_t>(row) * d + c];
    sum += value * value;
  }
  sum = warp_sum(sum);
  if (lane_index() == 0) out[row] = static_cast<T>(sum);
}

template <class T>
MatrixView<const T> centred(Context& context, MatrixView<const T> z) {
  const auto out = context.scratch().template take<T, 2>(z.shape);
  launch(device_of(context).stream(), centre_columns<T>,
         dim3(static_cast<unsigned>((z.cols() + kColumns - 1) / kColumns)),
         dim3(kWarps * warp_threads), 0, z.data, z.stride[0], static_cast<int>(z.rows()),
         static_cast<int>(z.cols()), out.data);
  return out;
}

}  // namespace

template <class T>
void covariance_loss(Context& context, EmbeddingPairs<T> pairs, double scale, VectorView<T> loss,
                     GradientPairs<T> gradients) {
  Device& device = device_of(context);
  const int64_t d = pairs[0].source.cols();
  const double of_pair = 1.0 / static_cast<double>(d * d);
  const auto rows = context.scratch().template take<T, 2>({static_cast<int64_t>(pairs.size()), d});
  const auto difference = context.scratch().template take<T, 2>({d, d});
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const Arena::Scope scope(context.scratch());
    const auto source = centred(context, pairs[p].source);
    const auto target = centred(context, pairs[p].target);
    const double degrees_source = static_cast<double>(source.rows() - 1);
    const double degrees_target = static_cast<double>(target.rows() - 1);
    const double factor = 4 * scale * of_pair;

    gemm<T>(device, Transpose::yes, Transpose::no, 1 / degrees_source, source, source, 0,
            difference);
    gemm<T>(device, Transpose::yes, Transpose::no, -1 / degrees_target, target, target, 1,
            difference);
    launch(device.stream(), row_squares<T>, dim3(static_cast<unsigned>((d + kWarps - 1) / kWarps)),
           dim3(kWarps * warp_threads), 0, difference.data, static_cast<int>(d),
           rows[static_cast<int64_t>(p)].data);
    gemm<T>(device, Transpose::no, Transpose::no, factor / degrees_source, source, difference, 1,
            gradients[p].source);
    gemm<T>(device, Transpose::no, Transpose::no, -factor / degrees_target, target, difference, 1,
            gradients[p].target);
  }
  cuda::sum<T>(context, {rows.data, {rows.size()}}, of_pair, loss);
}

CFAA_FOR_FLOAT_AND_DOUBLE(covariance_loss);

}  // namespace cfaa::cuda
