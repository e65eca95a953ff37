// Raw reviews to a prepared directory, and their texts to vectors.

#include <cfaa/core/error.h>
#include <cfaa/data/dataset.h>
#include <cfaa/data/prepare.h>
#include <cfaa/device/make_context.h>
#include <cfaa/embed/known_reviews.h>
#include <cfaa/embed/model.h>
#include <cfaa/embed/reviews.h>
#include <cfaa/run/configuration.h>
#include <cfaa/run/directory/directory_kind.h>
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "module.h"
#include "watch.h"

namespace cfaa::python {
namespace nb = nanobind;
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

// Thrown by prepare's events to leave; never seen, since watch() throws what asked for it.
struct Stopped : std::exception {};

json counts_of(const Counts& counts) {
  return {{"interactions", counts.interactions}, {"users", counts.users}, {"items", counts.items}};
}

std::string prepare_data(nb::handle listener, const Strings& source, const Strings& target,
                         const Strings& source_titles, const Strings& target_titles,
                         const std::string& out, bool force, const std::string& config,
                         int threads) {
  Configuration configuration;
  configuration.read_text(config, "prepare");
  PrepareRequest request{source, target, source_titles,        target_titles,
                         out,    force,  configuration.prepare};
  std::string report;
  watch(listener, [&](Watch& told) {
    ThreadPool pool(threads);
    PrepareEvents events;
    events.reading = [&](const std::string&, uint64_t) {
      if (told.stop()) throw Stopped();
    };
    events.read = [&](const std::string&, const ReadReport& read) {
      for (const BadLine& line : read.bad) {
        told.tell("warning", fmt::format("{}:{}: {}; left out", line.file, line.line, line.reason));
      }
    };
    events.step = [&](const PrepareStep& step) {
      if (told.stop()) throw Stopped();
      told.tell("step", json{{"step", step.step},
                             {"domain", step.domain},
                             {"before", counts_of(step.before)},
                             {"after", counts_of(step.after)}}
                            .dump());
    };
    report = prepare(request, pool, events).dump();
  });
  return report;
}

json report_of(const EmbedReport& report) {
  const EmbedCounts& counts = report.counts;
  return {{"rows", report.rows},
          {"width", report.width},
          {"documents", counts.documents},
          {"sentences", counts.sentences},
          {"tokens", counts.tokens},
          {"cut", counts.cut},
          {"empty", counts.empty},
          {"replaced", counts.replaced},
          {"resumed_at", report.resumed_at},
          {"reused", report.reused},
          {"was_there", report.was_there},
          {"seconds", report.seconds}};
}

std::string embed_data(nb::handle listener, const std::string& data, const std::string& config,
                       bool fresh, bool force, const std::string& device, int threads) {
  Configuration configuration;
  configuration.read_text(config, "embed");
  ReviewsRequest request;
  request.options = configuration.embed;
  request.threads = threads;
  request.fresh = fresh;
  request.force = force;
  require_prepared(data);
  json all = json::object();
  watch(listener, [&](Watch& told) {
    request.stop = &told.stop();
    if (!fresh) request.reuse = embedded_beside(data);
    const Dataset dataset = load_dataset(data);
    const auto context = make_context(device, {.threads = threads});
    LoadedModel loaded(request.options, *context);
    for (const Domain* domain : {&dataset.source, &dataset.target}) {
      const EmbedReport report = embed_reviews(*domain, request, loaded.model());
      if (report.stopped) return;
      all[domain->name] = report_of(report);
    }
  });
  return all.dump();
}

// Raw ids of a domain's users or items, in the order of every matrix.
Strings ids(const std::string& data, const std::string& domain, const std::string& side) {
  const Domain loaded = load_domain(data, domain);
  const IdList& list = side == "user" ? loaded.users : loaded.items;
  Strings all;
  for (int64_t i = 0; i < list.size(); ++i) all.emplace_back(list[i]);
  return all;
}

}  // namespace

void bind_data(nb::module_& module) {
  module.def("prepare", &prepare_data, nb::arg("listener").none(), nb::arg("source"),
             nb::arg("target"), nb::arg("source_titles"), nb::arg("target_titles"), nb::arg("out"),
             nb::arg("force"), nb::arg("config"), nb::arg("threads"));
  module.def("embed", &embed_data, nb::arg("listener").none(), nb::arg("data"), nb::arg("config"),
             nb::arg("fresh"), nb::arg("force"), nb::arg("device"), nb::arg("threads"));
  module.def(
      "require_prepared", [](const std::string& path) { require_prepared(path); }, nb::arg("path"));
  module.def("ids", &ids, nb::arg("data"), nb::arg("domain"), nb::arg("side"));
}

}  // namespace cfaa::python
