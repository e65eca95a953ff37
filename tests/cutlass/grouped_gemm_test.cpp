// CUTLASS's grouped GEMM without a GPU: the kernels of cuda/cutlass_kernels.h, instantiated by the
// host's compiler over arguments that cuda/packed_group.h packed. Its scheduler runs on a warp of
// host threads; the tiles that it hands out are multiplied by CUTLASS's host reference and written
// through the kernel's own epilogue. Tensor cores are the one thing that is not here: the factors
// are small integers, which tf32 and bf16 hold exactly, so every result is exact.

#include "tests/cutlass/warp.h"
//
#include <gtest/gtest.h>

#include <cutlass/util/reference/host/gemm.h>
#include <thread>
#include <vector>

#include "cuda/cutlass_kernels.h"

namespace cfaa::test {

Warp*& Warp::current() {
  static thread_local Warp* warp = nullptr;
  return warp;
}

void Warp::run(unsigned block, unsigned blocks, const std::function<void(int)>& work) {
  Warp warp;
  std::vector<std::jthread> lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.emplace_back([&, lane] {
      current() = &warp;
      threadIdx = {static_cast<unsigned>(lane), 0, 0};
      blockIdx = {block, 0, 0};
      gridDim = {blocks, 1, 1};
      work(lane);
    });
  }
}

namespace {

using cuda::GemmProblem;
using cuda::GroupedEpilogue;
using cuda::PackedGroup;
using cutlass::gemm::GemmCoord;

enum class Product { forward, input_gradient, weight_gradient };

// A tower's product with matrices of its own, rows padded to `stride`.
struct Tower {
  std::vector<float> a, b, c, d;
  GemmProblem<float> problem;
};

float small_integer(std::size_t index, int seed) {
  return static_cast<float>((index * 7 + static_cast<std::size_t>(seed) * 5) % 9) - 4;
}

Tower make_tower(Product product, int64_t m, int64_t n, int64_t k, int seed) {
  const auto padded = [](int64_t columns) { return (columns + 3) / 4 * 4 + 4; };
  const bool ta = product == Product::weight_gradient, tb = product == Product::forward;
  Tower tower;
  const int64_t lda = padded(ta ? m : k), ldb = padded(tb ? k : n), ldd = padded(n);
  const auto fill = [&](std::vector<float>& values, int64_t count, int salt) {
    values.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = small_integer(i, seed + salt);
  };
  fill(tower.a, lda * (ta ? k : m), 1);
  fill(tower.b, ldb * (tb ? n : k), 2);
  fill(tower.d, ldd * m, 3);
  fill(tower.c, n, 4);
  // The forward adds a bias, the weights' gradient is added to what is there.
  const bool bias = product == Product::forward;
  tower.problem = {m,
                   n,
                   k,
                   tower.a.data(),
                   lda,
                   tower.b.data(),
                   ldb,
                   bias ? tower.c.data() : tower.d.data(),
                   bias ? 0 : ldd,
                   tower.d.data(),
                   ldd};
  return tower;
}

// D by plain loops, from the problem and not from what was packed.
std::vector<float> expected(const Tower& tower, Product product, GroupedEpilogue epilogue) {
  const GemmProblem<float>& p = tower.problem;
  std::vector<float> d = tower.d;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        const float a = p.a[product == Product::weight_gradient ? l * p.lda + i : i * p.lda + l];
        const float b = p.b[product == Product::forward ? j * p.ldb + l : l * p.ldb + j];
        sum += a * b;
      }
      if (epilogue.beta != 0) sum += static_cast<float>(epilogue.beta) * p.c[i * p.ldc + j];
      d[static_cast<std::size_t>(i * p.ldd + j)] = epilogue.relu && sum < 0 ? 0 : sum;
    }
  }
  return d;
}

// What GemmGrouped::operator() does with a tile, its multiplication by the host reference.
template <class Kernel>
void compute_tile(const typename Kernel::Params& params, int problem, GemmCoord size,
                  GemmCoord offset) {
  using Shape = typename Kernel::ThreadblockShape;
  using Epilogue = typename Kernel::EpilogueOutputOp;
  const GemmCoord extent(std::min(Shape::kM, size.m() - offset.m()),
                         std::min(Shape::kN, size.n() - offset.n()), size.k());
  std::vector<float> products(static_cast<std::size_t>(Shape::kM * Shape::kN));
  const typename Kernel::LayoutA layout_a(params.lda[problem]);
  const typename Kernel::LayoutB layout_b(params.ldb[problem]);
  cutlass::TensorRef<float, typename Kernel::LayoutA> a(
      params.ptr_A[problem] + layout_a({offset.m(), 0}), layout_a);
  cutlass::TensorRef<float, typename Kernel::LayoutB> b(
      params.ptr_B[problem] + layout_b({0, offset.n()}), layout_b);
  cutlass::TensorRef<float, cutlass::layout::RowMajor> out(products.data(),
                                                           cutlass::layout::RowMajor(Shape::kN));
  cutlass::reference::host::Gemm<float, typename Kernel::LayoutA, float, typename Kernel::LayoutB,
                                 float, cutlass::layout::RowMajor, float, float>
      multiply;
  multiply(extent, 1.0f, a, b, 0.0f, out, out, 0.0f);

  const Epilogue epilogue(params.output_op);
  for (int i = 0; i < extent.m(); ++i) {
    for (int j = 0; j < extent.n(); j += Epilogue::kCount) {
      typename Epilogue::FragmentAccumulator sums;
      typename Epilogue::FragmentOutput source;
      const int64_t row = offset.m() + i, column = offset.n() + j;
      const float* c = params.ptr_C[problem] + row * params.ldc[problem] + column;
      for (int e = 0; e < Epilogue::kCount; ++e) {
        sums[e] = products[static_cast<std::size_t>(i * Shape::kN + j + e)];
        if (epilogue.is_source_needed()) source[e] = c[e];
      }
      const auto result = epilogue.is_source_needed() ? epilogue(sums, source) : epilogue(sums);
      float* d = params.ptr_D[problem] + row * params.ldd[problem] + column;
      for (int e = 0; e < Epilogue::kCount; ++e) d[e] = result[e];
    }
  }
}

// All tiles, in the order in which each of `blocks` blocks is given them.
template <class Kernel>
void run_on_host(std::span<const GemmProblem<float>> problems, int blocks,
                 GroupedEpilogue epilogue) {
  PackedGroup<float> packed = cuda::pack_group(problems, epilogue.beta);
  const typename Kernel::Params params(
      cuda::kernel_arguments<Kernel>(&packed, static_cast<int>(problems.size()), blocks, epilogue));
  for (int block = 0; block < blocks; ++block) {
    Warp::run(static_cast<unsigned>(block), static_cast<unsigned>(blocks), [&](int lane) {
      typename Kernel::ProblemVisitor::SharedStorage storage;
      typename Kernel::ProblemVisitor visitor(params.problem_visitor, storage, block);
      while (visitor.next_tile()) {
        const GemmCoord size = visitor.problem_size();
        const GemmCoord grid = visitor.grid_shape(size);
        const int tile = visitor.threadblock_idx();
        if (lane == 0) {
          compute_tile<Kernel>(params, visitor.problem_index(), size,
                               {tile / grid.n() * Kernel::ThreadblockShape::kM,
                                tile % grid.n() * Kernel::ThreadblockShape::kN, 0});
        }
        visitor.advance(blocks);
      }
    });
  }
}

// Towers of several extents, none a multiple of a tile; whole vectors of four, which tf32 wants.
template <class Kernel>
void check(Product product, GroupedEpilogue epilogue) {
  for (const int blocks : {1, 3, 7}) {
    std::vector<Tower> towers;
    towers.push_back(make_tower(product, 70, 100, 20, 1));
    towers.push_back(make_tower(product, 8, 64, 4, 2));
    towers.push_back(make_tower(product, 130, 12, 36, 3));
    towers.push_back(make_tower(product, 64, 68, 16, 4));
    std::vector<GemmProblem<float>> problems;
    std::vector<std::vector<float>> wanted;
    for (const Tower& tower : towers) {
      problems.push_back(tower.problem);
      wanted.push_back(expected(tower, product, epilogue));
    }

    run_on_host<Kernel>(problems, blocks, epilogue);

    for (std::size_t g = 0; g < towers.size(); ++g) {
      EXPECT_EQ(towers[g].d, wanted[g]) << "tower " << g << " with " << blocks << " blocks";
    }
  }
}

template <template <class, class> class Kernel>
void check_all() {
  using cuda::ColumnMajor;
  using cuda::RowMajor;
  check<Kernel<RowMajor, ColumnMajor>>(Product::forward, {.relu = true, .beta = 1});
  check<Kernel<RowMajor, ColumnMajor>>(Product::forward, {.relu = false, .beta = 1});
  check<Kernel<RowMajor, RowMajor>>(Product::input_gradient, {.relu = false, .beta = 0});
  check<Kernel<ColumnMajor, RowMajor>>(Product::weight_gradient, {.relu = false, .beta = 1});
}

TEST(CutlassOnTheHost, Fp32TilesCoverEveryProductOnce) {
  check_all<cuda::Fp32Kernel>();
}

TEST(CutlassOnTheHost, Tf32TilesCoverEveryProductOnce) {
  check_all<cuda::Tf32Kernel>();
}

TEST(CutlassOnTheHost, Bf16TilesCoverEveryProductOnce) {
  check_all<cuda::Bf16Kernel>();
}

TEST(CutlassOnTheHost, FewerThanFourTowersLeaveTheOthersAlone) {
  const Tower tower = make_tower(Product::input_gradient, 65, 4, 8, 1);
  const GemmProblem<float> problem = tower.problem;
  const auto wanted = expected(tower, Product::input_gradient, {});

  run_on_host<cuda::Fp32Kernel<cuda::RowMajor, cuda::RowMajor>>({&problem, 1}, 4, {});

  EXPECT_EQ(tower.d, wanted);
}

}  // namespace
}  // namespace cfaa::test
