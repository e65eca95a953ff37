// Runs as a page for a browser.

#include <cfaa/device/make_context.h>
#include <cfaa/io/atomic_file.h>
#include <cfaa/io/owned_output.h>
#include <cfaa/run/report/report.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "checks.h"
#include "module.h"
#include "watch.h"

namespace cfaa::python {
namespace nb = nanobind;
namespace {

void report(nb::handle listener, const std::vector<std::string>& runs, const std::string& out,
            const std::vector<std::string>& metrics, const std::string& domain,
            const std::string& data, int64_t users, int64_t top, bool force,
            const std::string& device, int threads) {
  check_domain(domain);
  check_between("users", users, 0, 2000);
  check_between("top", top, 1, 100);
  ReportRequest request;
  request.runs = runs;
  if (!metrics.empty()) request.metrics = metrics;
  request.domain = domain;
  request.data = data;
  request.users = users;
  request.list.top = top;
  check_output(out, kReportBeginning, force);
  watch(listener, [&](Watch&) {
    const auto context = make_context(device, {.threads = threads});
    AtomicFile file(out);
    file.write(report_page(make_report(*context, request)));
    file.commit();
  });
}

}  // namespace

void bind_report(nb::module_& module) {
  module.def("report", &report, nb::arg("listener").none(), nb::arg("runs"), nb::arg("out"),
             nb::arg("metrics"), nb::arg("domain"), nb::arg("data"), nb::arg("users"),
             nb::arg("top"), nb::arg("force"), nb::arg("device"), nb::arg("threads"));
}

}  // namespace cfaa::python
