#include "host/run/discrepancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/core/error.h"
#include "host/core/stopwatch.h"
#include "host/core/tensor.h"
#include "host/device/make_context.h"
#include "host/io/npy.h"
#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"
#include "host/train/permutation.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

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

void make_folder(const fs::path& folder) {
  if (folder.empty()) return;
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw Error(folder.string() + ": cannot be made: " + failure.message());
}

template <class T>
void write_matrix(Context& context, const fs::path& path, View<T, 2> view) {
  write_npy(path.string(), {view.rows(), view.cols()}, to_host(context, view).data());
}

// (D, K) on the device, written as (K, D) like every matrix of embeddings.
template <class T>
void write_transposed(Context& context, const fs::path& path, View<T, 2> view) {
  const auto values = to_host(context, view);
  std::vector<T> turned(values.size());
  for (int64_t r = 0; r < view.rows(); ++r) {
    for (int64_t c = 0; c < view.cols(); ++c) {
      turned[static_cast<std::size_t>(c * view.rows() + r)] =
          values[static_cast<std::size_t>(r * view.cols() + c)];
    }
  }
  write_npy(path.string(), {view.cols(), view.rows()}, turned.data());
}

// A two-dimensional float array without NaN or infinity.
template <class T>
Tensor<T, 2> read_embeddings(Context& context, const std::string& path) {
  const NpyFile file(path);
  if (file.shape().size() != 2) {
    throw Error(
        fmt::format("{}: has {} dimension{}; embeddings are a matrix of N rows and D "
                    "columns",
                    path, file.shape().size(), file.shape().size() == 1 ? "" : "s"));
  }
  if (!is_float(file.dtype())) {
    throw Error(
        fmt::format("{}: holds {}; embeddings are float32 or float64: convert with "
                    "array.astype('float32')",
                    path, name_of(file.dtype())));
  }
  const int64_t rows = file.shape()[0], cols = file.shape()[1];
  if (rows == 0 || cols == 0) {
    throw Error(fmt::format("{}: is empty ({} x {}); give at least one row and one column", path,
                            rows, cols));
  }
  const std::vector<T> values = file.read<T>();
  for (int64_t i = 0; i < rows * cols; ++i) {
    if (!std::isfinite(values[static_cast<std::size_t>(i)])) {
      throw Error(
          fmt::format("{}: row {}, column {} is {} in this precision; embeddings must be "
                      "finite",
                      path, i / cols, i % cols, values[static_cast<std::size_t>(i)]));
    }
  }
  return Tensor<T, 2>(context, {rows, cols}, values.data());
}

// What the sets are called in messages.
struct SetNames {
  std::string source, target;
};

template <class T>
class EmbeddingComparison {
 public:
  EmbeddingComparison(Context& context, const DiscrepancyOptions& options, SetNames names,
                      Tensor<T, 2> source, Tensor<T, 2> target)
      : context_(context),
        options_(options),
        source_(std::move(source)),
        target_(std::move(target)),
        pair_{source_.view(), target_.view()} {
    if (source_.shape()[1] != target_.shape()[1]) {
      throw Error(
          fmt::format("{} has {} columns and {} has {}; both sets must have the same "
                      "attributes",
                      names.source, source_.shape()[1], names.target, target_.shape()[1]));
    }
    if (options_.horizontal && source_.shape()[1] < 2) {
      throw Error(names.source +
                  ": has one column, and the horizontal loss needs at least 2 attributes; use "
                  "--loss vertical");
    }
    make_folder(options_.gradients);
    make_folder(options_.intermediates);
  }

  Discrepancy run() {
    Discrepancy found;
    found.source_rows = source_.shape()[0];
    found.target_rows = target_.shape()[0];
    found.attributes = source_.shape()[1];
    found.precision = options_.precision;
    found.device = device_label(context_);
    const Stopwatch vertical;
    if (options_.vertical) found.vertical = compare_vertically();
    found.vertical_seconds = vertical.seconds();
    const Stopwatch horizontal;
    if (options_.horizontal) found.horizontal = compare_horizontally();
    found.horizontal_seconds = horizontal.seconds();
    return found;
  }

 private:
  VerticalDiscrepancy compare_vertically() {
    const Arena::Scope scope(context_.scratch());
    const bool keep_plans = !options_.intermediates.empty();
    const VerticalLoss<T> forward =
        vertical_loss<T>(context_, {&pair_, 1}, options_.alignment, keep_plans);

    VerticalDiscrepancy found;
    found.loss = finite_loss(doubles(context_, forward.loss)[0], "vertical");
    found.solver = options_.alignment.coupling.solver;
    found.k = forward.typical.samples.shape[2];
    const auto converged = to_host(context_, forward.coupling.converged);
    found.converged =
        std::all_of(converged.begin(), converged.end(), [](int32_t yes) { return yes != 0; });
    const auto iterations = to_host(context_, forward.coupling.iterations);
    found.iterations = *std::max_element(iterations.begin(), iterations.end());
    const auto errors = doubles(context_, forward.coupling.marginal_error);
    found.max_marginal_error = *std::max_element(errors.begin(), errors.end());
    found.spread_source = mean_ratio(doubles(context_, forward.typical.sample_std[0]),
                                     doubles(context_, forward.typical.column_std[0]));
    found.spread_target = mean_ratio(doubles(context_, forward.typical.sample_std[1]),
                                     doubles(context_, forward.typical.column_std[1]));
    found.attribute_loss = doubles(context_, forward.coupling.loss);

    if (!options_.gradients.empty()) {
      write_gradients("vertical", [&](GradientPair<T> gradient) {
        vertical_loss_backward<T>(context_, {&pair_, 1}, forward, 1.0, {&gradient, 1});
      });
    }
    context_.check_faults();
    if (!keep_plans) return found;
    const fs::path& folder = options_.intermediates;
    write_transposed(context_, folder / "typical_s.npy", forward.typical.samples[0]);
    write_transposed(context_, folder / "typical_t.npy", forward.typical.samples[1]);
    write_npy((folder / "plans.npy").string(), {forward.plan.shape[0], found.k, found.k},
              to_host(context_, forward.plan).data());
    return found;
  }

  HorizontalDiscrepancy compare_horizontally() {
    const Arena::Scope scope(context_.scratch());
    AlignmentOptions alignment = options_.alignment;
    alignment.slim.last_objective = true;
    const HorizontalLoss<T> forward = horizontal_loss<T>(context_, {&pair_, 1}, alignment);
    context_.check_faults();

    HorizontalDiscrepancy found;
    found.loss = finite_loss(doubles(context_, forward.loss)[0], "horizontal");
    found.slim_step = options_.alignment.slim.step;
    const auto rounds = to_host(context_, forward.slim.rounds);
    for (const std::size_t set : {0, 1}) {
      const auto objective = to_host(context_, forward.slim.objective[static_cast<int64_t>(set)]);
      found.objective[set].assign(objective.begin(), objective.begin() + rounds[set]);
    }

    if (!options_.gradients.empty()) {
      write_gradients("horizontal", [&](GradientPair<T> gradient) {
        horizontal_loss_backward<T>(context_, {&pair_, 1}, options_.alignment, forward, 1.0,
                                    {&gradient, 1});
      });
    }
    context_.check_faults();
    if (options_.intermediates.empty()) return found;
    const fs::path& folder = options_.intermediates;
    write_matrix(context_, folder / "slim_b_s.npy", forward.slim.b[0]);
    write_matrix(context_, folder / "slim_b_t.npy", forward.slim.b[1]);
    write_matrix(context_, folder / "laplacian_s.npy", forward.graph.laplacian[0]);
    write_matrix(context_, folder / "laplacian_t.npy", forward.graph.laplacian[1]);
    return found;
  }

  template <class Backward>
  void write_gradients(const std::string& loss, Backward backward) {
    Tensor<T, 2> source(context_, source_.shape()), target(context_, target_.shape());
    source.fill_zero();
    target.fill_zero();
    backward(GradientPair<T>{source.view(), target.view()});
    context_.check_faults();
    write_matrix(context_, options_.gradients / (loss + "_zs.npy"), source.view());
    write_matrix(context_, options_.gradients / (loss + "_zt.npy"), target.view());
  }

  Context& context_;
  const DiscrepancyOptions& options_;
  Tensor<T, 2> source_, target_;
  EmbeddingPair<T> pair_;
};

template <class T>
Discrepancy compare_files(Context& context, const SetNames& files,
                          const DiscrepancyOptions& options) {
  const Stopwatch reading;
  Tensor<T, 2> source = read_embeddings<T>(context, files.source);
  Tensor<T, 2> target = read_embeddings<T>(context, files.target);
  const double seconds = reading.seconds();
  Discrepancy found =
      EmbeddingComparison<T>(context, options, files, std::move(source), std::move(target)).run();
  found.read_seconds = seconds;
  return found;
}

// Users, or items, of both domains.
template <class T>
Discrepancy compare_side(Context& context, const PerDomain<DomainEmbeddings>& embeddings,
                         std::size_t side, const SetNames& names,
                         const DiscrepancyOptions& options) {
  const MatrixView<const float> source = embeddings[kSource].view(side),
                                target = embeddings[kTarget].view(side);
  Discrepancy found =
      EmbeddingComparison<T>(context, options, names,
                             compared_rows<T>(context, source, options.rows, 2 * side),
                             compared_rows<T>(context, target, options.rows, 2 * side + 1))
          .run();
  const Stopwatch classifying;
  found.proxy = proxy_distance(context, source, target);
  found.proxy_seconds = classifying.seconds();
  return found;
}

}  // namespace

template <class T>
Tensor<T, 2> compared_rows(Context& context, MatrixView<const float> all, int64_t most,
                           uint64_t stream) {
  const int64_t count = most > 0 ? std::min(most, all.rows()) : all.rows();
  const Permutation order(all.rows(), 0, stream);
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) {
    const float* row = all.data + (count < all.rows() ? order(i) : i) * all.cols();
    values.insert(values.end(), row, row + all.cols());
  }
  return Tensor<T, 2>(context, {count, all.cols()}, values.data());
}
template Tensor<float, 2> compared_rows(Context&, MatrixView<const float>, int64_t, uint64_t);
template Tensor<double, 2> compared_rows(Context&, MatrixView<const float>, int64_t, uint64_t);

Discrepancy compare_embedding_files(Context& context, const std::string& source,
                                    const std::string& target, const DiscrepancyOptions& options) {
  return options.precision == ComparePrecision::f64
             ? compare_files<double>(context, {source, target}, options)
             : compare_files<float>(context, {source, target}, options);
}

RunDiscrepancy compare_domains(Context& context, Run& run, const DiscrepancyOptions& options) {
  const PerDomain<DomainEmbeddings> embeddings = {run.embed(kSource), run.embed(kTarget)};
  const SetNames names = {run.directory().name(), run.directory().name()};
  const auto compare = [&](std::size_t side) {
    return options.precision == ComparePrecision::f64
               ? compare_side<double>(context, embeddings, side, names, options)
               : compare_side<float>(context, embeddings, side, names, options);
  };
  RunDiscrepancy found{compare(kUser), compare(kItem), {}, {}};
  if (options.vertical) found.vertical = found.users.vertical->loss + found.items.vertical->loss;
  if (options.horizontal) {
    found.horizontal = found.users.horizontal->loss + found.items.horizontal->loss;
  }
  return found;
}

}  // namespace cfaa
