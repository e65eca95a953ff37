#pragma once

// The CUTLASS kernels that grouped_gemm.cu launches, and their arguments. Apart from the launch, so
// that tests/cutlass can walk the same tiles over the same arguments on a host.

#include <cutlass/cutlass.h>
#include <cutlass/epilogue/thread/linear_combination_relu.h>
#include <cutlass/gemm/kernel/default_gemm_grouped.h>

#include <limits>

#include "cuda/packed_group.h"

namespace cfaa::cuda {

using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;

// Tiles of 64 x 64: four towers of 256 x 300 then make 80 tiles, where 128 x 128 would make 24 and
// leave most of a GPU idle. A threshold of -infinity turns the relu off, so that one instantiation
// serves both. Elements are read one by one: extents and addresses are free.
template <class LayoutA, class LayoutB>
using Fp32Kernel = typename cutlass::gemm::kernel::DefaultGemmGrouped<
    float, LayoutA, cutlass::ComplexTransform::kNone, 1, float, LayoutB,
    cutlass::ComplexTransform::kNone, 1, float, RowMajor, float, cutlass::arch::OpClassSimt,
    cutlass::arch::Sm80, cutlass::gemm::GemmShape<64, 64, 8>, cutlass::gemm::GemmShape<32, 32, 8>,
    cutlass::gemm::GemmShape<1, 1, 1>,
    cutlass::epilogue::thread::LinearCombinationRelu<float, 1, float, float>,
    cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle, 4,
    cutlass::gemm::kernel::GroupScheduleMode::kDeviceOnly>::GemmKernel;

// Reads and writes 16 bytes at a time.
template <class LayoutA, class LayoutB>
using Tf32Kernel = typename cutlass::gemm::kernel::DefaultGemmGrouped<
    float, LayoutA, cutlass::ComplexTransform::kNone, 4, float, LayoutB,
    cutlass::ComplexTransform::kNone, 4, float, RowMajor, float, cutlass::arch::OpClassTensorOp,
    cutlass::arch::Sm80, cutlass::gemm::GemmShape<64, 64, 16>, cutlass::gemm::GemmShape<32, 32, 16>,
    cutlass::gemm::GemmShape<16, 8, 8>,
    cutlass::epilogue::thread::LinearCombinationRelu<float, 4, float, float>,
    cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle, 3,
    cutlass::gemm::kernel::GroupScheduleMode::kDeviceOnly>::GemmKernel;

// The same on bfloat16: factors are read as float and rounded between shared memory and the tensor
// cores, so that nothing else of a layer changes.
template <class LayoutA, class LayoutB>
using Bf16Kernel = typename cutlass::gemm::kernel::DefaultGemmGrouped<
    float, LayoutA, cutlass::ComplexTransform::kNone, 4, float, LayoutB,
    cutlass::ComplexTransform::kNone, 4, float, RowMajor, float, cutlass::arch::OpClassTensorOp,
    cutlass::arch::Sm80, cutlass::gemm::GemmShape<64, 64, 16>, cutlass::gemm::GemmShape<32, 32, 16>,
    cutlass::gemm::GemmShape<16, 8, 8>,
    cutlass::epilogue::thread::LinearCombinationRelu<float, 4, float, float>,
    cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle, 3,
    cutlass::gemm::kernel::GroupScheduleMode::kDeviceOnly,
    cutlass::arch::OpMultiplyAddFastBF16>::GemmKernel;

// `packed` lies where the kernel runs; nothing is read through it here.
template <class Kernel>
typename Kernel::Arguments kernel_arguments(PackedGroup<float>* packed, int count, int blocks,
                                            GroupedEpilogue epilogue) {
  const float threshold = epilogue.relu ? 0.0f : -std::numeric_limits<float>::infinity();
  const typename Kernel::EpilogueOutputOp::Params output(1.0f, static_cast<float>(epilogue.beta),
                                                         threshold);
  return {reinterpret_cast<cutlass::gemm::GemmCoord*>(packed->extents),
          count,
          blocks,
          output,
          packed->a,
          packed->b,
          packed->c,
          packed->d,
          packed->lda,
          packed->ldb,
          packed->ldc,
          packed->ldd};
}

}  // namespace cfaa::cuda
