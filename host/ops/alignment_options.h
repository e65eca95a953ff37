#pragma once

// The parameters of the two alignment losses, by the names that the configuration's `alignment`
// object and the flags use; host/ops/alignment_config.h binds them. The defaults are the
// paper's values where it names one, ours elsewhere.

#include <cstdint>

namespace cfaa {

enum class AlphaScale { relative, absolute };
enum class OtSolver { sinkhorn, exact };
enum class OtScale { transport, paper };
enum class NuScale { absolute, relative };
enum class SlimStep { exact, paper };
// How a GPU makes inverse square roots, polar factors and inverses: by products and kernels that a
// CUDA graph can hold, or by cuSOLVER. The CPU has one way of its own.
enum class Solver { gemm, cusolver };

struct TypicalSamplesOptions {
  int64_t k = 0;  // typical samples per attribute; 0: half the smaller set
  double alpha = 0.1;
  AlphaScale alpha_scale = AlphaScale::relative;
  int64_t iterations = 10;
};

struct CouplingOptions {
  OtSolver solver = OtSolver::sinkhorn;
  double epsilon = 0.05;
  int64_t iterations = 100;
  double tolerance = 0;  // L1 marginal error at which a problem stops; 0: never
  OtScale scale = OtScale::transport;
};

struct SlimOptions {
  double nu = 0.1;
  NuScale nu_scale = NuScale::absolute;
  double delta = 1e-4;
  int64_t iterations = 3;
  double tolerance = 0;  // relative fall of the objective at which a problem stops; 0: never
  SlimStep step = SlimStep::exact;
  // The objective of the last round takes an eigendecomposition that nothing else needs: training
  // leaves it out.
  bool last_objective = false;
  Solver solver = Solver::gemm;
};

struct AlignmentOptions {
  TypicalSamplesOptions typical;
  CouplingOptions coupling;
  SlimOptions slim;
  double graph_floor = 1e-5;
};

}  // namespace cfaa
