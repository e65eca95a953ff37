// The towers' linear layers on the GPU (contract: host/ops/grouped_linear.h). Each of the three
// products is one grouped GEMM with the bias and relu in its epilogue; the backward's kernel masks
// dY and adds up the bias gradient in the same pass over it. Tensor cores read rows of whole 16
// bytes: factors with others, such as a first layer of 769 inputs, are copied to rows padded with
// zeros, and so is their weights' gradient before it is added.

#include <algorithm>

#include "cuda/grouped_gemm.h"
#include "cuda/launch.h"
#include "host/core/error.h"
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

// Matrices (R, C) of several towers, and room (R, C') for each, C' the next multiple of 4.
template <class T>
struct PaddedRows {
  const T* narrow[kMaxTowers];
  T* wide[kMaxTowers];
  int64_t stride[kMaxTowers];  // of the rows of `narrow`
  int rows[kMaxTowers], columns[kMaxTowers];
  int count = 0;

  template <class F>
  void for_each_pointer(F f) const {
    for (int g = 0; g < kMaxTowers; ++g) {
      for (const T* pointer : {narrow[g], static_cast<const T*>(wide[g])}) f(pointer);
    }
  }
};

constexpr int64_t whole(int64_t columns) {
  return (columns + 3) / 4 * 4;
}

constexpr int kPadThreads = 256;

// report: pad_rows threads=256 bytes=2*G*N*X*T
template <class T>
__global__ void __launch_bounds__(kPadThreads) pad_rows(PaddedRows<T> all) {
  const int g = static_cast<int>(blockIdx.y);
  const int wide = (all.columns[g] + 3) / 4 * 4;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= int64_t{all.rows[g]} * wide) return;
  const int64_t row = i / wide;
  const int column = static_cast<int>(i % wide);
  all.wide[g][i] = column < all.columns[g] ? all.narrow[g][row * all.stride[g] + column] : T(0);
}

// narrow += wide
// report: add_padded_rows threads=256 bytes=3*G*D*X*T flops=G*D*X
template <class T>
__global__ void __launch_bounds__(kPadThreads) add_padded_rows(PaddedRows<T> all) {
  const int g = static_cast<int>(blockIdx.y), columns = all.columns[g];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= int64_t{all.rows[g]} * columns) return;
  const int64_t row = i / columns, wide = (columns + 3) / 4 * 4;
  const int column = static_cast<int>(i % columns);
  T* narrow = const_cast<T*>(all.narrow[g]) + row * all.stride[g] + column;
  const T sum = *narrow + all.wide[g][row * wide + column];
  *narrow = sum;
}

template <class T>
bool has_whole_rows(MatrixView<const T> matrix) {
  return reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0 && matrix.stride[0] % 4 == 0 &&
         matrix.cols() % 4 == 0;
}

// The factors of one product.
template <class T>
class WholeRows {
 public:
  WholeRows(Context& context, bool wanted) : context_(context), wanted_(wanted) {}

  // The matrix as it is, or room for it with padded rows, written by copy().
  MatrixView<const T> of(MatrixView<const T> matrix) {
    return !wanted_ || has_whole_rows(matrix) ? matrix : take(matrix);
  }
  MatrixView<T> take(MatrixView<const T> matrix) {
    CFAA_ASSERT(rows_.count < kMaxTowers);
    const MatrixView<T> wide =
        context_.scratch().template take<T, 2>({matrix.rows(), whole(matrix.cols())});
    const int g = rows_.count++;
    rows_.narrow[g] = matrix.data;
    rows_.wide[g] = wide.data;
    rows_.stride[g] = matrix.stride[0];
    rows_.rows[g] = static_cast<int>(matrix.rows());
    rows_.columns[g] = static_cast<int>(matrix.cols());
    most_ = std::max(most_, wide.size());
    return wide;
  }

  void copy() const { run(pad_rows<T>); }
  void add_to_narrow() const { run(add_padded_rows<T>); }

 private:
  void run(void (*kernel)(PaddedRows<T>)) const {
    if (rows_.count == 0) return;
    launch(device_of(context_).stream(), kernel,
           dim3(static_cast<unsigned>((most_ + kPadThreads - 1) / kPadThreads),
                static_cast<unsigned>(rows_.count)),
           dim3(kPadThreads), 0, rows_);
  }

  Context& context_;
  bool wanted_;
  PaddedRows<T> rows_{};
  int64_t most_ = 0;
};

}  // namespace

template <class T>
void grouped_linear(Context& context, std::span<const LinearLayer<T>> layers, Activation activation,
                    MathMode math) {
  if (!has_whole_outputs(layers)) math = MathMode::fp32;
  WholeRows<T> inputs(context, math != MathMode::fp32), weights(context, math != MathMode::fp32);
  GemmProblem<T> problems[kMaxTowers];
  for (std::size_t g = 0; g < layers.size(); ++g) {
    const LinearLayer<T>& layer = layers[g];
    const MatrixView<const T> x = inputs.of(layer.x), weight = weights.of(layer.weight);
    problems[g] = {.m = x.rows(),
                   .n = weight.rows(),
                   .k = std::max(x.cols(), weight.cols()),
                   .a = x.data,
                   .lda = x.stride[0],
                   .b = weight.data,
                   .ldb = weight.stride[0],
                   .c = layer.bias.data,
                   .ldc = 0,
                   .d = layer.y.data,
                   .ldd = layer.y.stride[0]};
  }
  inputs.copy();
  weights.copy();
  grouped_gemm<T>(context, Transpose::no, Transpose::yes, {problems, layers.size()},
                  {.relu = activation == Activation::relu, .beta = 1}, math);
}

namespace {

// dX = P W, for those who want it
template <class T>
void input_gradient(Context& context, std::span<const LinearLayer<T>> layers,
                    std::span<const MatrixView<const T>> masked,
                    std::span<const LinearGradient<T>> gradients, MathMode math) {
  WholeRows<T> weights(context, math != MathMode::fp32);
  GemmProblem<T> problems[kMaxTowers];
  std::size_t wanted = 0;
  for (std::size_t g = 0; g < layers.size(); ++g) {
    const MatrixView<T> dx = gradients[g].x;
    if (dx.data == nullptr) continue;
    const MatrixView<const T> weight = weights.of(layers[g].weight);
    problems[wanted++] = {.m = dx.rows(),
                          .n = dx.cols(),
                          .k = weight.rows(),
                          .a = masked[g].data,
                          .lda = masked[g].stride[0],
                          .b = weight.data,
                          .ldb = weight.stride[0],
                          .c = nullptr,
                          .ldc = 0,
                          .d = dx.data,
                          .ldd = dx.stride[0]};
  }
  if (wanted == 0) return;
  weights.copy();
  grouped_gemm<T>(context, Transpose::no, Transpose::no, {problems, wanted}, {}, math);
}

// dW += P'X
template <class T>
void weight_gradient(Context& context, std::span<const LinearLayer<T>> layers,
                     std::span<const MatrixView<const T>> masked,
                     std::span<const LinearGradient<T>> gradients, MathMode math) {
  const bool whole_rows = std::all_of(
      gradients.begin(), gradients.end(),
      [](const LinearGradient<T>& gradient) { return has_whole_rows<T>(gradient.weight); });
  const bool apart = math != MathMode::fp32 && !whole_rows;
  WholeRows<T> inputs(context, math != MathMode::fp32), sums(context, apart);
  GemmProblem<T> problems[kMaxTowers];
  for (std::size_t g = 0; g < layers.size(); ++g) {
    const MatrixView<const T> x = inputs.of(layers[g].x);
    const MatrixView<T> dweight = apart ? sums.take(gradients[g].weight) : gradients[g].weight;
    problems[g] = {.m = dweight.rows(),
                   .n = dweight.cols(),
                   .k = x.rows(),
                   .a = masked[g].data,
                   .lda = masked[g].stride[0],
                   .b = x.data,
                   .ldb = x.stride[0],
                   .c = dweight.data,
                   .ldc = dweight.stride[0],
                   .d = dweight.data,
                   .ldd = dweight.stride[0]};
  }
  inputs.copy();
  grouped_gemm<T>(context, Transpose::yes, Transpose::no, {problems, layers.size()},
                  {.relu = false, .beta = apart ? 0.0 : 1.0}, math);
  sums.add_to_narrow();
}

}  // namespace

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

  const MathMode outputs = has_whole_outputs(layers) ? math : MathMode::fp32;
  input_gradient<T>(context, layers, {masked, layers.size()}, gradients,
                    has_whole_inputs(gradients) ? outputs : MathMode::fp32);
  weight_gradient<T>(context, layers, {masked, layers.size()}, gradients, outputs);
}

CFAA_FOR_FLOAT_AND_DOUBLE(grouped_linear);
CFAA_FOR_FLOAT_AND_DOUBLE(grouped_linear_backward);

}  // namespace cfaa::cuda
