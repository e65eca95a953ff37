#include "host/run/baseline/baselines.h"

#include <fmt/format.h>

#include "host/embed/review_sums.h"
#include "host/run/signal_model.h"

namespace cfaa {

OptionSet baseline_option_set(BaselineOptions& options) {
  OptionSet set("baseline");
  SignalOptions& signal = options.signal;
  set.add("neighbours", signal.knn_neighbours, "itemknn: most similar items that vote for an item",
          at_least(1));
  set.add("shrink", signal.knn_shrink, "itemknn: added to the similarity's denominator",
          at_least(0));
  set.add("rp3_alpha", signal.rp3_alpha, "rp3beta: power of the steps' probabilities", at_least(0));
  set.add("rp3_beta", signal.rp3_beta, "rp3beta: power of the popularity it is divided by",
          at_least(0));
  set.add("ease_lambda", signal.ease_lambda, "ease: regularisation", positive());
  set.add("cease_lambda", signal.cease_lambda, "cease: regularisation", positive());
  set.add("cease_omega", signal.cease_omega, "cease: weight of the items' words", at_least(0));
  set.add("ials_dim", signal.ials_dim, "ials: attributes", between(1, 1024));
  set.add("ials_lambda", signal.ials_lambda, "ials: regularisation", positive());
  set.add("ials_alpha", signal.ials_alpha, "ials: weight of what was not liked", at_least(0));
  set.add("ials_sweeps", signal.ials_sweeps, "ials: sweeps over items and users", at_least(1));
  set.add("vectors", options.vectors, "content: words, or the encoder's vectors",
          {{"tfidf", ContentVectors::tfidf}, {"encoder", ContentVectors::encoder}});
  set.add("dim", options.dim, "mf: attributes", between(1, 4096));
  set.add("learning_rate", options.learning_rate, "mf: learning rate of Adam", positive());
  set.add("weight_decay", options.weight_decay, "mf: decoupled, times the learning rate",
          at_least(0));
  set.add("epochs", options.epochs, "mf: maximum number of epochs", at_least(1));
  set.add("batch_size", options.batch_size, "mf: positives in a step", between(1, 65536));
  set.add("negatives", options.negatives, "mf: sampled negatives of a positive", between(1, 64));
  set.add("patience", options.patience,
          "mf: validations without a better one before it stops; 0: never", at_least(0));
  set.add("seed", options.seed, "mf: random seed", between(0, 9e18));
  return set;
}

UserItems training_positives(const Domain& domain) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  const SplitRows& train = domain.train;
  for (std::size_t row = 0; row < train.user.size(); ++row) {
    if (train.label[row] > 0) pairs.emplace_back(train.user[row], train.item[row]);
  }
  return make_user_items(domain.users.size(), std::move(pairs));
}

const std::vector<std::string>& baseline_names() {
  static const std::vector<std::string> names = {
      "popularity", "itemknn", "mf", "rp3beta", "ease", "cease", "ials", "content", "text"};
  return names;
}

std::vector<BaselineSetting> baseline_grid(const std::string& name,
                                           const BaselineOptions& options) {
  std::vector<BaselineSetting> grid;
  // Every pair of values of two settings.
  const auto cross = [&](const char* first_name, auto first, std::vector<double> first_values,
                         const char* second_name, auto second, std::vector<double> second_values) {
    for (const double x : first_values) {
      for (const double y : second_values) {
        BaselineSetting setting{options,
                                fmt::format("{} {}, {} {}", first_name, x, second_name, y)};
        first(setting.options) = static_cast<std::decay_t<decltype(first(setting.options))>>(x);
        second(setting.options) = static_cast<std::decay_t<decltype(second(setting.options))>>(y);
        grid.push_back(std::move(setting));
      }
    }
  };
  if (name == "itemknn") {
    cross(
        "shrink", [](auto& o) -> double& { return o.signal.knn_shrink; }, {0, 20, 50, 200},
        "neighbours", [](auto& o) -> int64_t& { return o.signal.knn_neighbours; }, {100, 400});
  } else if (name == "rp3beta") {
    cross(
        "alpha", [](auto& o) -> double& { return o.signal.rp3_alpha; }, {0.5, 0.7, 0.9, 1.1},
        "beta", [](auto& o) -> double& { return o.signal.rp3_beta; }, {0, 0.3});
  } else if (name == "ease") {
    for (const double lambda : {10, 20, 50, 100, 200, 500, 1000, 2000}) {
      grid.push_back({options, fmt::format("lambda {}", lambda)});
      grid.back().options.signal.ease_lambda = lambda;
    }
  } else if (name == "cease") {
    cross(
        "lambda", [](auto& o) -> double& { return o.signal.cease_lambda; }, {50, 200}, "omega",
        [](auto& o) -> double& { return o.signal.cease_omega; }, {5, 10, 20, 50});
  } else if (name == "ials") {
    cross(
        "lambda", [](auto& o) -> double& { return o.signal.ials_lambda; }, {0.01, 0.03, 0.1, 0.2},
        "alpha", [](auto& o) -> double& { return o.signal.ials_alpha; }, {0.01, 0.03});
  } else if (name == "mf") {
    cross(
        "weight decay", [](auto& o) -> double& { return o.weight_decay; }, {1, 2, 4, 8},
        "learning rate", [](auto& o) -> double& { return o.learning_rate; }, {1e-3, 3e-3});
  }
  return grid;
}

const Evidence& SignalBaselines::evidence(SignalName name) {
  const bool words =
      name == SignalName::content || name == SignalName::text || name == SignalName::cease;
  if (words) {
    if (!with_text_) {
      const Domain* domains[] = {&domain_};
      const ReviewedDomains read = read_reviewed_domains(context_.threads(), domains);
      with_text_ = gather_evidence(context_.threads(), read.domains[0]);
    }
    return *with_text_;
  }
  ReviewedDomain reviewed{&domain_, {}, 0, {}};
  reviewed.terms.offset.assign(static_cast<std::size_t>(domain_.train.size()) + 1, 0);
  if (name == SignalName::encoder) {
    const ReviewSums sums = load_review_sums(domain_);
    const int64_t rows = domain_.train.size();
    std::vector<float> values(static_cast<std::size_t>(rows * sums.width));
    convert<float>(sums.dtype, sums.sum, 1, rows * sums.width, values.data());
    reviewed.vectors = {sums.width, values, {sums.count, static_cast<std::size_t>(rows)}};
    without_text_ = gather_evidence(context_.threads(), reviewed);
  } else if (!without_text_) {
    without_text_ = gather_evidence(context_.threads(), reviewed);
  }
  return *without_text_;
}

std::unique_ptr<Scorer> SignalBaselines::scorer(const std::string& name,
                                                const BaselineOptions& options) {
  const bool encoded = name == "content" && options.vectors == ContentVectors::encoder;
  const SignalName which = encoded ? SignalName::encoder : signal_by_name(name);
  const Evidence& made_from = evidence(which);
  const Signal signal = make_signal(context_, made_from, which, options.signal);
  const double weight = 1;
  scores_.emplace(context_, made_from, std::span(&signal, 1), std::span(&weight, 1));
  return make_scorer(*scores_);
}

}  // namespace cfaa
