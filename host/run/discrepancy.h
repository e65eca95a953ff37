#pragma once

// How far apart two embedding sets, or the two domains of a run, are: by both alignment losses, and
// for a run by a classifier that tells the domains apart.

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/tensor.h"
#include "host/eval/proxy_distance.h"
#include "host/ops/alignment_options.h"
#include "host/run/run.h"

namespace cfaa {

enum class ComparePrecision { f32, f64 };

struct DiscrepancyOptions {
  bool vertical = true, horizontal = true;  // which losses
  ComparePrecision precision = ComparePrecision::f32;
  AlignmentOptions alignment;
  // Of two files: folders for the losses' gradients, and for typical samples, plans, B and
  // Laplacians, as .npy; "": nothing is written.
  std::filesystem::path gradients, intermediates;
  // Of a run: rows of each set, drawn at random, that the losses compare; 0: all. In training they
  // compare batches; their cost grows with the rows, and memory with rows times k.
  int64_t rows = 2048;
};

struct VerticalDiscrepancy {
  double loss = 0;
  OtSolver solver = OtSolver::sinkhorn;
  int64_t k = 0;  // typical samples
  bool converged = false;
  int64_t iterations = 0;
  double max_marginal_error = 0;
  double spread_source = 0, spread_target = 0;  // std of the samples / std of the column, mean
  std::vector<double> attribute_loss;           // (D)
};

struct HorizontalDiscrepancy {
  double loss = 0;
  SlimStep slim_step = SlimStep::exact;
  std::array<std::vector<double>, 2> objective;  // of source and target, round by round
};

struct Discrepancy {
  int64_t source_rows = 0, target_rows = 0, attributes = 0;
  ComparePrecision precision = ComparePrecision::f32;
  std::string device;
  std::optional<VerticalDiscrepancy> vertical;
  std::optional<HorizontalDiscrepancy> horizontal;
  std::optional<ProxyDistance> proxy;  // of a run
  double read_seconds = 0, vertical_seconds = 0, horizontal_seconds = 0, proxy_seconds = 0;
};

struct RunDiscrepancy {
  Discrepancy users, items;
  std::optional<double> vertical, horizontal;  // L_O, L_A: of users and items together
};

// The rows of a set that the losses compare, on the device: all of them (most 0), or as many drawn
// at random.
template <class T>
Tensor<T, 2> compared_rows(Context& context, MatrixView<const float> all, int64_t most,
                           uint64_t stream);

// Two .npy files of N x D. Error where one is not a finite matrix of floats, where they do not have
// the same attributes, or where a loss of them is not finite.
Discrepancy compare_embedding_files(Context& context, const std::string& source,
                                    const std::string& target, const DiscrepancyOptions& options);

// Source users against target users and items against items, by the run's best parameters.
RunDiscrepancy compare_domains(Context& context, Run& run, const DiscrepancyOptions& options);

}  // namespace cfaa
