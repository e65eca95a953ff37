// cfaa_gpu discrepancy zs.npy zt.npy, or run/: how far apart two embedding sets are, by both
// alignment losses and by a classifier that tells them apart.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/eval/proxy_distance.h"
#include "host/io/json_file.h"
#include "host/io/npy.h"
#include "host/ops/alignment_config.h"
#include "host/run/run.h"
#include "host/train/permutation.h"
#include "tools/command.h"
#include "tools/discrepancy_report.h"
#include "tools/embedding_comparison.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  ComparisonOptions comparison;  // its source is a file, or a run
  std::string data, config;
  int64_t rows = 2048;  // of a run's set that the losses compare
  DeviceFlags device;
  bool json = false;
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
  const json any = read_json(path);
  if (any.is_object() && any.contains("parameters")) {
    set.read(any["parameters"], path, {"name"});
    return;
  }
  const json config = read_config(path);
  if (config.contains("alignment")) set.read(config["alignment"], path);
}

template <class T>
ComparisonReport compare_files(const ComparisonOptions& options, Context& context) {
  const Stopwatch reading;
  Tensor<T, 2> source = read_embeddings<T>(context, options.source);
  Tensor<T, 2> target = read_embeddings<T>(context, options.target);
  const double seconds = reading.seconds();
  ComparisonReport report =
      compare_embeddings<T>(context, options, std::move(source), std::move(target));
  report.fields["seconds"]["read"] = seconds;
  return report;
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
  json fields = {{"run", arguments.comparison.source}};
  for (const std::size_t side : {kUser, kItem}) {
    const MatrixView<const float> source = embeddings[kSource].view(side),
                                  target = embeddings[kTarget].view(side);
    const char* name = side == kUser ? "users" : "items";
    fields[name] =
        compare_embeddings<T>(context, arguments.comparison,
                              some_rows<T>(context, source, arguments.rows, 2 * side),
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

// The settings of the run, then those of --config and of the flags.
void run_on_run(Arguments& arguments, const std::function<void()>& apply_flags) {
  for (const std::string* folder :
       {&arguments.comparison.gradients, &arguments.comparison.intermediates}) {
    if (folder->empty()) continue;
    throw Error(
        fmt::format("{}: is a run, which has two pairs of sets; for --gradients and "
                    "--intermediates export it, and give two of its files",
                    arguments.comparison.source));
  }
  const auto context = arguments.device.make_context();
  Run trained(*context, arguments.comparison.source, arguments.data);
  arguments.comparison.alignment = trained.config().alignment;
  OptionSet set = alignment_option_set(arguments.comparison.alignment);
  read_alignment(arguments.config, set);
  apply_flags();
  const json fields = arguments.comparison.precision == "double"
                          ? compare_run<double>(arguments, *context, trained)
                          : compare_run<float>(arguments, *context, trained);
  if (arguments.json) {
    print_json(fields);
  } else {
    print_run_comparison(fields);
  }
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  if (is_run(arguments.comparison.source)) {
    if (!arguments.comparison.target.empty()) {
      throw Error(fmt::format("{}: is a run, which has both domains; '{}' is one argument too many",
                              arguments.comparison.source, arguments.comparison.target));
    }
    run_on_run(arguments, apply_flags);
    return;
  }
  if (arguments.comparison.target.empty()) {
    throw Error(
        fmt::format("{}: is not a run; give two .npy files, source and target, or the "
                    "directory that train wrote",
                    arguments.comparison.source));
  }
  OptionSet set = alignment_option_set(arguments.comparison.alignment);
  read_alignment(arguments.config, set);
  apply_flags();
  const auto context = arguments.device.make_context();
  const ComparisonReport report = arguments.comparison.precision == "double"
                                      ? compare_files<double>(arguments.comparison, *context)
                                      : compare_files<float>(arguments.comparison, *context);
  if (arguments.json) {
    print_json(report.fields);
  } else {
    print_comparison(report);
  }
}

}  // namespace

void add_discrepancy(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "discrepancy", "how far apart two embedding sets, or the domains of a run, are");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("source", arguments->comparison.source,
                   "source embeddings, .npy of N x D; or a run")
      ->required();
  command->add_option("target", arguments->comparison.target, "target embeddings, .npy of N x D");
  command->add_option("--data", arguments->data, "where the run's data is now");
  command
      ->add_option("--rows", arguments->rows,
                   "of a run: rows of each set that the losses compare; 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--config", arguments->config, "configuration with an 'alignment' section");
  arguments->device.add_to(*command);
  command->add_option("--precision", arguments->comparison.precision, "float or double")
      ->capture_default_str()
      ->check(CLI::IsMember({"float", "double"}));
  command->add_option("--loss", arguments->comparison.loss, "vertical, horizontal or both")
      ->capture_default_str()
      ->check(CLI::IsMember({"vertical", "horizontal", "both"}));
  command->add_option("--gradients", arguments->comparison.gradients,
                      "folder for the gradients as .npy");
  command->add_option("--intermediates", arguments->comparison.intermediates,
                      "folder for typical samples, plans, B and Laplacians as .npy");
  command->add_flag("--json", arguments->json, "machine output on stdout");
  const auto apply_flags =
      add_option_flags(*command, alignment_option_set(arguments->comparison.alignment));
  command->callback([arguments, apply_flags] { run(*arguments, apply_flags); });
}

}  // namespace cfaa::tools
