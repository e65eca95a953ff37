#pragma once

// The vertical loss in plain loops and double, as the headers of host/ops write it: what the
// devices are tested against. The entries that take Psi or a plan hold them fixed, as the backward
// does, so that central differences of them are its gradients.

#include <cstdint>
#include <vector>

#include "host/ops/alignment_options.h"

namespace cfaa::reference {

double mean(const std::vector<double>& values);
double variance(const std::vector<double>& values);  // biased

// alpha_q of an attribute whose columns are `source` and `target`.
double attribute_alpha(const TypicalSamplesOptions& options, const std::vector<double>& source,
                       const std::vector<double>& target);

// One column z of N values.
struct TypicalColumn {
  std::vector<double> samples;  // (K)     M after the last iteration
  std::vector<double> psi;      // (N, K)  of the last iteration
  std::vector<double> weight;   // (K)     sum_i psi_ij
};
TypicalColumn typical_column(const std::vector<double>& z, int64_t k, double alpha_q,
                             int64_t iterations);

// M_j = sum_i psi_ij z_i / sum_i psi_ij with psi (N, K) fixed.
std::vector<double> samples_of(const std::vector<double>& psi, const std::vector<double>& z);

// dZ_i = sum_j psi_ij dM_j / s_j.
std::vector<double> column_gradient(const TypicalColumn& column, const std::vector<double>& dm);

// One problem of K source and K target samples.
struct Transport {
  std::vector<double> plan;  // (K, K)
  double loss;
  std::vector<double> source_gradient, target_gradient;  // (K)
  double marginal_error;
  int64_t iterations;
};
Transport entropic_transport(const std::vector<double>& source, const std::vector<double>& target,
                             double epsilon, int64_t iterations, double tolerance = 0);
Transport exact_transport(const std::vector<double>& source, const std::vector<double>& target);

// By the solver that the options name, in units of OtScale::transport.
Transport transport(const std::vector<double>& source, const std::vector<double>& target,
                    const CouplingOptions& options);

// sum_ij plan_ij (source_i - target_j)^2 with the plan fixed.
double transport_cost(const std::vector<double>& plan, const std::vector<double>& source,
                      const std::vector<double>& target);

// L1 distance of both marginals of a (K, K) plan from 1/K.
double marginal_error(const std::vector<double>& plan, int64_t k);

}  // namespace cfaa::reference
