// cfaa_gpu report runs... --out report.html: what there is to see of runs, as one page.

#include "host/run/report/report.h"

#include <fmt/format.h>

#include "host/core/terminal/quantity.h"
#include "host/io/atomic_file.h"
#include "host/io/owned_output.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

struct Arguments {
  ReportRequest request;
  std::string out = "report.html";
  bool force = false;
  DeviceFlags device;
};

void run(const Arguments& arguments) {
  check_output(arguments.out, kReportBeginning, arguments.force);
  const auto context = arguments.device.make_context();
  const Report report = make_report(*context, arguments.request);
  AtomicFile file(arguments.out);
  const std::string page = report_page(report);
  file.write(page);
  file.commit();
  if (arguments.out == "-") return;
  print_line(fmt::format("{}: {}, {} of {}, {}B; open it in a browser", arguments.out,
                         counted(std::ssize(report.comparison.rows), "run"),
                         counted(std::ssize(report.users), "list"),
                         counted(report.users_to_choose_from, "user"),
                         short_number(static_cast<double>(page.size()))),
             stderr);
}

}  // namespace

void add_report(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "report", "runs as a page for a browser: comparison, curves, embeddings, lists");
  add_comparison_flags(*command, arguments->request.runs, arguments->request.metrics,
                       arguments->request.domain);
  command->add_option("--out", arguments->out, "the page, one HTML file; '-': stdout")
      ->capture_default_str();
  command->add_option("--sweep", arguments->request.sweep,
                      "a folder of runs that differ in the weight of a loss");
  command->add_option("--users", arguments->request.users, "whose lists are shown, at most")
      ->check(CLI::Range(0, 2000))
      ->capture_default_str();
  command->add_option("--top", arguments->request.list.top, "length of a list")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--data", arguments->request.data, "where the runs' data is now");
  command->add_flag("--force", arguments->force, "replace an --out that report did not write");
  arguments->device.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
