// cfaa_gpu discrepancy zs.npy zt.npy, or run/: how far apart two embedding sets are, by both
// alignment losses and by a classifier that tells them apart.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "host/core/error.h"
#include "host/core/npy.h"
#include "host/core/tensor.h"
#include "host/eval/proxy_distance.h"
#include "host/ops/alignment_config.h"
#include "host/ops/device.h"
#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"
#include "host/train/permutation.h"
#include "host/train/run.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  std::string source;  // a file, or a run
  std::string target, data, config, gradients, intermediates;
  int64_t rows = 2048;  // of a run's set that the losses compare
  std::string precision = "float", loss = "both";
  DeviceFlags device;
  AlignmentOptions alignment;
  bool json = false;

  bool wants_vertical() const { return loss != "horizontal"; }
  bool wants_horizontal() const { return loss != "vertical"; }
};

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

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

// The fixtures' case.json has the alignment keys in `parameters`; a configuration in `alignment`.
void read_alignment(const std::string& path, OptionSet& set) {
  if (path.empty()) return;
  const MappedFile file(path);
  const json any = json::parse(
      reinterpret_cast<const char*>(file.bytes().data()),
      reinterpret_cast<const char*>(file.bytes().data()) + file.bytes().size(), nullptr, false);
  if (any.is_object() && any.contains("parameters")) {
    set.read(any["parameters"], path, {"name"});
    return;
  }
  const json config = read_config(path);
  if (config.contains("alignment")) set.read(config["alignment"], path);
}

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

struct Report {
  json fields;
  std::vector<double> attribute_loss;  // per attribute, of the vertical loss
};

template <class T>
class Comparison {
 public:
  Comparison(const Arguments& arguments, Context& context)
      : arguments_(arguments), context_(context) {}

  Report run() {
    const Stopwatch reading;
    Tensor<T, 2> source = read_embeddings<T>(context_, arguments_.source);
    Tensor<T, 2> target = read_embeddings<T>(context_, arguments_.target);
    report_.fields["seconds"]["read"] = reading.seconds();
    return run(std::move(source), std::move(target));
  }

  Report run(Tensor<T, 2> source, Tensor<T, 2> target) {
    source_ = std::move(source);
    target_ = std::move(target);
    if (source_.shape()[1] != target_.shape()[1]) {
      throw Error(fmt::format(
          "{} has {} columns and {} has {}; both sets must have the same "
          "attributes",
          arguments_.source, source_.shape()[1], arguments_.target, target_.shape()[1]));
    }
    if (arguments_.wants_horizontal() && source_.shape()[1] < 2) {
      throw Error(arguments_.source +
                  ": has one column, and the horizontal loss needs at least 2 attributes; use "
                  "--loss vertical");
    }
    if (!arguments_.gradients.empty()) make_folder(arguments_.gradients);
    if (!arguments_.intermediates.empty()) make_folder(arguments_.intermediates);
    pair_ = {source_.view(), target_.view()};
    json& fields = report_.fields;

    const Stopwatch vertical;
    if (arguments_.wants_vertical()) compare_vertically();
    fields["seconds"]["vertical"] = vertical.seconds();
    const Stopwatch horizontal;
    if (arguments_.wants_horizontal()) compare_horizontally();
    fields["seconds"]["horizontal"] = horizontal.seconds();

    fields["shape"] = {{"source", source_.shape()[0]},
                       {"target", target_.shape()[0]},
                       {"attributes", source_.shape()[1]}};
    fields["device"] = device_label(context_);
    fields["precision"] = arguments_.precision;
    return std::move(report_);
  }

 private:
  void compare_vertically() {
    const Arena::Scope scope(context_.scratch());
    const bool keep_plans = !arguments_.intermediates.empty();
    const VerticalLoss<T> forward =
        vertical_loss<T>(context_, {&pair_, 1}, arguments_.alignment, keep_plans);
    const int64_t k = forward.typical.samples.shape[2];

    json& fields = report_.fields["vertical"];
    fields["loss"] = finite_loss(doubles(context_, forward.loss)[0], "vertical");
    fields["solver"] =
        arguments_.alignment.coupling.solver == OtSolver::exact ? "exact" : "sinkhorn";
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

    if (!arguments_.gradients.empty()) {
      write_gradients("vertical", [&](GradientPair<T> gradient) {
        vertical_loss_backward<T>(context_, {&pair_, 1}, forward, 1.0, {&gradient, 1});
      });
    }
    context_.check_faults();
    if (!keep_plans) return;
    const std::string folder = arguments_.intermediates + "/";
    write_transposed(context_, folder + "typical_s.npy", forward.typical.samples[0]);
    write_transposed(context_, folder + "typical_t.npy", forward.typical.samples[1]);
    write_npy(folder + "plans.npy", {forward.plan.shape[0], k, k},
              to_host(context_, forward.plan).data());
  }

  void compare_horizontally() {
    const Arena::Scope scope(context_.scratch());
    const HorizontalLoss<T> forward =
        horizontal_loss<T>(context_, {&pair_, 1}, arguments_.alignment);
    context_.check_faults();

    json& fields = report_.fields["horizontal"];
    fields["loss"] = finite_loss(doubles(context_, forward.loss)[0], "horizontal");
    fields["slim_step"] = arguments_.alignment.slim.step == SlimStep::exact ? "exact" : "paper";
    const auto rounds = to_host(context_, forward.slim.rounds);
    for (const int set : {0, 1}) {
      auto objective = to_host(context_, forward.slim.objective[set]);
      objective.resize(static_cast<std::size_t>(rounds[static_cast<std::size_t>(set)]));
      fields["objective"][set == 0 ? "source" : "target"] = objective;
    }

    if (!arguments_.gradients.empty()) {
      write_gradients("horizontal", [&](GradientPair<T> gradient) {
        horizontal_loss_backward<T>(context_, {&pair_, 1}, arguments_.alignment, forward, 1.0,
                                    {&gradient, 1});
      });
    }
    context_.check_faults();
    if (arguments_.intermediates.empty()) return;
    const std::string folder = arguments_.intermediates + "/";
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
    write_matrix(context_, arguments_.gradients + "/" + loss + "_zs.npy", source.view());
    write_matrix(context_, arguments_.gradients + "/" + loss + "_zt.npy", target.view());
  }

  const Arguments& arguments_;
  Context& context_;
  Tensor<T, 2> source_, target_;
  EmbeddingPair<T> pair_;
  Report report_;
};

std::string objective_text(const json& rounds) {
  return fmt::format("{:.6g} -> {:.6g}", rounds.front().get<double>(), rounds.back().get<double>());
}

void print_attributes(const std::vector<double>& loss) {
  std::vector<std::size_t> order(loss.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return loss[a] > loss[b]; });
  order.resize(std::min<std::size_t>(order.size(), 10));
  const double total = std::accumulate(loss.begin(), loss.end(), 0.0);
  fmt::print("\nattributes that differ most   distance   share of the loss\n");
  for (const std::size_t q : order) {
    fmt::print("  {:>25} {:>11.5g} {:>17.1f} %\n", q, loss[q],
               total > 0 ? 100 * loss[q] / total : 0.0);
  }
}

void print_report(const Report& report) {
  const json& f = report.fields;
  const json& shape = f["shape"];
  fmt::print("{} x {} (source) against {} x {} (target), {} on {}\n\n",
             shape["source"].get<int64_t>(), shape["attributes"].get<int64_t>(),
             shape["target"].get<int64_t>(), shape["attributes"].get<int64_t>(),
             f["precision"].get<std::string>(), f["device"].get<std::string>());
  fmt::print("loss         value        how\n");
  if (f.contains("vertical")) {
    const json& v = f["vertical"];
    const bool entropic = v["solver"] == "sinkhorn";
    const std::string how =
        entropic
            ? fmt::format(
                  "sinkhorn, {} typical samples, {} after {} iterations (marginal "
                  "error {:.1e})",
                  v["k"].get<int64_t>(), v["converged"].get<bool>() ? "converged" : "not converged",
                  v["iterations"].get<int64_t>(), v["max_marginal_error"].get<double>())
            : fmt::format("exact, {} typical samples", v["k"].get<int64_t>());
    fmt::print("vertical     {:<12.7g} {}\n", v["loss"].get<double>(), how);
    fmt::print("{:26}spread kept by the samples: source {:.0f} %, target {:.0f} %\n", "",
               100 * v["spread_source"].get<double>(), 100 * v["spread_target"].get<double>());
  }
  if (f.contains("horizontal")) {
    const json& h = f["horizontal"];
    fmt::print(
        "horizontal   {:<12.7g} SLIM ({} step), {} rounds; objective: source {}, target {}\n",
        h["loss"].get<double>(), h["slim_step"].get<std::string>(), h["objective"]["source"].size(),
        objective_text(h["objective"]["source"]), objective_text(h["objective"]["target"]));
  }
  if (f.contains("vertical")) print_attributes(report.attribute_loss);
  const json& s = f["seconds"];
  fmt::print("\nseconds: read {:.3f}, vertical {:.3f}, horizontal {:.3f}\n",
             s["read"].get<double>(), s["vertical"].get<double>(), s["horizontal"].get<double>());
}

// The rows of a set that the losses compare: all of them, or as many drawn at random. In training
// they compare batches; their cost grows with the rows, and memory with rows times k.
template <class T>
Tensor<T, 2> some_rows(Context& context, MatrixView<const float> all, int64_t most,
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

// Users against users and items against items, by the run's best parameters.
template <class T>
json compare_run(const Arguments& arguments, Context& context, Run& trained) {
  const PerDomain<DomainEmbeddings> embeddings = {trained.embed(kSource), trained.embed(kTarget)};
  json fields = {{"run", arguments.source}};
  for (const std::size_t side : {kUser, kItem}) {
    const MatrixView<const float> source = embeddings[kSource].view(side),
                                  target = embeddings[kTarget].view(side);
    const char* name = side == kUser ? "users" : "items";
    fields[name] = Comparison<T>(arguments, context)
                       .run(some_rows<T>(context, source, arguments.rows, 2 * side),
                            some_rows<T>(context, target, arguments.rows, 2 * side + 1))
                       .fields;
    const Stopwatch classifying;
    const ProxyDistance proxy = proxy_distance(context, source, target);
    fields[name]["proxy_distance"] = {{"distance", proxy.distance},
                                      {"error", proxy.error},
                                      {"train", proxy.train},
                                      {"held_out", proxy.held_out}};
    fields[name]["seconds"]["proxy_distance"] = classifying.seconds();
  }
  for (const char* loss : {"vertical", "horizontal"}) {
    if (!fields["users"].contains(loss)) continue;
    fields[loss] =
        fields["users"][loss]["loss"].get<double>() + fields["items"][loss]["loss"].get<double>();
  }
  return fields;
}

void print_run(const json& fields) {
  fmt::print("{}: source against target by its best parameters\n\n{:<22}{:>12}{:>12}{:>12}\n",
             fields["run"].get<std::string>(), "", "users", "items", "sum");
  for (const char* loss : {"vertical", "horizontal"}) {
    if (!fields.contains(loss)) continue;
    fmt::print("{:<22}{:>12.6g}{:>12.6g}{:>12.6g}\n",
               loss[0] == 'v' ? "L_O (vertical)" : "L_A (horizontal)",
               fields["users"][loss]["loss"].get<double>(),
               fields["items"][loss]["loss"].get<double>(), fields[loss].get<double>());
  }
  const json &users = fields["users"]["proxy_distance"], &items = fields["items"]["proxy_distance"];
  fmt::print("{:<22}{:>12.4f}{:>12.4f}\n", "proxy A-distance", users["distance"].get<double>(),
             items["distance"].get<double>());
  fmt::print("{:<22}{:>12.4f}{:>12.4f}\n", "  held-out error", users["error"].get<double>(),
             items["error"].get<double>());
  for (const char* side : {"users", "items"}) {
    const json& shape = fields[side]["shape"];
    fmt::print("\n{}: losses of {} source and {} target rows, classifier of {}", side,
               shape["source"].get<int64_t>(), shape["target"].get<int64_t>(),
               fields[side]["proxy_distance"]["train"].get<int64_t>());
  }
  fmt::print("\n");
}

// The settings of the run, then those of --config and of the flags.
void run_on_run(Arguments& arguments, const std::function<void()>& apply_flags) {
  for (const std::string* folder : {&arguments.gradients, &arguments.intermediates}) {
    if (folder->empty()) continue;
    throw Error(
        fmt::format("{}: is a run, which has two pairs of sets; for --gradients and "
                    "--intermediates export it, and give two of its files",
                    arguments.source));
  }
  const auto context = arguments.device.make_context();
  Run trained(*context, arguments.source, arguments.data);
  arguments.alignment = trained.config().alignment;
  OptionSet set = alignment_option_set(arguments.alignment);
  read_alignment(arguments.config, set);
  apply_flags();
  const json fields = arguments.precision == "double"
                          ? compare_run<double>(arguments, *context, trained)
                          : compare_run<float>(arguments, *context, trained);
  if (arguments.json) {
    print_json(fields);
  } else {
    print_run(fields);
  }
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  if (is_run(arguments.source)) {
    if (!arguments.target.empty()) {
      throw Error(fmt::format("{}: is a run, which has both domains; '{}' is one argument too many",
                              arguments.source, arguments.target));
    }
    run_on_run(arguments, apply_flags);
    return;
  }
  if (arguments.target.empty()) {
    throw Error(
        fmt::format("{}: is not a run; give two .npy files, source and target, or the "
                    "directory that train wrote",
                    arguments.source));
  }
  OptionSet set = alignment_option_set(arguments.alignment);
  read_alignment(arguments.config, set);
  apply_flags();
  const auto context = arguments.device.make_context();
  const Report report = arguments.precision == "double"
                            ? Comparison<double>(arguments, *context).run()
                            : Comparison<float>(arguments, *context).run();
  if (arguments.json) {
    print_json(report.fields);
  } else {
    print_report(report);
  }
}

}  // namespace

void add_discrepancy(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "discrepancy", "how far apart two embedding sets, or the domains of a run, are");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("source", arguments->source, "source embeddings, .npy of N x D; or a run")
      ->required();
  command->add_option("target", arguments->target, "target embeddings, .npy of N x D");
  command->add_option("--data", arguments->data, "where the run's data is now");
  command
      ->add_option("--rows", arguments->rows,
                   "of a run: rows of each set that the losses compare; 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--config", arguments->config, "configuration with an 'alignment' section");
  arguments->device.add_to(*command);
  command->add_option("--precision", arguments->precision, "float or double")
      ->capture_default_str()
      ->check(CLI::IsMember({"float", "double"}));
  command->add_option("--loss", arguments->loss, "vertical, horizontal or both")
      ->capture_default_str()
      ->check(CLI::IsMember({"vertical", "horizontal", "both"}));
  command->add_option("--gradients", arguments->gradients, "folder for the gradients as .npy");
  command->add_option("--intermediates", arguments->intermediates,
                      "folder for typical samples, plans, B and Laplacians as .npy");
  command->add_flag("--json", arguments->json, "machine output on stdout");
  const auto apply_flags = add_option_flags(*command, alignment_option_set(arguments->alignment));
  command->callback([arguments, apply_flags] { run(*arguments, apply_flags); });
}

}  // namespace cfaa::tools
