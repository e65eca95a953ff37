// cfaa_gpu evaluate data/ --user-embeddings U.npy --item-embeddings V.npy: any model's scores under
// one protocol.

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "host/core/atomic_file.h"
#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/npy.h"
#include "host/data/dataset.h"
#include "host/eval/evaluation_config.h"
#include "host/ops/device.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  std::string data, users, items, scores, config, per_user, lists;
  std::string domain = "target", split = "test";
  DeviceFlags device;
  EvaluationConfig eval;
  bool json = false;
};

// Beyond this the product of two numbers, and so a score, may not be a double.
constexpr double kLargestElement = 1e150;

// A matrix of floats in a file, mapped where its elements can be used as they are.
class MatrixFile {
 public:
  explicit MatrixFile(const std::string& path) : file_(path) {
    if (file_.shape().size() != 2) {
      throw Error(fmt::format("{}: has {} dimension{}; a matrix is needed", path,
                              file_.shape().size(), file_.shape().size() == 1 ? "" : "s"));
    }
    if (!is_float(file_.dtype())) {
      throw Error(
          fmt::format("{}: holds {}; float16, float32 or float64 is needed: convert with "
                      "array.astype('float32')",
                      path, name_of(file_.dtype())));
    }
  }

  const std::string& path() const { return file_.path(); }
  int64_t rows() const { return file_.shape()[0]; }
  int64_t cols() const { return file_.shape()[1]; }
  bool is_double() const { return file_.dtype() == DType::f64; }

  // As T; valid as long as this object.
  template <class T>
  MatrixView<const T> view() {
    if (const T* mapped = file_.mapped<T>()) return {mapped, {rows(), cols()}};
    std::vector<T>& memory = std::get<std::vector<T>>(converted_);
    if (memory.empty()) memory = file_.read<T>();
    return {memory.data(), {rows(), cols()}};
  }

 private:
  NpyFile file_;
  std::tuple<std::vector<float>, std::vector<double>> converted_;
};

// Rows follow users.tsv or items.tsv; `what` is "user" or "item".
void check_count(const std::string& path, const char* axis, int64_t count, const Domain& domain,
                 const char* what) {
  const IdList& ids = what[0] == 'u' ? domain.users : domain.items;
  if (count == ids.size()) return;
  throw Error(
      fmt::format("{}: has {} {} where {}/{}s.tsv lists {} {}s; {} follow that file's order", path,
                  count, axis, domain.path.string(), what, ids.size(), what, axis));
}

template <class T>
void check_elements(const std::string& path, MatrixView<const T> matrix, const IdList& ids,
                    const char* what) {
  for (int64_t i = 0; i < matrix.size(); ++i) {
    const double value = matrix.data[i];
    const int64_t row = i / matrix.cols(), column = i % matrix.cols();
    if (std::isnan(value)) {
      throw Error(
          fmt::format("{}: row {} ({} '{}'), column {} is NaN; every score with this {} "
                      "would be",
                      path, row, what, ids[row], column, what));
    }
    if (std::isfinite(value) && std::abs(value) > kLargestElement) {
      throw Error(
          fmt::format("{}: row {} ({} '{}'), column {} is {:g}, so that scores overflow; "
                      "rescale the embeddings",
                      path, row, what, ids[row], column, value));
    }
  }
}

// The scorer and the files that it reads from.
class ScorerFiles {
 public:
  ScorerFiles(const Arguments& arguments, const Domain& domain) {
    const bool embeddings = !arguments.users.empty() && !arguments.items.empty();
    if (arguments.scores.empty() ? !embeddings
                                 : !arguments.users.empty() || !arguments.items.empty()) {
      throw Error(
          "give either --user-embeddings and --item-embeddings, or --scores: these are what is "
          "ranked");
    }
    if (arguments.scores.empty()) {
      open_embeddings(arguments, domain);
    } else {
      open_scores(arguments, domain);
    }
  }

  const Scorer& scorer() const { return *scorer_; }

 private:
  void open_embeddings(const Arguments& arguments, const Domain& domain) {
    MatrixFile& users = first_.emplace(arguments.users);
    MatrixFile& items = second_.emplace(arguments.items);
    check_count(users.path(), "rows", users.rows(), domain, "user");
    check_count(items.path(), "rows", items.rows(), domain, "item");
    if (users.cols() != items.cols() || users.cols() == 0) {
      throw Error(
          fmt::format("{}: has {} columns and {} has {}; users and items need the same "
                      "attributes, at least one",
                      users.path(), users.cols(), items.path(), items.cols()));
    }
    if (users.is_double() || items.is_double()) {
      use_embeddings<double>(domain);
    } else {
      use_embeddings<float>(domain);
    }
  }

  template <class T>
  void use_embeddings(const Domain& domain) {
    const auto users = first_->view<T>(), items = second_->view<T>();
    check_elements<T>(first_->path(), users, domain.users, "user");
    check_elements<T>(second_->path(), items, domain.items, "item");
    scorer_ = std::make_unique<DotScorer<T>>(users, items);
  }

  void open_scores(const Arguments& arguments, const Domain& domain) {
    MatrixFile& scores = first_.emplace(arguments.scores);
    check_count(scores.path(), "rows", scores.rows(), domain, "user");
    check_count(scores.path(), "columns", scores.cols(), domain, "item");
    if (scores.is_double()) {
      scorer_ = std::make_unique<MatrixScorer<double>>(scores.view<double>());
    } else {
      scorer_ = std::make_unique<MatrixScorer<float>>(scores.view<float>());
    }
  }

  std::optional<MatrixFile> first_, second_;
  std::unique_ptr<Scorer> scorer_;
};

std::string metric_key(std::size_t metric, int64_t k) {
  return fmt::format("{}@{}", kMetricNames[metric], k);
}

void add_metrics(json& fields, const std::vector<MetricsAt>& metrics) {
  for (const MetricsAt& at : metrics) {
    for (std::size_t m = 0; m < kMetrics; ++m) fields[metric_key(m, at.k)] = at.value[m];
  }
}

json part_fields(const Part& part) {
  json fields = {{"users", part.users}, {"positives", part.positives}};
  if (part.users > 0) add_metrics(fields, part.metrics);
  return fields;
}

std::vector<std::string> mask_names(Mask mask) {
  if (mask == Mask::none) return {};
  if (mask == Mask::train) return {"train"};
  return {"train", "valid"};
}

json report_fields(const Arguments& arguments, const Evaluation& evaluation,
                   const HeldOut& held_out, Mask mask) {
  json fields;
  fields["domain"] = arguments.domain;
  fields["split"] = arguments.split;
  fields["protocol"] = arguments.eval.candidates > 0 ? "sampled" : "full";
  if (arguments.eval.candidates > 0) {
    fields["candidates"] = arguments.eval.candidates;
    fields["candidate_seed"] = arguments.eval.candidate_seed;
  }
  fields["masked"] = mask_names(mask);
  fields["users"] = held_out.users();
  fields["items"] = held_out.items;
  fields["evaluated_users"] = evaluation.all.users;
  fields["skipped_users"] = evaluation.skipped_users;
  fields["positives"] = evaluation.all.positives;
  add_metrics(fields, evaluation.all.metrics);
  fields["cold_users"] = part_fields(evaluation.cold_users);
  fields["cold_items"] = part_fields(evaluation.cold_items);
  if (!evaluation.intervals.empty()) {
    fields["bootstrap"] = arguments.eval.bootstrap;
    for (std::size_t i = 0; i < evaluation.intervals.size(); ++i) {
      for (std::size_t m = 0; m <= kUserMetrics; ++m) {
        const Interval& interval = evaluation.intervals[i][m];
        fields["interval"][metric_key(m, evaluation.all.metrics[i].k)] = {interval.low,
                                                                          interval.high};
      }
    }
  }
  return fields;
}

void print_table(const Evaluation& evaluation) {
  fmt::print("\n{:<11}", "");
  for (const MetricsAt& at : evaluation.all.metrics) {
    fmt::print("{:<26}", fmt::format("@{}", at.k));
  }
  for (std::size_t m = 0; m < kMetrics; ++m) {
    fmt::print("\n{:<11}", kMetricNames[m]);
    for (std::size_t i = 0; i < evaluation.all.metrics.size(); ++i) {
      std::string cell = fmt::format("{:.4f}", evaluation.all.metrics[i].value[m]);
      if (m <= kUserMetrics && !evaluation.intervals.empty()) {
        const Interval& interval = evaluation.intervals[i][m];
        cell += fmt::format(" [{:.4f}, {:.4f}]", interval.low, interval.high);
      }
      fmt::print("{:<26}", cell);
    }
  }
  fmt::print("\n");
}

void print_part(const char* name, const Part& part) {
  if (part.users == 0) {
    fmt::print("{:<11} none held out\n", name);
    return;
  }
  const MetricsAt& at = part.metrics[part.metrics.size() / 2];
  fmt::print("{:<11} {} users, {} positives: HR@{} {:.4f}, Recall@{} {:.4f}, NDCG@{} {:.4f}\n",
             name, part.users, part.positives, at.k, at.value[0], at.k, at.value[1], at.k,
             at.value[2]);
}

void print_report(const json& fields, const Evaluation& evaluation) {
  const auto masked = fields["masked"].get<std::vector<std::string>>();
  fmt::print("{} domain, {} split: {} of {} users ranked over {} items, {} positives to find\n",
             fields["domain"].get<std::string>(), fields["split"].get<std::string>(),
             fields["evaluated_users"].get<int64_t>(), fields["users"].get<int64_t>(),
             fields["items"].get<int64_t>(), fields["positives"].get<int64_t>());
  fmt::print("{}; masked: {}; {} users without a held-out positive skipped\n",
             fields["protocol"] == "full" ? "full ranking"
                                          : fmt::format("sampled ranking over {} items a user",
                                                        fields["candidates"].get<int64_t>()),
             masked.empty() ? "nothing" : fmt::format("{}", fmt::join(masked, ", ")),
             fields["skipped_users"].get<int64_t>());
  print_table(evaluation);
  fmt::print("\n");
  print_part("cold users", evaluation.cold_users);
  print_part("cold items", evaluation.cold_items);
}

void write_per_user(const std::string& path, const UserMetrics& metrics, const Domain& domain) {
  AtomicFile file(path);
  std::string line = "user_id\tpositives";
  for (const int64_t k : metrics.ks) {
    for (std::size_t m = 0; m < kUserMetrics; ++m) line += "\t" + metric_key(m, k);
  }
  file.write(line + "\n");
  const std::size_t width = metrics.ks.size() * kUserMetrics;
  for (std::size_t u = 0; u < metrics.user.size(); ++u) {
    line = fmt::format("{}\t{}", domain.users[metrics.user[u]], metrics.positives[u]);
    for (std::size_t i = 0; i < width; ++i) {
      line += fmt::format("\t{}", metrics.value[u * width + i]);
    }
    file.write(line + "\n");
  }
  file.commit();
}

void write_lists(const std::string& path, const Lists& lists, const HeldOut& held_out,
                 const Domain& domain) {
  AtomicFile file(path);
  file.write("user_id\trank\titem_id\tscore\thit\n");
  for (std::size_t row = 0; row < lists.user.size(); ++row) {
    const int32_t user = lists.user[row];
    for (std::size_t i = 0; i < static_cast<std::size_t>(lists.k); ++i) {
      const std::size_t at = row * static_cast<std::size_t>(lists.k) + i;
      if (lists.item[at] < 0) break;
      file.write(fmt::format("{}\t{}\t{}\t{}\t{}\n", domain.users[user], i + 1,
                             domain.items[lists.item[at]], lists.score[at],
                             held_out.positives.contains(user, lists.item[at]) ? 1 : 0));
    }
  }
  file.commit();
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  OptionSet set = evaluation_option_set(arguments.eval);
  const json config = read_config(arguments.config);
  if (config.contains("eval")) set.read(config["eval"], arguments.config);
  apply_flags();
  const EvaluationOptions options = arguments.eval.options();
  const Split split = arguments.split == "test" ? Split::test : Split::valid;
  const auto context = arguments.device.make_context();

  auto start = std::chrono::steady_clock::now();
  const Domain domain = load_domain(arguments.data, arguments.domain);
  const ScorerFiles files(arguments, domain);
  const HeldOut held_out = make_held_out(domain, split, arguments.eval.mask);
  if (held_out.positives.item.empty()) {
    throw Error(
        fmt::format("{}: its {} split has no positive interaction, so that there is nothing "
                    "to measure",
                    domain.path.string(), arguments.split));
  }
  const double read_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  Evaluation evaluation;
  try {
    evaluation = evaluate(*context, files.scorer(), held_out, options);
  } catch (const NanScore& nan) {
    throw Error(fmt::format(
        "{}: the score of user '{}' (row {}) and item '{}' ({} {}) is NaN; a "
        "ranking needs numbers or infinities",
        arguments.scores.empty() ? arguments.users : arguments.scores, domain.users[nan.user],
        nan.user, domain.items[nan.item], arguments.scores.empty() ? "row" : "column", nan.item));
  }

  if (arguments.eval.candidates > 0) {
    log_warning(
        "sampled metrics are biased and may order models differently from the full ranking; "
        "compare them only with the same --candidates and --candidate-seed");
  }
  json fields = report_fields(arguments, evaluation, held_out, resolve(arguments.eval.mask, split));
  fields["device"] = device_label(*context);
  fields["seconds"] = {{"read", read_seconds}, {"evaluate", seconds_since(start)}};
  if (!arguments.per_user.empty()) write_per_user(arguments.per_user, evaluation.per_user, domain);
  if (!arguments.lists.empty()) write_lists(arguments.lists, evaluation.lists, held_out, domain);
  if (arguments.json) {
    print_json(fields);
  } else {
    print_report(fields, evaluation);
  }
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("evaluate", "ranks any model's scores and measures the lists");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("data", arguments->data, "directory that prepare made")->required();
  command->add_option("--user-embeddings", arguments->users,
                      ".npy of users x D, rows as in users.tsv");
  command->add_option("--item-embeddings", arguments->items,
                      ".npy of items x D, rows as in items.tsv");
  command->add_option("--scores", arguments->scores, ".npy of users x items, instead");
  command->add_option("--domain", arguments->domain, "target or source")
      ->capture_default_str()
      ->check(CLI::IsMember({"target", "source"}));
  command->add_option("--split", arguments->split, "test or valid")
      ->capture_default_str()
      ->check(CLI::IsMember({"test", "valid"}));
  command->add_option("--config", arguments->config, "configuration with an 'eval' section");
  command->add_option("--per-user", arguments->per_user, "file for each user's metrics (.tsv)");
  command->add_option("--lists", arguments->lists, "file for each user's list (.tsv)");
  command->add_flag("--json", arguments->json, "machine output on stdout");
  arguments->device.add_to(*command);
  const auto apply_flags = add_option_flags(*command, evaluation_option_set(arguments->eval));
  command->callback([arguments, apply_flags] { run(*arguments, apply_flags); });
}

}  // namespace cfaa::tools
