#include "host/core/fault.h"

namespace cfaa {
namespace {

std::string site_name(int32_t site) {
  switch (static_cast<FaultSite>(site)) {
    case FaultSite::typical_samples:
      return "typical samples";
    case FaultSite::coupling:
      return "couplings";
    case FaultSite::slim:
      return "SLIM";
    case FaultSite::slim_penalty:
      return "SLIM's penalty (BB' + delta I)^(-1/2)";
    case FaultSite::graph:
      return "the attribution graph's Laplacian";
    case FaultSite::wasserstein:
      return "the Gaussian Wasserstein distance";
    case FaultSite::score:
      return "the score loss L_C";
    case FaultSite::gradient:
      return "the gradient";
  }
  return "an op";
}

// What is not finite, and what to do about it.
std::string not_finite(const Fault& fault) {
  const std::string detail = std::to_string(fault.detail);
  switch (static_cast<FaultSite>(fault.site)) {
    case FaultSite::score:
      return "the score loss L_C became NaN or infinite" +
             (fault.detail < 0 ? "" : ", first at row " + detail + " of the batch") +
             "; lower the learning rate";
    case FaultSite::gradient:
      return "the gradient's norm became NaN or infinite; lower the learning rate";
    default:
      return site_name(fault.site) + ", problem " + std::to_string(fault.problem) + ": attribute " +
             detail + " became NaN or infinite; rescale the embeddings or lower the learning rate";
  }
}

std::string what_happened(const Fault& fault) {
  const std::string where = site_name(fault.site) + ", problem " + std::to_string(fault.problem);
  const std::string detail = std::to_string(fault.detail);
  switch (static_cast<FaultCode>(fault.code)) {
    case FaultCode::not_positive_definite:
      return where + ": the matrix is not positive definite (leading minor " + detail +
             "); raise nu, delta or graph_floor, or rescale the embeddings";
    case FaultCode::eigensolver_failed:
      return where + ": the eigensolver left " + detail +
             " off-diagonal elements unconverged; raise delta or rescale the embeddings";
    case FaultCode::not_finite:
      return not_finite(fault);
    case FaultCode::not_converged:
      return where +
             ": the solver by products did not converge; set alignment.solver to cusolver, raise "
             "delta or graph_floor, or rescale the embeddings";
    case FaultCode::none:
      break;
  }
  return where + ": no fault";
}

}  // namespace

std::string explain(const Fault& fault) {
  const std::string step = fault.step > 0 ? "step " + std::to_string(fault.step) + ": " : "";
  return step + what_happened(fault);
}

}  // namespace cfaa
