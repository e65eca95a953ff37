#include "host/data/prepare.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/data/keyed_draw.h"
#include "host/data/output_file.h"
#include "host/data/review_format.h"
#include "host/data/staged_directory.h"
#include "host/data/write_domain.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr const char* kReportName = "prepare.json";
constexpr int kFormatVersion = 1;  // of the directory; docs/data_format.md

json to_json(const Counts& counts) {
  return {{"interactions", counts.interactions}, {"users", counts.users}, {"items", counts.items}};
}

json to_json(const ReadReport& report) {
  json files = json::array();
  for (const FileReport& file : report.files) {
    const Compression c = file.identity.compression;
    files.push_back({{"file", file.identity.name},
                     {"bytes", file.identity.size},
                     {"xxh3_128", file.identity.xxh3_128},
                     {"compression", c == Compression::gzip   ? "gzip"
                                     : c == Compression::zstd ? "zstd"
                                                              : "none"},
                     {"format", file.format},
                     {"columns", file.columns},
                     {"lines", file.lines},
                     {"interactions", file.interactions}});
  }
  json bad = json::array();
  for (const BadLine& line : report.bad) {
    bad.push_back({{"file", line.file}, {"line", line.line}, {"reason", line.reason}});
  }
  return {{"files", std::move(files)},
          {"bad_lines", std::move(bad)},
          {"without_text", report.without_text},
          {"without_time", report.without_time}};
}

// Text that no step can bring to an output file is not kept in memory: of the target's negatives,
// and of interactions whose draws say that they will be dropped or held out.
NeedsText text_need(const std::string& domain, const PrepareOptions& o) {
  const bool target = domain == "target";
  const bool positives_only = target && o.target_negatives == TargetNegatives::drop;
  const double keep = target ? o.target_keep : 1;
  const double train = o.split == SplitRule::ratio ? parse_split_ratio(o.split_ratio).train : 1;
  const KeyedDraw keep_draw("keep", domain, o.seed), split_draw("split", domain, o.seed);
  return [=](const RawReview& review) {
    if (positives_only && !is_positive(static_cast<float>(review.rating), o.positive)) return false;
    const bool held_out = train < 1 && split_draw.uniform(review.user, review.item) >= train;
    if (held_out && !o.keep_heldout_text) return false;
    const bool may_go = keep < 1 && (o.target_keep_from == KeepFrom::all ||
                                     (o.split == SplitRule::ratio && !held_out));
    return !may_go || keep_draw.uniform(review.user, review.item) < keep;
  };
}

// Runs the steps and keeps their counts.
class Steps {
 public:
  Steps(const PrepareRequest& request, const PrepareEvents& events, Interactions source,
        Interactions target)
      : options_(request.options), events_(events) {
    source_ = {"source", std::move(source), {}, options_.positive};
    target_ = {"target", std::move(target), {}, options_.positive};
  }

  void run() {
    const PrepareOptions& o = options_;
    for (PreparedDomain* domain : both()) {
      step("duplicates", *domain,
           [&] { remove_duplicates(domain->interactions, o.duplicates, domain->name); });
    }
    step("core", source_,
         [&] { keep_core(source_.interactions, parse_core(o.source_core, "source_core")); });
    step("core", target_,
         [&] { keep_core(target_.interactions, parse_core(o.target_core, "target_core")); });
    const Counts source_before = count(source_.interactions);
    const Counts target_before = count(target_.interactions);
    overlap_ = resolve_overlap(source_.interactions, target_.interactions, o.overlap);
    note("overlap", source_, source_before);
    note("overlap", target_, target_before);
    for (PreparedDomain* domain : both()) count_positives(*domain);
    step("negatives", target_, [&] {
      if (o.target_negatives == TargetNegatives::drop) {
        drop_negatives(target_.interactions, o.positive);
      }
    });
    if (o.target_keep_from == KeepFrom::all) {
      step("sparsify", target_,
           [&] { keep_share(target_.interactions, "target", o.target_keep, o.seed); });
    }
    const SplitShares shares = parse_split_ratio(o.split_ratio);
    for (PreparedDomain* domain : both()) {
      domain->splits = split(domain->interactions, domain->name, o.split, shares, o.seed);
    }
    if (o.target_keep_from == KeepFrom::train) {
      step("sparsify", target_, [&] {
        thin_training(target_.interactions, target_.splits, "target", o.target_keep, o.seed);
      });
    }
    for (PreparedDomain* domain : both()) {
      if (domain->interactions.rows.empty()) {
        throw Error(
            fmt::format("no interaction of the {} is left; lower --{}-core or --positive, "
                        "or look at --overlap",
                        domain->name, domain->name));
      }
    }
  }

  std::vector<PreparedDomain*> both() { return {&source_, &target_}; }

  json report() const {
    json result = {{"steps", steps_},
                   {"positives", positives_},
                   {"overlap", {{"users", overlap_.users}, {"items", overlap_.items}}}};
    for (const PreparedDomain* domain : {&source_, &target_}) {
      json counts = to_json(count(domain->interactions));
      for (const Split s : {Split::train, Split::valid, Split::test}) {
        counts[s == Split::train   ? "train"
               : s == Split::valid ? "valid"
                                   : "test"] =
            std::count(domain->splits.begin(), domain->splits.end(), s);
      }
      result["result"][domain->name] = std::move(counts);
    }
    return result;
  }

 private:
  template <class Work>
  void step(const std::string& name, PreparedDomain& domain, const Work& work) {
    const Counts before = count(domain.interactions);
    work();
    note(name, domain, before);
  }

  void note(const std::string& name, const PreparedDomain& domain, const Counts& before) {
    const StepReport report{name, domain.name, before, count(domain.interactions)};
    steps_.push_back({{"step", name},
                      {"domain", domain.name},
                      {"before", to_json(report.before)},
                      {"after", to_json(report.after)}});
    if (events_.step) events_.step(report);
  }

  void count_positives(const PreparedDomain& domain) {
    int64_t positives = 0;
    for (const Interaction& row : domain.interactions.rows) {
      positives += is_positive(row.rating, options_.positive);
    }
    positives_[domain.name] = positives;
  }

  const PrepareOptions& options_;
  const PrepareEvents& events_;
  PreparedDomain source_, target_;
  json steps_ = json::array(), positives_;
  OverlapCounts overlap_;
};

}  // namespace

json prepare(const PrepareRequest& request, ThreadPool& pool, const PrepareEvents& events) {
  PrepareOptions options = request.options;
  // What does not read is said before the first byte of input.
  parse_core(options.source_core, "source_core");
  parse_core(options.target_core, "target_core");
  parse_split_ratio(options.split_ratio);
  parse_columns(options.columns);
  parse_rating_scale(options.rating_scale);
  StagedDirectory directory(request.out, request.force, kReportName);

  json report = {{"format", kFormatVersion},
                 {"version", CFAA_VERSION},
                 {"seed", options.seed},
                 {"options", prepare_option_set(options).current()}};
  int64_t tolerated = options.skip_bad;
  const auto read = [&](const std::string& domain, const std::vector<std::string>& paths) {
    ReadReport read_report;
    Interactions interactions = read_reviews(
        paths, options, tolerated, pool, read_report,
        [&](uint64_t bytes) {
          if (events.reading) events.reading(domain, bytes);
        },
        text_need(domain, options));
    tolerated -= static_cast<int64_t>(read_report.bad.size());
    report["inputs"][domain] = to_json(read_report);
    if (events.read) events.read(domain, read_report);
    return interactions;
  };
  Interactions source = read("source", request.source);
  Interactions target = read("target", request.target);
  Steps steps(request, events, std::move(source), std::move(target));
  steps.run();
  report.update(steps.report());
  const auto domains = steps.both();
  write_domains(directory.path(), {domains.begin(), domains.end()}, options.keep_heldout_text,
                pool);
  OutputFile file(directory.path() / kReportName);
  file.write(report.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  file.close();
  directory.commit();
  return report;
}

}  // namespace cfaa
