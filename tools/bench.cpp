// cfaa_gpu bench: the throughput of every op and building block on this device.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/cases.h"
#include "bench/report.h"
#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/terminal/quantity.h"
#include "host/device/make_context.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"
#include "host/io/owned_output.h"
#include "host/ops/alignment_config.h"
#include "tools/command.h"
#if CFAA_HAS_CUDA
#include "cuda/launch_log.h"
#endif

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  bench::Sizes sizes;
  bench::Plan plan;
  DeviceFlags device;
  std::string precision = "both", out, compare_file;
  std::vector<std::string> filter;
  double threshold = 0.1;
  bool quick = false, force = false, json = false;
};

bool wanted(const std::string& name, const std::vector<std::string>& filters) {
  if (filters.empty()) return true;
  for (const std::string& filter : filters) {
    if (name.find(filter) != std::string::npos) return true;
  }
  return false;
}

template <class T>
std::vector<bench::Case> all_cases(Context& context, const bench::Sizes& sizes) {
  std::vector<bench::Case> cases = bench::alignment_cases<T>(context, sizes);
  for (bench::Case& block : bench::block_cases<T>(context, sizes)) {
    cases.push_back(std::move(block));
  }
  for (bench::Case& training : bench::training_cases<T>(context, sizes)) {
    cases.push_back(std::move(training));
  }
  for (bench::Case& baseline : bench::baseline_cases<T>(context, sizes)) {
    cases.push_back(std::move(baseline));
  }
  if constexpr (std::is_same_v<T, float>) {
    for (bench::Case& step : bench::step_cases(context, sizes)) cases.push_back(std::move(step));
    for (bench::Case& ranking : bench::ranking_cases(context, sizes)) {
      cases.push_back(std::move(ranking));
    }
  }
  return cases;
}

// A wrong result is not timed.
void time_cases(Context& context, std::vector<bench::Case> cases, const std::string& precision,
                const Arguments& arguments, std::vector<bench::Result>& results) {
  for (bench::Case& entry : cases) {
    const bench::Case c = std::move(entry);  // its memory is given back before the next one's turn
    if (!wanted(c.name, arguments.filter)) continue;
    log_info(fmt::format("{} ({})", c.name, precision));
    const std::string wrong = c.validate();
    if (!wrong.empty()) {
      throw Error(fmt::format("bench {} ({}): the result is wrong, so it is not timed: {}", c.name,
                              precision, wrong));
    }
    results.push_back({c.name, c.detail, precision, c.work,
                       bench::measure(context, c.run, arguments.plan, c.back_to_back)});
    if (!c.parts) continue;
    for (const bench::Part& part : c.parts(arguments.plan)) {
      results.push_back({c.name + "/" + part.name, c.detail, precision, {}, part.timing});
    }
  }
}

// How the figures begin, by which a file of them is known again.
constexpr const char* kFiguresBeginning = "{\n  \"cases\": [";

json read_older(const std::string& path) {
  const json older = read_json(path);
  if (!older.is_object() || !older.contains("cases")) {
    throw Error(path + ": was not written by 'cfaa_gpu bench --out'");
  }
  return older;
}

#if CFAA_HAS_CUDA
json launched_kernels() {
  json kernels = json::array();
  for (const cuda::LaunchedKernel& kernel : cuda::launched_kernels()) {
    kernels.push_back({{"name", kernel.name},
                       {"registers", kernel.registers},
                       {"shared_bytes", kernel.shared_bytes},
                       {"threads", kernel.threads},
                       {"occupancy", kernel.occupancy}});
  }
  return kernels;
}
#endif

void print_kernels(const json& kernels) {
  fmt::print("\n{:<54} {:>9} {:>13} {:>7} {:>10}\n", "kernel", "registers", "shared bytes",
             "threads", "occupancy");
  for (const json& kernel : kernels) {
    fmt::print("{:<54} {:>9} {:>13} {:>7} {:>8.0f} %\n",
               kernel["name"].get<std::string>().substr(0, 54), kernel["registers"].get<int64_t>(),
               kernel["shared_bytes"].get<int64_t>(), kernel["threads"].get<int64_t>(),
               100 * kernel["occupancy"].get<double>());
  }
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  apply_flags();
  arguments.sizes.alignment.typical.k = arguments.sizes.k;
  if (arguments.quick) arguments.plan = {0.1, 3};
  if (arguments.json && !arguments.compare_file.empty()) {
    throw Error(
        "--json prints the figures and nothing else; with --compare write them to --out FILE");
  }
  if (!arguments.out.empty()) check_output(arguments.out, kFiguresBeginning, arguments.force);
  json older;
  if (!arguments.compare_file.empty()) older = read_older(arguments.compare_file);

  const auto context = arguments.device.make_context();
#if CFAA_HAS_CUDA
  cuda::watch_launches();
#endif
  std::vector<bench::Result> results;
  if (arguments.precision != "double") {
    time_cases(*context, all_cases<float>(*context, arguments.sizes), "float", arguments, results);
  }
  if (arguments.precision != "float") {
    time_cases(*context, all_cases<double>(*context, arguments.sizes), "double", arguments,
               results);
  }
  if (results.empty()) {
    throw Error(fmt::format("--filter {}: no case has such a name; without the flag all are shown",
                            fmt::join(arguments.filter, ",")));
  }
  const bench::Peaks peaks = bench::measure_peaks(*context, {arguments.quick ? 0.1 : 0.5, 3});

  json newer = bench::to_json(results, peaks);
  newer["device"] = device_label(*context);
  newer["threads"] = context->threads().threads();
  newer["scratch_bytes"] = context->scratch().peak_bytes();
#if CFAA_HAS_CUDA
  if (context->device() == DeviceKind::cuda) newer["kernels"] = launched_kernels();
#endif
  if (!arguments.out.empty()) write_file(arguments.out, newer.dump(2) + "\n");
  if (arguments.json) {
    print_json(newer);
    return;
  }
  fmt::print("{} ({}), {}; scratch at most {:.1f} MiB\n", device_label(*context),
             context->runtime().description(), counted(context->threads().threads(), "thread"),
             static_cast<double>(context->scratch().peak_bytes()) / (1 << 20));
  bench::print_table(results, peaks);
  if (newer.contains("kernels")) print_kernels(newer["kernels"]);
  if (!older.is_null() && bench::print_comparison(older, newer, arguments.threshold) > 0) {
    throw CLI::RuntimeError(1);
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "bench", "throughput of every op on this device, each validated before it is timed");
  auto arguments = std::make_shared<Arguments>();
  arguments->device.add_to(*command);
  command->add_option("--n", arguments->sizes.n, "rows of each embedding set")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 20));
  command->add_option("--d", arguments->sizes.d, "attributes")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 14));
  command->add_option("--k", arguments->sizes.k, "typical samples per attribute")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 14));
  command->add_option("--precision", arguments->precision, "float, double or both")
      ->capture_default_str()
      ->check(CLI::IsMember({"float", "double", "both"}));
  command->add_option("--filter", arguments->filter, "only names with one of these parts")
      ->delimiter(',');
  command->add_option("--seconds", arguments->plan.seconds, "at least, per case")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--quick", arguments->quick, "a tenth of a second per case");
  command->add_option("--out", arguments->out, "file for the figures, JSON");
  command->add_flag("--force", arguments->force, "replace an --out that bench did not write");
  command->add_flag("--json", arguments->json, "machine output on stdout: the figures");
  command->add_option("--compare", arguments->compare_file,
                      "figures of an earlier run; exit code 1 where this one is slower");
  command->add_option("--threshold", arguments->threshold, "slowdown that --compare tolerates")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  OptionSet set = alignment_option_set(arguments->sizes.alignment);
  const auto apply_flags = add_option_flags(*command, set, {"k"});
  command->callback([arguments, apply_flags] { run(*arguments, apply_flags); });
}

}  // namespace cfaa::tools
