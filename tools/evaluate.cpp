// cfaa_gpu evaluate run/, or data/ --user-embeddings U.npy --item-embeddings V.npy: a trained run's
// lists, or any model's scores, under one protocol.

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "host/core/error.h"
#include "host/io/npy.h"
#include "host/run/run.h"
#include "tools/evaluation_report.h"

namespace cfaa::tools {
namespace {

struct Arguments {
  std::string place;  // a run, or data
  std::string users, items, scores, data;
  DeviceFlags device;
  EvaluationFlags evaluation;
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

// A run's best parameters, ranked.
void evaluate_run(Arguments& arguments, const std::function<void()>& apply_flags) {
  if (!arguments.users.empty() || !arguments.items.empty() || !arguments.scores.empty()) {
    throw Error(
        fmt::format("{}: is a run, which has its own scores; give its data instead to measure "
                    "--user-embeddings, --item-embeddings or --scores",
                    arguments.place));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto context = arguments.device.make_context();
  Run trained(*context, arguments.place, arguments.data);
  EvaluationFlags& flags = arguments.evaluation;
  flags.eval = trained.config().eval;
  flags.read(apply_flags);
  const std::size_t domain = flags.domain == "source" ? kSource : kTarget;
  const DomainEmbeddings embeddings = trained.embed(domain);
  const auto scorer = make_scorer(*context, embeddings, trained.scorer());
  const double read_seconds = seconds_since(start);

  EvaluationReport report = measure(*context, flags, trained.domain(domain), *scorer);
  report.fields["run"] = arguments.place;
  report.fields["seconds"]["read"] = read_seconds;
  print_report(flags, report);
}

void evaluate_files(Arguments& arguments, const std::function<void()>& apply_flags) {
  EvaluationFlags& flags = arguments.evaluation;
  flags.read(apply_flags);
  flags.eval.options();  // refuses what is wrong before the files are read
  const auto context = arguments.device.make_context();
  const auto start = std::chrono::steady_clock::now();
  const Domain domain = load_domain(arguments.place, flags.domain);
  const ScorerFiles files(arguments, domain);
  const double read_seconds = seconds_since(start);
  try {
    EvaluationReport report = measure(*context, flags, domain, files.scorer());
    report.fields["seconds"]["read"] = read_seconds;
    print_report(flags, report);
  } catch (const NanScore& nan) {
    throw Error(fmt::format(
        "{}: the score of user '{}' (row {}) and item '{}' ({} {}) is NaN; a "
        "ranking needs numbers or infinities",
        arguments.scores.empty() ? arguments.users : arguments.scores, domain.users[nan.user],
        nan.user, domain.items[nan.item], arguments.scores.empty() ? "row" : "column", nan.item));
  }
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  if (is_run(arguments.place)) {
    evaluate_run(arguments, apply_flags);
    return;
  }
  const auto seeds = seeds_of(arguments.place);
  if (!seeds.empty()) {
    throw Error(
        fmt::format("{}: holds the runs of {} seeds; give one of them, such as {}, or use "
                    "'cfaa_gpu compare'",
                    arguments.place, seeds.size(), seeds[0].string()));
  }
  evaluate_files(arguments, apply_flags);
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("evaluate", "measures the lists of a run, or of any model's scores");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("run_or_data", arguments->place,
                   "a run that train wrote; or data that prepare wrote, with scores to rank")
      ->required();
  command->add_option("--user-embeddings", arguments->users,
                      ".npy of users x D, rows as in users.tsv");
  command->add_option("--item-embeddings", arguments->items,
                      ".npy of items x D, rows as in items.tsv");
  command->add_option("--scores", arguments->scores, ".npy of users x items, instead");
  command->add_option("--data", arguments->data, "where the run's data is now");
  arguments->evaluation.add_to(*command);
  arguments->device.add_to(*command);
  const auto apply_flags =
      add_option_flags(*command, evaluation_option_set(arguments->evaluation.eval));
  command->callback([arguments, apply_flags] { run(*arguments, apply_flags); });
}

}  // namespace cfaa::tools
