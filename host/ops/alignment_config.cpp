#include "host/ops/alignment_config.h"

namespace cfaa {

OptionSet alignment_option_set(AlignmentOptions& o) {
  OptionSet set("alignment");
  set.add("k", o.typical.k, "typical samples per attribute; 0: half the smaller set",
          between(0, 65536));
  set.add("alpha", o.typical.alpha, "bandwidth of the soft assignment", positive());
  set.add("alpha_scale", o.typical.alpha_scale,
          "alpha in units of the attribute's variance (relative), or as it is (the paper)",
          {{"relative", AlphaScale::relative}, {"absolute", AlphaScale::absolute}});
  set.add("typical_iterations", o.typical.iterations, "iterations of the soft assignment",
          at_least(1));
  set.add("ot_solver", o.coupling.solver, "entropic couplings, or the exact sorted pairing",
          {{"sinkhorn", OtSolver::sinkhorn}, {"exact", OtSolver::exact}});
  set.add("epsilon", o.coupling.epsilon, "entropy, in units of an attribute's mean cost",
          positive());
  set.add("sinkhorn_iterations", o.coupling.iterations, "maximum iterations of a coupling",
          at_least(1));
  set.add("sinkhorn_tolerance", o.coupling.tolerance,
          "L1 marginal error at which a coupling stops; 0: never", at_least(0));
  set.add("ot_scale", o.coupling.scale, "<plan, cost> (transport), or that over K^2 (the paper)",
          {{"transport", OtScale::transport}, {"paper", OtScale::paper}});
  set.add("nu", o.slim.nu, "weight of SLIM's penalty", positive());
  set.add("nu_scale", o.slim.nu_scale,
          "nu as it is (the paper), or in units of the Gram matrix's mean diagonal",
          {{"absolute", NuScale::absolute}, {"relative", NuScale::relative}});
  set.add("delta", o.slim.delta, "smoothing of SLIM's penalty", positive());
  set.add("slim_iterations", o.slim.iterations, "maximum iterations of SLIM", at_least(1));
  set.add("slim_tolerance", o.slim.tolerance,
          "relative fall of SLIM's objective at which it stops; 0: never", at_least(0));
  set.add("slim_step", o.slim.step, "the exact minimiser, or the formula that the paper prints",
          {{"exact", SlimStep::exact}, {"paper", SlimStep::paper}});
  set.add("graph_floor", o.graph_floor, "added to every edge, so that the graph stays connected",
          at_least(0));
  set.add("solver", o.slim.solver,
          "of the horizontal loss on a GPU: products that a CUDA graph can hold, or cuSOLVER",
          {{"gemm", Solver::gemm}, {"cusolver", Solver::cusolver}});
  return set;
}

}  // namespace cfaa
