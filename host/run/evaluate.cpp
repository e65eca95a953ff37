#include "host/run/evaluate.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/stopwatch.h"
#include "host/device/make_context.h"
#include "host/io/atomic_file.h"
#include "host/io/npy.h"
#include "host/run/result.h"
#include "host/run/run.h"

namespace cfaa {
namespace {

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
class FileScorer {
 public:
  FileScorer(const ScoreFiles& names, const Domain& domain) {
    const bool embeddings = !names.users.empty() && !names.items.empty();
    if (names.scores.empty() ? !embeddings : !names.users.empty() || !names.items.empty()) {
      throw Error(
          "give either --user-embeddings and --item-embeddings, or --scores: these are what is "
          "ranked");
    }
    if (names.scores.empty()) {
      open_embeddings(names, domain);
    } else {
      open_scores(names, domain);
    }
  }

  const Scorer& scorer() const { return *scorer_; }

 private:
  void open_embeddings(const ScoreFiles& names, const Domain& domain) {
    MatrixFile& users = first_.emplace(names.users);
    MatrixFile& items = second_.emplace(names.items);
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

  void open_scores(const ScoreFiles& names, const Domain& domain) {
    MatrixFile& scores = first_.emplace(names.scores);
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

}  // namespace

EvaluationReport evaluate_scorer(Context& context, const Domain& domain, const Scorer& scorer,
                                 const EvaluationRequest& request) {
  const Stopwatch watch;
  EvaluationReport report;
  report.request = request;
  report.held_out = make_held_out(domain, request.split, request.eval.mask);
  if (report.held_out.positives.item.empty()) {
    throw Error(
        fmt::format("{}: its {} split has no positive interaction, so that there is nothing "
                    "to measure",
                    domain.path.string(), split_name(request.split)));
  }
  report.evaluation = evaluate(context, scorer, report.held_out, request.eval.options());
  if (request.eval.candidates > 0) {
    log_warning(
        "sampled metrics are biased and may order models differently from the full ranking; "
        "compare them only with the same --candidates and --candidate-seed");
  }
  if (request.with_validation) report.valid = validation_ndcg(context, domain, scorer);
  report.device = device_label(context);
  report.evaluate_seconds = watch.seconds();
  return report;
}

std::optional<double> validation_ndcg(Context& context, const Domain& domain,
                                      const Scorer& scorer) {
  const HeldOut held_out = make_held_out(domain, Split::valid, Mask::automatic);
  if (held_out.positives.item.empty()) return std::nullopt;
  EvaluationOptions options;
  options.ks = {10};
  options.bootstrap = 0;
  const Evaluation evaluation = evaluate(context, scorer, held_out, options);
  return metric_values(evaluation.all.metrics).at("NDCG@10");
}

EvaluationReport evaluate_model(Context& context, RankingModel& model,
                                const EvaluationRequest& request) {
  const Stopwatch watch;
  const std::size_t which = domain_index(request.domain);
  const Scorer& scorer = model.ranking(which);
  const double read_seconds = watch.seconds();
  EvaluationReport report = evaluate_scorer(context, model.domain(which), scorer, request);
  report.read_seconds = read_seconds;
  return report;
}

EvaluationReport evaluate_files(Context& context, const Domain& domain, const ScoreFiles& files,
                                const EvaluationRequest& request) {
  const Stopwatch watch;
  const FileScorer opened(files, domain);
  const double read_seconds = watch.seconds();
  try {
    EvaluationReport report = evaluate_scorer(context, domain, opened.scorer(), request);
    report.read_seconds = read_seconds;
    return report;
  } catch (const NanScore& nan) {
    const bool embeddings = files.scores.empty();
    throw Error(
        fmt::format("{}: the score of user '{}' (row {}) and item '{}' ({} {}) is NaN; a "
                    "ranking needs numbers or infinities",
                    embeddings ? files.users : files.scores, domain.users[nan.user], nan.user,
                    domain.items[nan.item], embeddings ? "row" : "column", nan.item));
  }
}

void write_lists(const std::string& path, const EvaluationReport& report, const Domain& domain) {
  const Lists& lists = report.evaluation.lists;
  const UserItems& positives = report.held_out.positives;
  AtomicFile file(path);
  file.write(kListsWithHitsHeader);
  for (std::size_t row = 0; row < lists.user.size(); ++row) {
    const int32_t user = lists.user[row];
    for (std::size_t i = 0; i < static_cast<std::size_t>(lists.k); ++i) {
      const std::size_t at = row * static_cast<std::size_t>(lists.k) + i;
      if (lists.item[at] < 0) break;
      file.write(fmt::format("{}\t{}\t{}\t{}\t{}\n", domain.users[user], i + 1,
                             domain.items[lists.item[at]], lists.score[at],
                             positives.contains(user, lists.item[at]) ? 1 : 0));
    }
  }
  file.commit();
}

}  // namespace cfaa
