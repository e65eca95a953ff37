#include "cuda/grouped_gemm.h"

#include <algorithm>
#include <limits>

#include "cuda/launch.h"
#include "host/core/error.h"
#include "host/core/instantiate.h"

#if !CFAA_EMULATED
#include <cutlass/gemm/device/gemm_grouped.h>

#include "cuda/cutlass_kernels.h"
#endif

namespace cfaa::cuda {
namespace {

// A kernel's arguments are the way to device memory that needs no copy from the host.
// report: store_group threads=1 bytes=608
template <class T>
__global__ void store_group(PackedGroup<T> group, PackedGroup<T>* out) {
  *out = group;
}

// Whether all is read and written 16 bytes at a time, as tensor cores' kernels do.
template <class T>
bool fits_16_bytes(Transpose ta, Transpose tb, std::span<const GemmProblem<T>> problems,
                   double beta) {
  const auto aligned = [](const T* pointer, int64_t ld) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && ld % 4 == 0;
  };
  return std::all_of(problems.begin(), problems.end(), [&](const GemmProblem<T>& p) {
    const int64_t columns_a = ta == Transpose::no ? p.k : p.m;
    const int64_t columns_b = tb == Transpose::no ? p.n : p.k;
    return columns_a % 4 == 0 && columns_b % 4 == 0 && p.n % 4 == 0 && aligned(p.a, p.lda) &&
           aligned(p.b, p.ldb) && aligned(p.d, p.ldd) && (beta == 0 || aligned(p.c, p.ldc));
  });
}

template <class T>
PackedGroup<T>* pack(Context& context, std::span<const GemmProblem<T>> problems, double beta) {
  const PackedGroup<T> group = pack_group(problems, beta);
  PackedGroup<T>* packed = context.scratch().template take<PackedGroup<T>, 1>({1}).data;
  launch(device_of(context).stream(), store_group<T>, dim3(1), dim3(1), 0, group, packed);
  return packed;
}

__device__ __forceinline__ float factor(float value, MathMode math) {
  return __uint_as_float(rounded_bits(__float_as_uint(value), math));
}
__device__ __forceinline__ double factor(double value, MathMode) {
  return value;
}

// One thread per element of D, one grid layer per problem.
constexpr int kThreads = 256;
// report: plain_grouped_gemm threads=256 bytes=G*(N*X+D*X+N*D)*T flops=2*G*N*D*X
template <class T>
__global__ void plain_grouped_gemm(const PackedGroup<T>* group, bool transpose_a, bool transpose_b,
                                   T beta, bool relu, MathMode math) {
  const int g = static_cast<int>(blockIdx.y);
  const int64_t m = group->extents[g][0], n = group->extents[g][1], k = group->extents[g][2];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= m * n) return;
  const int64_t row = i / n, column = i % n;
  const int64_t lda = group->lda[g], ldb = group->ldb[g];
  const T* a = group->a[g] + (transpose_a ? row : row * lda);
  const T* b = group->b[g] + (transpose_b ? column * ldb : column);
  const int64_t step_a = transpose_a ? lda : 1, step_b = transpose_b ? 1 : ldb;
  T sum = 0;
  for (int64_t l = 0; l < k; ++l) {
    sum += factor(a[l * step_a], math) * factor(b[l * step_b], math);
  }
  if (beta != T(0)) sum += beta * group->c[g][row * group->ldc[g] + column];
  // Written so that NaN stays NaN.
  group->d[g][row * group->ldd[g] + column] = relu && sum < T(0) ? T(0) : sum;
}

template <class T>
void run_plain(Context& context, Transpose ta, Transpose tb,
               std::span<const GemmProblem<T>> problems, GroupedEpilogue epilogue, MathMode math) {
  int64_t most = 0;
  for (const GemmProblem<T>& problem : problems) most = std::max(most, problem.m * problem.n);
  const PackedGroup<T>* packed = pack(context, problems, epilogue.beta);
  launch(device_of(context).stream(), plain_grouped_gemm<T>,
         dim3(static_cast<unsigned>((most + kThreads - 1) / kThreads),
              static_cast<unsigned>(problems.size())),
         dim3(kThreads), 0, packed, ta == Transpose::yes, tb == Transpose::yes,
         static_cast<T>(epilogue.beta), epilogue.relu, math);
}

#if !CFAA_EMULATED

// report-library: MmaSimt threads=128 shared=16384 bytes=4*G*(N*X+D*X+N*D) flops=2*G*N*D*X
// report-library: MmaTensorOp threads=128 shared=24576 bytes=4*G*(N*X+D*X+N*D) flops=2*G*N*D*X
//   tf32
template <class Kernel>
void run_cutlass(Context& context, std::span<const GemmProblem<float>> problems,
                 GroupedEpilogue epilogue) {
  using Gemm = cutlass::gemm::device::GemmGrouped<Kernel>;
  cutlass::gemm::GemmCoord extents[kMaxGroup];
  for (std::size_t g = 0; g < problems.size(); ++g) {
    extents[g] = {static_cast<int>(problems[g].m), static_cast<int>(problems[g].n),
                  static_cast<int>(problems[g].k)};
  }
  const int count = static_cast<int>(problems.size());
  const int blocks = Gemm::sufficient(extents, count);
  PackedGroup<float>* packed = pack(context, problems, epilogue.beta);
  const auto arguments = kernel_arguments<Kernel>(packed, count, blocks, epilogue);
  Gemm gemm;
  if (blocks < 1 || gemm.initialize(arguments) != cutlass::Status::kSuccess ||
      gemm.run(device_of(context).stream()) != cutlass::Status::kSuccess) {
    throw Error("the grouped matrix product of " + std::to_string(count) +
                " towers could not be launched: " + cudaGetErrorString(cudaGetLastError()));
  }
}

template <template <class, class> class Kernel>
void run_layouts(Context& context, Transpose ta, Transpose tb,
                 std::span<const GemmProblem<float>> problems, GroupedEpilogue epilogue) {
  if (tb == Transpose::yes)
    return run_cutlass<Kernel<RowMajor, ColumnMajor>>(context, problems, epilogue);
  if (ta == Transpose::yes)
    return run_cutlass<Kernel<ColumnMajor, RowMajor>>(context, problems, epilogue);
  run_cutlass<Kernel<RowMajor, RowMajor>>(context, problems, epilogue);
}

#endif  // !CFAA_EMULATED

}  // namespace

template <class T>
void grouped_gemm(Context& context, Transpose ta, Transpose tb,
                  std::span<const GemmProblem<T>> problems, GroupedEpilogue epilogue,
                  MathMode math) {
  CFAA_ASSERT(!problems.empty() && problems.size() <= kMaxGroup);
  CFAA_ASSERT(ta == Transpose::no || tb == Transpose::no);
  for (const GemmProblem<T>& p : problems) {
    CFAA_ASSERT(std::max({p.m, p.n, p.k}) <= std::numeric_limits<int32_t>::max());
    CFAA_ASSERT(p.lda >= (ta == Transpose::no ? p.k : p.m));
    CFAA_ASSERT(p.ldb >= (tb == Transpose::no ? p.n : p.k));
    CFAA_ASSERT(p.ldd >= p.n && (epilogue.beta == 0 || p.ldc == 0 || p.ldc >= p.n));
  }
  if (!fits_16_bytes(ta, tb, problems, epilogue.beta)) math = MathMode::fp32;
#if !CFAA_EMULATED
  if constexpr (std::is_same_v<T, float>) {
    switch (math) {
      case MathMode::fp32:
        return run_layouts<Fp32Kernel>(context, ta, tb, problems, epilogue);
      case MathMode::tf32:
        return run_layouts<Tf32Kernel>(context, ta, tb, problems, epilogue);
      case MathMode::bf16:
        return run_layouts<Bf16Kernel>(context, ta, tb, problems, epilogue);
    }
  }
#endif
  run_plain(context, ta, tb, problems, epilogue, math);
}

CFAA_FOR_FLOAT_AND_DOUBLE(grouped_gemm);

}  // namespace cfaa::cuda
