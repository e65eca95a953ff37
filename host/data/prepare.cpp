#include "host/data/prepare.h"

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/version.h"
#include "host/data/dataset.h"
#include "host/data/held_out_users.h"
#include "host/data/item_titles.h"
#include "host/data/keyed_draw.h"
#include "host/data/readers/review_format.h"
#include "host/data/write_domain.h"
#include "host/io/json_file.h"
#include "host/io/output_file.h"
#include "host/io/staged_directory.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr const char* kReportName = "prepare.json";
constexpr int kFormatVersion = 1;  // of the directory; docs/data_format.md

json to_json(const Counts& counts) {
  return {{"interactions", counts.interactions}, {"users", counts.users}, {"items", counts.items}};
}

json to_json(const std::vector<FileReport>& reports) {
  json files = json::array();
  for (const FileReport& file : reports) {
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
  return files;
}

json to_json(const ReadReport& report) {
  json bad = json::array();
  for (const BadLine& line : report.bad) {
    bad.push_back({{"file", line.file}, {"line", line.line}, {"reason", line.reason}});
  }
  json all = {{"files", to_json(report.files)},
              {"bad_lines", std::move(bad)},
              {"without_text", report.without_text},
              {"without_time", report.without_time}};
  if (!report.title_files.empty()) {
    all["titles"] = to_json(report.title_files);
    for (json& file : all["titles"]) file.erase("interactions");
  }
  return all;
}

// Text that no step can bring to an output file is not kept in memory: of the target's negatives,
// and of interactions whose draws say that they will be dropped or held out.
NeedsText text_need(const std::string& domain, const PrepareOptions& o) {
  const bool target = domain == "target";
  const bool positives_only = target && o.target_negatives == TargetNegatives::drop;
  const double keep = target ? o.target_keep : 1;
  const double train = o.split == SplitRule::ratio ? parse_split_ratio(o.split_ratio).train : 1;
  const double labels = target && !o.keep_reviews ? o.target_labels : 1;
  const KeyedDraw keep_draw("keep", domain, o.seed), split_draw("split", domain, o.seed);
  const KeyedDraw label_draw = labels_draw(domain, o.labels_draw, o.seed);
  const HeldOutUsersDraw newcomer(target ? o.hold_out_users : 0, o.seed);
  return [=](const RawReview& review) {
    if (positives_only && !is_positive(static_cast<float>(review.rating), o.positive)) return false;
    const bool held_out = train < 1 && split_draw.uniform(review.user, review.item) >= train;
    if (held_out && !o.keep_heldout_text) return false;
    const bool in_training = o.split == SplitRule::ratio && !held_out;
    if (labels < 1 && in_training && !newcomer(review.user) &&
        label_draw.uniform(review.user, review.item) >= labels) {
      return false;
    }
    return keep >= 1 || keep_draw.uniform(review.user, review.item) < keep;
  };
}

// Items with rows and a title.
int64_t titled_items(const Interactions& domain) {
  std::vector<char> titled(domain.items.size(), 0);
  if (domain.titles.empty()) return 0;
  for (const Interaction& row : domain.rows) titled[row.item] = !domain.titles[row.item].empty();
  return std::count(titled.begin(), titled.end(), 1);
}

// Runs the steps and keeps their counts.
class Steps {
 public:
  Steps(const PrepareRequest& request, const PrepareEvents& events, ThreadPool& pool,
        Interactions source, Interactions target)
      : options_(request.options), events_(events), pool_(pool) {
    domains_[0] = {"source", std::move(source), {}, {}, false, options_.positive};
    domains_[1] = {"target", std::move(target), {}, {}, options_.keep_reviews, options_.positive};
  }

  void run() {
    const PrepareOptions& o = options_;
    const CoreMinima minima[2] = {parse_core(o.source_core, "source_core"),
                                  parse_core(o.target_core, "target_core")};
    Counts read[2], distinct[2], core[2];
    in_both([&](PreparedDomain& domain, int d) {
      read[d] = count(domain.interactions);
      remove_duplicates(domain.interactions, o.duplicates, domain.name);
      distinct[d] = count(domain.interactions);
      keep_core(domain.interactions, minima[d]);
      core[d] = count(domain.interactions);
    });
    for (const int d : {0, 1}) note("duplicates", d, read[d], distinct[d]);
    for (const int d : {0, 1}) note("core", d, distinct[d], core[d]);
    overlap_ = resolve_overlap(domains_[0].interactions, domains_[1].interactions, o.overlap);
    for (const int d : {0, 1}) note("overlap", d, core[d], count(domains_[d].interactions));
    for (const PreparedDomain& domain : domains_) count_positives(domain);
    PreparedDomain& target = domains_[1];
    in_target("negatives", [&] {
      if (o.target_negatives == TargetNegatives::drop) {
        drop_negatives(target.interactions, o.positive);
      }
    });
    in_target("sparsify",
              [&] { keep_share(target.interactions, "target", o.target_keep, o.seed); });
    const SplitShares shares = parse_split_ratio(o.split_ratio);
    in_both([&](PreparedDomain& domain, int) {
      domain.splits = split(domain.interactions, domain.name, o.split, shares, o.seed);
    });
    if (o.hold_out_users > 0) {
      in_target("newcomers", [&] {
        held_out_ = take_held_out_users(target.interactions, target.splits,
                                        HeldOutUsersDraw(o.hold_out_users, o.seed));
      });
    }
    if (o.target_labels < 1) {
      target.labelled = draw_labels(target.interactions, target.splits, "target", o.target_labels,
                                    o.labels_draw, o.seed);
      note("labels", 1, count(target.interactions), labelled(target));
    }
    for (const PreparedDomain& domain : domains_) {
      if (domain.interactions.rows.empty()) {
        throw Error(fmt::format(
            "no interaction of the {} is left; lower --{}-core or --positive, "
            "or look at --overlap{}",
            domain.name, domain.name, o.hold_out_users > 0 ? " and --hold-out-users" : ""));
      }
    }
  }

  // What has a label.
  static Counts labelled(const PreparedDomain& domain) {
    Interactions rows;
    rows.users = domain.interactions.users;
    rows.items = domain.interactions.items;
    for (std::size_t r = 0; r < domain.labelled.size(); ++r) {
      if (domain.labelled[r] != 0) rows.rows.push_back(domain.interactions.rows[r]);
    }
    return count(rows);
  }

  // Of the users that were held out, where any were to be.
  void write_newcomers(const std::filesystem::path& directory) const {
    if (options_.hold_out_users == 0) return;
    write_held_out_users(directory, domains_[1].interactions, held_out_, options_.positive);
  }

  std::vector<const PreparedDomain*> domains() const { return {&domains_[0], &domains_[1]}; }

  json report() const {
    json result = {{"steps", steps_},
                   {"positives", positives_},
                   {"overlap", {{"users", overlap_.users}, {"items", overlap_.items}}}};
    for (const PreparedDomain& domain : domains_) {
      json counts = to_json(count(domain.interactions));
      if (const int64_t titled = titled_items(domain.interactions); titled > 0) {
        counts["items_with_title"] = titled;
      }
      for (const Split s : {Split::train, Split::valid, Split::test}) {
        counts[split_name(s)] = std::count(domain.splits.begin(), domain.splits.end(), s);
      }
      result["result"][domain.name] = std::move(counts);
    }
    return result;
  }

 private:
  // Runs work(domain, 0 or 1) for both domains at once; where both fail, the source is told of.
  template <class Work>
  void in_both(const Work& work) {
    std::exception_ptr failures[2];
    pool_.parallel_for(2, 1, [&](int64_t d, int64_t, int) {
      try {
        work(domains_[d], static_cast<int>(d));
      } catch (...) {
        failures[d] = std::current_exception();
      }
    });
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  template <class Work>
  void in_target(const std::string& name, const Work& work) {
    const Counts before = count(domains_[1].interactions);
    work();
    note(name, 1, before, count(domains_[1].interactions));
  }

  void note(const std::string& name, int domain, const Counts& before, const Counts& after) {
    const PrepareStep report{name, domains_[domain].name, before, after};
    steps_.push_back({{"step", name},
                      {"domain", report.domain},
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
  ThreadPool& pool_;
  PreparedDomain domains_[2];  // source, target
  json steps_ = json::array(), positives_;
  OverlapCounts overlap_;
  HeldOutUsers held_out_;
};

}  // namespace

json prepare(const PrepareRequest& request, ThreadPool& pool, const PrepareEvents& events) {
  PrepareOptions options = request.options;
  // What does not read is said before the first byte of input.
  parse_core(options.source_core, "source_core");
  parse_core(options.target_core, "target_core");
  parse_split_ratio(options.split_ratio);
  columns_of(options, "source");
  columns_of(options, "target");
  parse_rating_scale(options.rating_scale);
  std::vector<std::string> inputs;
  for (const auto* files :
       {&request.source, &request.target, &request.source_titles, &request.target_titles}) {
    inputs.insert(inputs.end(), files->begin(), files->end());
  }
  StagedDirectory directory(request.out, request.force,
                            {"prepare or embed", kReportName, is_prepared_file}, inputs);

  json report = {{"format", kFormatVersion},
                 {"version", version()},
                 {"seed", options.seed},
                 {"options", prepare_option_set(options).current()}};
  int64_t tolerated = options.skip_bad;
  const auto spool = std::make_shared<Spool>(directory.path(), request.memory);
  const auto read = [&](const std::string& domain, const std::vector<std::string>& paths,
                        const std::vector<std::string>& titles) {
    ReadReport read_report;
    ReadRequest reading;
    reading.paths = paths;
    reading.columns = columns_of(options, domain);
    reading.tolerated = tolerated;
    reading.needs_text = text_need(domain, options);
    reading.spool = spool;
    reading.progress = [&](uint64_t bytes) {
      if (events.reading) events.reading(domain, bytes);
    };
    Interactions interactions = read_reviews(reading, options, pool, read_report);
    read_item_titles(titles, options, tolerated, interactions, read_report);
    tolerated -= static_cast<int64_t>(read_report.bad.size());
    report["inputs"][domain] = to_json(read_report);
    if (events.read) events.read(domain, read_report);
    return interactions;
  };
  Interactions source = read("source", request.source, request.source_titles);
  Interactions target = read("target", request.target, request.target_titles);
  Steps steps(request, events, pool, std::move(source), std::move(target));
  steps.run();
  report.update(steps.report());
  write_domains(directory.path(), steps.domains(), options.keep_heldout_text, pool);
  steps.write_newcomers(directory.path());
  for (const PreparedDomain* domain : steps.domains()) {
    for (const auto& input : domain->interactions.inputs) input->check_unchanged();
  }
  OutputFile file(directory.path() / kReportName);
  file.write(report.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  file.close();
  directory.commit();
  return report;
}

PrepareOptions read_prepare_options(const std::filesystem::path& directory) {
  PrepareOptions options;
  const std::filesystem::path path = directory / kReportName;
  if (!std::filesystem::exists(path)) return options;
  const json report = read_json_object(path);
  if (report.contains("options")) {
    prepare_option_set(options).read(report["options"], path.string());
  }
  return options;
}

}  // namespace cfaa
