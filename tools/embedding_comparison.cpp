#include "tools/embedding_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "host/core/error.h"
#include "host/device/make_context.h"
#include "host/io/npy.h"
#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

double mean_ratio(const std::vector<double>& above, const std::vector<double>& below) {
  double sum = 0;
  int64_t counted = 0;
  for (std::size_t i = 0; i < above.size(); ++i) {
    if (below[i] <= 0) continue;
    sum += above[i] / below[i];
    ++counted;
  }
  return counted > 0 ? sum / static_cast<double>(counted) : 0;
}

template <class T>
std::vector<double> doubles(Context& context, View<T, 1> view) {
  const auto values = to_host(context, view);
  return {values.begin(), values.end()};
}

double finite_loss(double loss, const std::string& name) {
  if (std::isfinite(loss)) return loss;
  throw Error("the " + name + " loss of these embeddings is " + std::to_string(loss) +
              "; rescale them, or use --precision double");
}

void make_folder(const std::string& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error(folder + ": cannot be made: " + failure.message());
}

template <class T>
void write_matrix(Context& context, const std::string& path, View<T, 2> view) {
  write_npy(path, {view.rows(), view.cols()}, to_host(context, view).data());
}

// (D, K) on the device, written as (K, D) like every matrix of embeddings.
template <class T>
void write_transposed(Context& context, const std::string& path, View<T, 2> view) {
  const auto values = to_host(context, view);
  std::vector<T> turned(values.size());
  for (int64_t r = 0; r < view.rows(); ++r) {
    for (int64_t c = 0; c < view.cols(); ++c) {
      turned[static_cast<std::size_t>(c * view.rows() + r)] =
          values[static_cast<std::size_t>(r * view.cols() + c)];
    }
  }
  write_npy(path, {view.cols(), view.rows()}, turned.data());
}

template <class T>
class Comparison {
 public:
  Comparison(const ComparisonOptions& options, Context& context)
      : options_(options), context_(context) {}

  ComparisonReport run(Tensor<T, 2> source, Tensor<T, 2> target) {
    source_ = std::move(source);
    target_ = std::move(target);
    if (source_.shape()[1] != target_.shape()[1]) {
      throw Error(
          fmt::format("{} has {} columns and {} has {}; both sets must have the same "
                      "attributes",
                      options_.source, source_.shape()[1], options_.target, target_.shape()[1]));
    }
    if (options_.wants_horizontal() && source_.shape()[1] < 2) {
      throw Error(options_.source +
                  ": has one column, and the horizontal loss needs at least 2 attributes; use "
                  "--loss vertical");
    }
    if (!options_.gradients.empty()) make_folder(options_.gradients);
    if (!options_.intermediates.empty()) make_folder(options_.intermediates);
    pair_ = {source_.view(), target_.view()};
    json& fields = report_.fields;

    const Stopwatch vertical;
    if (options_.wants_vertical()) compare_vertically();
    fields["seconds"]["vertical"] = vertical.seconds();
    const Stopwatch horizontal;
    if (options_.wants_horizontal()) compare_horizontally();
    fields["seconds"]["horizontal"] = horizontal.seconds();

    fields["shape"] = {{"source", source_.shape()[0]},
                       {"target", target_.shape()[0]},
                       {"attributes", source_.shape()[1]}};
    fields["device"] = device_label(context_);
    fields["precision"] = options_.precision;
    return std::move(report_);
  }

 private:
  void compare_vertically() {
    const Arena::Scope scope(context_.scratch());
    const bool keep_plans = !options_.intermediates.empty();
    const VerticalLoss<T> forward =
        vertical_loss<T>(context_, {&pair_, 1}, options_.alignment, keep_plans);
    const int64_t k = forward.typical.samples.shape[2];

    json& fields = report_.fields["vertical"];
    fields["loss"] = finite_loss(doubles(context_, forward.loss)[0], "vertical");
    fields["solver"] = options_.alignment.coupling.solver == OtSolver::exact ? "exact" : "sinkhorn";
    const auto converged = to_host(context_, forward.coupling.converged);
    fields["converged"] =
        std::all_of(converged.begin(), converged.end(), [](int32_t yes) { return yes != 0; });
    const auto iterations = to_host(context_, forward.coupling.iterations);
    fields["iterations"] = *std::max_element(iterations.begin(), iterations.end());
    const auto errors = doubles(context_, forward.coupling.marginal_error);
    fields["max_marginal_error"] = *std::max_element(errors.begin(), errors.end());
    fields["spread_source"] = mean_ratio(doubles(context_, forward.typical.sample_std[0]),
                                         doubles(context_, forward.typical.column_std[0]));
    fields["spread_target"] = mean_ratio(doubles(context_, forward.typical.sample_std[1]),
                                         doubles(context_, forward.typical.column_std[1]));
    fields["k"] = k;
    report_.attribute_loss = doubles(context_, forward.coupling.loss);

    if (!options_.gradients.empty()) {
      write_gradients("vertical", [&](GradientPair<T> gradient) {
        vertical_loss_backward<T>(context_, {&pair_, 1}, forward, 1.0, {&gradient, 1});
      });
    }
    context_.check_faults();
    if (!keep_plans) return;
    const std::string folder = options_.intermediates + "/";
    write_transposed(context_, folder + "typical_s.npy", forward.typical.samples[0]);
    write_transposed(context_, folder + "typical_t.npy", forward.typical.samples[1]);
    write_npy(folder + "plans.npy", {forward.plan.shape[0], k, k},
              to_host(context_, forward.plan).data());
  }

  void compare_horizontally() {
    const Arena::Scope scope(context_.scratch());
    const HorizontalLoss<T> forward = horizontal_loss<T>(context_, {&pair_, 1}, options_.alignment);
    context_.check_faults();

    json& fields = report_.fields["horizontal"];
    fields["loss"] = finite_loss(doubles(context_, forward.loss)[0], "horizontal");
    fields["slim_step"] = options_.alignment.slim.step == SlimStep::exact ? "exact" : "paper";
    const auto rounds = to_host(context_, forward.slim.rounds);
    for (const int set : {0, 1}) {
      auto objective = to_host(context_, forward.slim.objective[set]);
      objective.resize(static_cast<std::size_t>(rounds[static_cast<std::size_t>(set)]));
      fields["objective"][set == 0 ? "source" : "target"] = objective;
    }

    if (!options_.gradients.empty()) {
      write_gradients("horizontal", [&](GradientPair<T> gradient) {
        horizontal_loss_backward<T>(context_, {&pair_, 1}, options_.alignment, forward, 1.0,
                                    {&gradient, 1});
      });
    }
    context_.check_faults();
    if (options_.intermediates.empty()) return;
    const std::string folder = options_.intermediates + "/";
    write_matrix(context_, folder + "slim_b_s.npy", forward.slim.b[0]);
    write_matrix(context_, folder + "slim_b_t.npy", forward.slim.b[1]);
    write_matrix(context_, folder + "laplacian_s.npy", forward.graph.laplacian[0]);
    write_matrix(context_, folder + "laplacian_t.npy", forward.graph.laplacian[1]);
  }

  template <class Backward>
  void write_gradients(const std::string& loss, Backward backward) {
    Tensor<T, 2> source(context_, source_.shape()), target(context_, target_.shape());
    source.fill_zero();
    target.fill_zero();
    backward(GradientPair<T>{source.view(), target.view()});
    context_.check_faults();
    write_matrix(context_, options_.gradients + "/" + loss + "_zs.npy", source.view());
    write_matrix(context_, options_.gradients + "/" + loss + "_zt.npy", target.view());
  }

  const ComparisonOptions& options_;
  Context& context_;
  Tensor<T, 2> source_, target_;
  EmbeddingPair<T> pair_;
  ComparisonReport report_;
};

}  // namespace

template <class T>
ComparisonReport compare_embeddings(Context& context, const ComparisonOptions& options,
                                    Tensor<T, 2> source, Tensor<T, 2> target) {
  return Comparison<T>(options, context).run(std::move(source), std::move(target));
}

template ComparisonReport compare_embeddings<float>(Context&, const ComparisonOptions&,
                                                    Tensor<float, 2>, Tensor<float, 2>);
template ComparisonReport compare_embeddings<double>(Context&, const ComparisonOptions&,
                                                     Tensor<double, 2>, Tensor<double, 2>);

}  // namespace cfaa::tools
