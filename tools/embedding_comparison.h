#pragma once

// Two embedding sets, compared by the alignment losses: what `cfaa_gpu discrepancy` reports of two
// files, and of the users and the items of a run.

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/core/tensor.h"
#include "host/ops/alignment_options.h"

namespace cfaa::tools {

struct ComparisonOptions {
  std::string source, target;            // what to call the sets in messages
  std::string gradients, intermediates;  // folders to write to; "": nothing is written
  std::string precision = "float", loss = "both";
  AlignmentOptions alignment;

  bool wants_vertical() const { return loss != "horizontal"; }
  bool wants_horizontal() const { return loss != "vertical"; }
};

struct ComparisonReport {
  nlohmann::json fields;               // what --json prints
  std::vector<double> attribute_loss;  // per attribute, of the vertical loss
};

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Error where the sets do not have the same attributes, or a loss of them is not finite.
template <class T>
ComparisonReport compare_embeddings(Context& context, const ComparisonOptions& options,
                                    Tensor<T, 2> source, Tensor<T, 2> target);

}  // namespace cfaa::tools
