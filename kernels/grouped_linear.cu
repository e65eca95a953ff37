// The towers' linear layers on the GPU (contract: host/ops/grouped_linear.h). Each of the three
// products is one grouped GEMM with the bias and relu in its epilogue; the backward's kernel masks
// dY and adds up the bias gradient in the same pass over it.

#include "cuda/grouped_gemm.h"
#include "cuda/launch.h"
#include "host/ops/grouped_linear.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

static_assert(kMaxTowers <= kMaxGroup);

constexpr int kColumns = 32, kRowsAtOnce = 32;

template <class T>
struct BackwardTowers {
  const T* y[kMaxTowers];        // (M, N), or null without relu
  const T* dy[kMaxTowers];       // (M, N)
  T* masked[kMaxTowers];         // (M, N) contiguous, or null without relu
  T* bias_gradient[kMaxTowers];  // (N)
  int64_t y_stride[kMaxTowers], dy_stride[kMaxTowers];
  int rows[kMaxTowers], columns[kMaxTowers];

  template <class F>
  void for_each_pointer(F f) const {
    for (int g = 0; g < kMaxTowers; ++g) {
      for (const T* pointer : {y[g], dy[g], static_cast<const T*>(masked[g]),
                               static_cast<const T*>(bias_gradient[g])}) {
        f(pointer);
      }
    }
  }
};

// P = dY where Y > 0, and db += sum of P's rows, in an order that does not depend on timing. One
// block per 32 columns of a tower, a warp for every 32nd row.
// report: mask_and_sum threads=1024 bytes=3*G*N*D*T flops=G*N*D
template <class T>
__global__ void mask_and_sum(BackwardTowers<T> towers) {
  CFAA_SHARED(T, parts, kColumns * kRowsAtOnce);
  const int g = static_cast<int>(blockIdx.y), lane = lane_index(), warp = warp_index();
  const int column = static_cast<int>(blockIdx.x) * kColumns + lane;
  const int columns = towers.columns[g];
  T sum = 0;
  if (column < columns) {
    for (int row = warp; row < towers.rows[g]; row += kRowsAtOnce) {
      T value = towers.dy[g][row * towers.dy_stride[g] + column];
      if (towers.y[g] != nullptr) {
        if (!(towers.y[g][row * towers.y_stride[g] + column] > T(0))) value = 0;
        towers.masked[g][static_cast<int64_t>(row) * columns + column] = value;
      }
      sum += value;
    }
  }
  parts[warp * kColumns + lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  T total = 0;
  for (int part = 0; part < kRowsAtOnce; ++part) {
    const T next = parts[part * kColumns + lane];
    total += next;
  }
  towers.bias_gradient[g][column] += total;
}

}  // namespace

template <class T>
void grouped_linear(Context& context, std::span<const LinearLayer<T>> layers, Activation activation,
                    MathMode math) {
  GemmProblem<T> problems[kMaxTowers];
  for (std::size_t g = 0; g < layers.size(); ++g) {
    const LinearLayer<T>& layer = layers[g];
    problems[g] = {.m = layer.x.rows(),
                   .n = layer.weight.rows(),
                   .k = layer.x.cols(),
                   .a = layer.x.data,
                   .lda = layer.x.stride[0],
                   .b = layer.weight.data,
                   .ldb = layer.weight.stride[0],
                   .c = layer.bias.data,
                   .ldc = 0,
                   .d = layer.y.data,
                   .ldd = layer.y.stride[0]};
  }
  grouped_gemm<T>(context, Transpose::no, Transpose::yes, {problems, layers.size()},
                  {.relu = activation == Activation::relu, .beta = 1}, math);
}

template <class T>
void grouped_linear_backward(Context& context, std::span<const LinearLayer<T>> layers,
                             Activation activation, std::span<const LinearGradient<T>> gradients,
                             MathMode math) {
  // P, and db
  BackwardTowers<T> towers{};
  MatrixView<const T> masked[kMaxTowers];
  int64_t most_columns = 0;
  for (std::size_t g = 0; g < layers.size(); ++g) {
    const LinearLayer<T>& layer = layers[g];
    masked[g] = gradients[g].y;
    if (activation == Activation::relu) {
      const MatrixView<T> taken = context.scratch().template take<T, 2>(layer.y.shape);
      masked[g] = taken;
      towers.y[g] = layer.y.data;
      towers.masked[g] = taken.data;
    }
    towers.dy[g] = gradients[g].y.data;
    towers.bias_gradient[g] = gradients[g].bias.data;
    towers.y_stride[g] = layer.y.stride[0];
    towers.dy_stride[g] = gradients[g].y.stride[0];
    towers.rows[g] = static_cast<int>(layer.y.rows());
    towers.columns[g] = static_cast<int>(layer.y.cols());
    most_columns = std::max(most_columns, layer.y.cols());
  }
  launch(device_of(context).stream(), mask_and_sum<T>,
         dim3(static_cast<unsigned>((most_columns + kColumns - 1) / kColumns),
              static_cast<unsigned>(layers.size())),
         dim3(kColumns * kRowsAtOnce), 0, towers);

  // dX = P W, for those who want it, and dW += P'X
  GemmProblem<T> x_problems[kMaxTowers], weight_problems[kMaxTowers];
  std::size_t wanted = 0;
  for (std::size_t g = 0; g < layers.size(); ++g) {
    const LinearLayer<T>& layer = layers[g];
    const LinearGradient<T>& gradient = gradients[g];
    const int64_t m = layer.x.rows(), n = layer.weight.rows(), k = layer.x.cols();
    if (gradient.x.data != nullptr) {
      x_problems[wanted++] = {.m = m,
                              .n = gradient.x.cols(),
                              .k = n,
                              .a = masked[g].data,
                              .lda = masked[g].stride[0],
                              .b = layer.weight.data,
                              .ldb = layer.weight.stride[0],
                              .c = nullptr,
                              .ldc = 0,
                              .d = gradient.x.data,
                              .ldd = gradient.x.stride[0]};
    }
    weight_problems[g] = {.m = n,
                          .n = k,
                          .k = m,
                          .a = masked[g].data,
                          .lda = masked[g].stride[0],
                          .b = layer.x.data,
                          .ldb = layer.x.stride[0],
                          .c = gradient.weight.data,
                          .ldc = gradient.weight.stride[0],
                          .d = gradient.weight.data,
                          .ldd = gradient.weight.stride[0]};
  }
  if (wanted > 0) {
    grouped_gemm<T>(context, Transpose::no, Transpose::no, {x_problems, wanted}, {}, math);
  }
  grouped_gemm<T>(context, Transpose::yes, Transpose::no, {weight_problems, layers.size()},
                  {.relu = false, .beta = 1}, math);
}

CFAA_FOR_FLOAT_AND_DOUBLE(grouped_linear);
CFAA_FOR_FLOAT_AND_DOUBLE(grouped_linear_backward);

}  // namespace cfaa::cuda
