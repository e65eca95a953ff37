// Training, and what one does with a run: lists, embeddings, metrics, comparisons, baselines.

#include <cfaa/core/error.h>
#include <cfaa/device/make_context.h>
#include <cfaa/run/baseline/measure_baseline.h>
#include <cfaa/run/compare.h>
#include <cfaa/run/configuration.h>
#include <cfaa/run/directory/directory_kind.h>
#include <cfaa/run/evaluate.h>
#include <cfaa/run/newcomers.h>
#include <cfaa/run/recommend.h>
#include <cfaa/run/run.h>
#include <cfaa/run/run_json.h>
#include <cfaa/run/train.h>
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "arrays.h"
#include "checks.h"
#include "contexts.h"
#include "module.h"
#include "watch.h"

namespace cfaa::python {
namespace nb = nanobind;
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using Strings = std::vector<std::string>;

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// A file's values, then those of an object over them. Without a word about CFAA, or with one about
// it as the residual of signals, signals are weighed, as the program does.
RunConfig run_config(const std::string& path, const std::string& object) {
  Configuration configuration;
  const json values = json::parse(object);
  const bool alone = std::all_of(values.items().begin(), values.items().end(), [](auto item) {
    return item.key() == "signals" || item.key() == "eval";
  });
  const bool both = values.value("/signals/residual"_json_pointer, json()) == "model";
  if (path.empty() && (alone || both)) configuration.run.signals = default_signals();
  if (!path.empty()) configuration.read(path);
  configuration.read_text(object, "config");
  configuration.run.check();
  return configuration.run;
}

std::string train_model(nb::handle listener, const std::string& data, const std::string& out,
                        const std::string& config_path, const std::string& config, bool fresh,
                        int64_t from, const std::string& device, int threads) {
  TrainRequest request;
  request.out = out;
  request.config = run_config(config_path, config);
  request.fresh = fresh;
  request.from = from;
  require_prepared(data);
  const bool signals = request.config.signals.alone();
  if (signals && from >= 0) {
    throw Error("from_step is for a run of CFAA, and signals are weighed at once; leave it out");
  }
  TrainedRun trained;
  watch(listener, [&](Watch& told) {
    request.stop = &told.stop();
    request.metrics = [&](const std::string& line) { told.tell("metrics", line); };
    const auto context = make_context(device, {.threads = threads});
    if (signals) {
      trained = train_signals(*context, data, request);
    } else {
      const TrainingSet set(data, request.config.model);
      trained = train_run(*context, set, request);
    }
  });
  return text_of(to_json(trained.result));
}

Split split_of(const std::string& name) {
  if (name == "test") return Split::test;
  if (name == "valid") return Split::valid;
  throw Error(fmt::format("split: is '{}'; give 'test' or 'valid'", name));
}

EvaluationRequest evaluation_request(const std::string& domain, const std::string& split,
                                     EvaluationConfig eval, const std::string& options) {
  check_domain(domain);
  evaluation_option_set(eval).read(json::parse(options), "evaluate");
  eval.options();  // refuses what is wrong before the work
  return {domain, split_of(split), eval};
}

// A run, or a kept baseline, opened: its context is its own, and calls take turns.
class Model {
 public:
  Model(const std::string& path, const std::string& data, const std::string& device, int threads) {
    const nb::gil_scoped_release without_the_gil;
    context_ = make_context(device, {.threads = threads});
    model_ = open_model(*context_, path, data);
  }

  std::string recommend(const std::string& user, const std::string& domain, int64_t top) {
    check_domain(domain);
    check_between("top", top, 1, 1024);
    return alone([&] {
      return text_of(to_json(cfaa::recommend(*context_, *model_, user, {domain, top})));
    });
  }

  std::string recommend_all(const std::string& domain, int64_t top) {
    check_domain(domain);
    check_between("top", top, 1, 1024);
    return alone([&] {
      json lists = json::array();
      cfaa::recommend_all(*context_, *model_, {domain, top},
                          [&](const Recommendation& list) { lists.push_back(to_json(list)); });
      return text_of(lists);
    });
  }

  // Of users whom training never saw: review i is users[i]'s of items[i]. A rating of NaN says that
  // the user liked it.
  std::string recommend_newcomers(const Strings& users, const Strings& items, const Strings& texts,
                                  const std::vector<double>& ratings, const std::string& domain,
                                  int64_t top, const std::string& encoder) {
    check_domain(domain);
    check_between("top", top, 1, 1024);
    return alone([&] {
      std::unique_ptr<Newcomers>& newcomers = newcomers_[{domain, encoder}];
      if (!newcomers) {
        newcomers = std::make_unique<Newcomers>(*context_, *model_, domain,
                                                open_review_reader(*context_, *model_, encoder));
      }
      std::vector<NewReview> reviews;
      for (std::size_t i = 0; i < users.size(); ++i) {
        reviews.push_back({users[i], items.at(i), texts.at(i), ratings.at(i)});
      }
      const NewUserLists made = newcomers->lists(*context_, reviews, top);
      json lists = json::array();
      for (const Recommendation& list : made.users) lists.push_back(to_json(list));
      return text_of({{"lists", lists}, {"unknown_items", made.unknown_items}});
    });
  }

  std::string evaluate(const std::string& domain, const std::string& split,
                       const std::string& options) {
    const Run* run = dynamic_cast<const Run*>(model_.get());
    const EvaluationRequest request =
        evaluation_request(domain, split, run ? run->config().eval : EvaluationConfig{}, options);
    return alone([&] { return text_of(to_json(evaluate_model(*context_, *model_, request))); });
  }

  nb::any embeddings(const std::string& domain, const std::string& side) {
    check_domain(domain);
    if (side != "user" && side != "item") {
      throw Error(fmt::format("embeddings: of '{}'; give 'user' or 'item'", side));
    }
    const std::size_t which = domain_index(domain);
    DomainEmbeddings all;
    alone([&] { all = model_->embed(which); });
    if (all.dim == 0) {
      throw Error(
          fmt::format("{}: has no embeddings: it ranks by signals", model_->directory().name()));
    }
    const MatrixView<const float> rows = all.view(side == "user" ? kUser : kItem);
    OutputArray<float, 2> result(context_of("cpu"), rows.shape);
    std::copy_n(rows.data, rows.size(), result.view().data);
    return as_any(std::move(result).to_python());
  }

  std::string data() const { return model_->domain(model_->domains()[0]).path.parent_path(); }

 private:
  // One call at a time, without the GIL.
  template <class Work>
  std::invoke_result_t<Work> alone(const Work& work) {
    const nb::gil_scoped_release without_the_gil;
    const std::lock_guard<std::mutex> lock(mutex_);
    return work();
  }

  std::mutex mutex_;
  std::shared_ptr<Context> context_;
  std::unique_ptr<RankingModel> model_;
  // Of a domain and an encoder's folder, made when asked for.
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Newcomers>> newcomers_;
};

// An array of scores or embeddings, its rows without gaps and in the memory of the CPU.
void check_scores(const InputMatrix& matrix, const char* name, int64_t rows, const char* whose) {
  if (matrix.device() != "cpu") {
    throw Error(fmt::format("{}: lies on {}; move it to the CPU first", name, matrix.device()));
  }
  if (!matrix.view<float>().contiguous()) {
    throw Error(
        fmt::format("{}: its rows are padded; give numpy.ascontiguousarray({})", name, name));
  }
  if (matrix.rows() == rows) return;
  throw Error(fmt::format("{}: has {} rows where the data have {} {}; rows follow the data's order",
                          name, matrix.rows(), rows, whose));
}

// `second` is none: `first` holds the scores, (users, items). Otherwise embeddings of users and of
// items, whose products are the scores.
std::string evaluate_arrays(const std::string& data, nb::handle first, nb::handle second,
                            const std::string& domain, const std::string& split,
                            const std::string& options, const std::string& device, int threads) {
  const EvaluationRequest request = evaluation_request(domain, split, {}, options);
  require_prepared(data);
  const Domain loaded = load_domain(data, domain);
  std::unique_ptr<Scorer> scorer;
  const bool scores = second.is_none();
  const InputMatrix users(first, scores ? "scores" : "users");
  check_scores(users, scores ? "scores" : "users", loaded.users.size(), "users");
  std::optional<InputMatrix> items;
  if (scores) {
    if (users.cols() != loaded.items.size()) {
      throw Error(fmt::format("scores: has {} columns where the data have {} items", users.cols(),
                              loaded.items.size()));
    }
  } else {
    items.emplace(second, "items");
    check_alike(users, "users", *items, "items");
    check_scores(*items, "items", loaded.items.size(), "items");
    if (users.cols() != items->cols() || users.cols() == 0) {
      throw Error(fmt::format("users: has {} columns and items {}; both need the same attributes",
                              users.cols(), items->cols()));
    }
  }
  const auto make = [&]<class T>(T) {
    if (scores) {
      scorer = std::make_unique<MatrixScorer<T>>(users.view<T>());
    } else {
      scorer = std::make_unique<DotScorer<T>>(users.view<T>(), items->view<T>());
    }
  };
  users.is_double() ? make(double{}) : make(float{});
  const nb::gil_scoped_release without_the_gil;
  const auto context = make_context(device, {.threads = threads});
  return text_of(to_json(evaluate_scorer(*context, loaded, *scorer, request)));
}

std::string compare(const Strings& runs, const Strings& metrics, const std::string& domain) {
  check_domain(domain);
  if (runs.empty()) throw Error("compare: was given no run; give at least one");
  const nb::gil_scoped_release without_the_gil;
  CompareRequest request;
  request.runs = runs;
  if (!metrics.empty()) request.metrics = metrics;
  request.domain = domain;
  return text_of(to_json(compare_runs(request)));
}

std::string baseline(nb::handle listener, const std::string& data, const std::string& name,
                     const std::string& out, bool tune, bool force, const std::string& domain,
                     const std::string& split, const std::string& eval, const std::string& options,
                     const std::string& device, int threads) {
  BaselineRequest request;
  request.name = name;
  request.tune = tune;
  request.evaluation = evaluation_request(domain, split, {}, eval);
  baseline_option_set(request.options).read(json::parse(options), name);
  if (!out.empty() && split != "test") {
    throw Error("out: keeps results of the test split; leave split out");
  }
  require_prepared(data);
  std::string text;
  watch(listener, [&](Watch&) {
    const RunDirectory place(out);
    if (!out.empty()) check_result_place(place, force);
    const Domain loaded = load_domain(data, domain);
    const auto context = make_context(device, {.threads = threads});
    const BaselineReport report = measure_baseline(*context, loaded, request);
    if (!out.empty()) write_baseline(place, report, load_dataset(data).hash, loaded);
    text = text_of(to_json(report));
  });
  return text;
}

}  // namespace

void bind_runs(nb::module_& module) {
  module.def("train", &train_model, nb::arg("listener").none(), nb::arg("data"), nb::arg("out"),
             nb::arg("config_path"), nb::arg("config"), nb::arg("fresh"), nb::arg("from_step"),
             nb::arg("device"), nb::arg("threads"));
  nb::class_<Model>(module, "Model")
      .def(nb::init<const std::string&, const std::string&, const std::string&, int>(),
           nb::arg("path"), nb::arg("data"), nb::arg("device"), nb::arg("threads"))
      .def("recommend", &Model::recommend, nb::arg("user"), nb::arg("domain"), nb::arg("top"))
      .def("recommend_all", &Model::recommend_all, nb::arg("domain"), nb::arg("top"))
      .def("recommend_newcomers", &Model::recommend_newcomers, nb::arg("users"), nb::arg("items"),
           nb::arg("texts"), nb::arg("ratings"), nb::arg("domain"), nb::arg("top"),
           nb::arg("encoder"))
      .def("evaluate", &Model::evaluate, nb::arg("domain"), nb::arg("split"), nb::arg("options"))
      .def("embeddings", &Model::embeddings, nb::arg("domain"), nb::arg("side"))
      .def_prop_ro("data", &Model::data);
  module.def("evaluate_arrays", &evaluate_arrays, nb::arg("data"), nb::arg("first"),
             nb::arg("second").none(), nb::arg("domain"), nb::arg("split"), nb::arg("options"),
             nb::arg("device"), nb::arg("threads"));
  module.def("compare", &compare, nb::arg("runs"), nb::arg("metrics"), nb::arg("domain"));
  module.def("baseline", &baseline, nb::arg("listener").none(), nb::arg("data"), nb::arg("name"),
             nb::arg("out"), nb::arg("tune"), nb::arg("force"), nb::arg("domain"), nb::arg("split"),
             nb::arg("eval"), nb::arg("options"), nb::arg("device"), nb::arg("threads"));
}

}  // namespace cfaa::python
