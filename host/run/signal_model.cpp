#include "host/run/signal_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/data/keyed_draw.h"
#include "host/eval/evaluation.h"
#include "host/eval/significance.h"

namespace cfaa {
namespace {

constexpr double kOnlySource = std::numeric_limits<double>::infinity();
constexpr double kUsualPrior = 100;  // edges
constexpr double kClear = 2;         // standard errors
constexpr std::size_t kNdcg = 2;     // of kMetricNames
constexpr double kRidge = 1;  // as strong as one edge: it only decides where nothing else does

// The training rows of the source that stay when it is thinned to the target's density: positives
// a user and positives an item, whichever asks for less. A target without any thins nothing.
std::vector<char> thinned(const Domain& source, const Domain& target, int64_t seed) {
  const auto positives = [](const Domain& domain) {
    return static_cast<double>(std::count_if(domain.train.label.begin(), domain.train.label.end(),
                                             [](float label) { return label > 0; }));
  };
  const auto per = [&](const Domain& domain, const IdList& ids) {
    return positives(domain) / std::max<double>(1, static_cast<double>(ids.size()));
  };
  const double share = positives(target) == 0
                           ? 1.0
                           : std::min({1.0, per(target, target.users) / per(source, source.users),
                                       per(target, target.items) / per(source, source.items)});
  const KeyedDraw draw("thin", source.name, seed);
  std::vector<char> kept(source.train.user.size());
  for (std::size_t row = 0; row < kept.size(); ++row) {
    kept[row] = draw.uniform(source.users[source.train.user[row]],
                             source.items[source.train.item[row]]) < share;
  }
  return kept;
}

std::vector<double> priors_to_try(SignalPrior prior, bool target_has_edges, bool source_has_edges) {
  if (!source_has_edges) return {0};
  if (!target_has_edges) return {kOnlySource};
  switch (prior) {
    case SignalPrior::automatic:
      return {0, 30, 100, 300, kOnlySource};
    case SignalPrior::none:
      return {0};
    case SignalPrior::edges_30:
      return {30};
    case SignalPrior::edges_100:
      return {100};
    case SignalPrior::edges_300:
      return {300};
    case SignalPrior::only:
      return {kOnlySource};
  }
  return {};
}

// The signals asked for, but for those that this data has no room or no vectors for where all were
// asked for.
std::vector<SignalName> usable(Context& context, const ReviewedData& data,
                               const SignalsOptions& options) {
  std::vector<SignalName> names = options.names();
  if (static_cast<int>(names.size()) < kSignalNames) return names;
  std::erase_if(names, [&](SignalName name) {
    std::string why;
    if (name == SignalName::encoder && !data.has_vectors()) why = "there are no review vectors";
    const int64_t items = std::max(data.domain(kSource).items(), data.domain(kTarget).items());
    if (!fits_in_memory(context, name, items)) {
      why = fmt::format("an inverse over {} items does not fit into memory", items);
    }
    if (!why.empty()) log_info(fmt::format("without the signal {}: {}", name_of(name), why));
    return !why.empty();
  });
  return names;
}

std::vector<SignalWeight> named(const std::vector<SignalName>& names,
                                const std::vector<double>& weights) {
  std::vector<SignalWeight> both;
  for (std::size_t s = 0; s < names.size(); ++s) both.push_back({names[s], weights[s]});
  return both;
}

// NDCG@10 of each user with a validation positive.
std::vector<double> validation_values(Context& context, const HeldOut& held_out,
                                      const ScaledSignals& made, std::vector<double> weights) {
  for (std::size_t s = 0; s < weights.size(); ++s) weights[s] /= made.scale[s];
  const SignalScores scores(context, made.evidence, made.signals, weights);
  EvaluationOptions options;
  options.ks = {10};
  options.bootstrap = 0;
  const UserMetrics users = evaluate(context, *make_scorer(scores), held_out, options).per_user;
  std::vector<double> values;
  for (std::size_t u = 0; u < users.user.size(); ++u) {
    values.push_back(users.value[u * kUserMetrics + kNdcg]);
  }
  return values;
}

// Fills `tried` and returns the place of the prior to take.
std::size_t choose_prior(Context& context, const HeldOut& held_out, const ScaledSignals& made,
                         const std::vector<std::vector<double>>& weights,
                         std::vector<SignalFit::Tried>& tried) {
  const auto usual = static_cast<std::size_t>(
      std::find_if(tried.begin(), tried.end(),
                   [](const SignalFit::Tried& t) { return t.edges == kUsualPrior; }) -
      tried.begin());
  if (held_out.positives.item.empty()) return usual;
  std::vector<std::vector<double>> values;
  for (const std::vector<double>& w : weights) {
    values.push_back(validation_values(context, held_out, made, w));
  }
  std::size_t taken = usual;
  for (std::size_t p = 0; p < tried.size(); ++p) {
    std::vector<double> ahead(values[p].size());
    for (std::size_t u = 0; u < ahead.size(); ++u) ahead[u] = values[p][u] - values[usual][u];
    const PairedTest difference = paired_t_test(ahead);
    tried[p].valid = mean_and_deviation(values[p]).mean;
    tried[p].ahead = difference.mean;
    tried[p].error = difference.standard_error;
    if (difference.mean > kClear * difference.standard_error &&
        tried[p].valid > tried[taken].valid) {
      taken = p;
    }
  }
  return taken;
}

// How far `weights` are ahead of popularity alone, user by user: out of fold, and on validation.
SignalFit::BesidePopularity beside_popularity(Context& context, const HeldOut& held_out,
                                              const ScaledSignals& made,
                                              const ListwiseGroups& out_of_fold,
                                              const std::vector<double>& weights,
                                              const std::vector<double>& popularity) {
  std::vector<double> ahead;
  const auto add = [&ahead](const std::vector<double>& own, const std::vector<double>& other) {
    for (std::size_t u = 0; u < own.size(); ++u) ahead.push_back(own[u] - other[u]);
  };
  add(listwise_ndcg(context.threads(), out_of_fold, weights),
      listwise_ndcg(context.threads(), out_of_fold, popularity));
  if (!held_out.positives.item.empty()) {
    add(validation_values(context, held_out, made, weights),
        validation_values(context, held_out, made, popularity));
  }
  const PairedTest difference = paired_t_test(ahead);
  return {difference.mean, difference.standard_error,
          !(difference.mean > difference.standard_error)};
}

}  // namespace

struct ReviewedData::Vectors {
  PerDomain<std::vector<float>> sums;
  PerDomain<std::vector<int32_t>> counts;
};

ReviewedData::ReviewedData(Context& context, const Dataset& dataset)
    : vectors_(std::make_unique<Vectors>()) {
  PerDomain<const Domain*> domains;
  domains[kSource] = &dataset.source;
  domains[kTarget] = &dataset.target;
  ReviewedDomains read = read_reviewed_domains(context.threads(), domains);
  domains_ = std::move(read.domains);
  terms_ = std::move(read.terms);
  for (const Domain* domain : domains) {
    if (!std::filesystem::exists(domain->path / "embed.json")) return;
  }
  const auto sums = load_review_sums(dataset);
  read_vectors(kSource, sums.first);
  read_vectors(kTarget, sums.second);
}

void ReviewedData::read_vectors(std::size_t domain, const ReviewSums& sums) {
  const int64_t rows = domains_[domain].domain->train.size(), elements = rows * sums.width;
  vectors_->sums[domain].resize(static_cast<std::size_t>(elements));
  convert<float>(sums.dtype, sums.sum, 1, elements, vectors_->sums[domain].data());
  vectors_->counts[domain].assign(sums.count, sums.count + rows);
  domains_[domain].vectors = {sums.width, vectors_->sums[domain], vectors_->counts[domain]};
}

ReviewedData::~ReviewedData() = default;

std::unique_ptr<Scorer> make_scorer(const SignalScores& scores) {
  return std::make_unique<BlockScorer>(
      scores.users(), scores.items(),
      [&scores](Context& context, std::span<const int32_t> users, int64_t first, int64_t last,
                MatrixView<float> block) { scores.fill(context, users, first, last, block); },
      [&scores](int32_t user, std::span<const int32_t> items, double* values) {
        scores.score(user, items, values);
      });
}

bool ReviewedData::has_vectors() const {
  return domains_[kTarget].vectors.width > 0;
}

SignalFit fit_signals(Context& context, const ReviewedData& data, const SignalsOptions& options) {
  const std::vector<SignalName> names = usable(context, data, options);
  const auto signals = static_cast<int64_t>(names.size());
  const ReviewedDomain &source = data.domain(kSource), &target = data.domain(kTarget);
  const auto groups_of = [&](const ReviewedDomain& domain, std::span<const char> kept = {}) {
    return out_of_fold_groups(context, domain, names, options.signal(), options.fold(), kept);
  };
  const auto fit = [&](std::span<const ListwiseTerm> terms) {
    return fit_listwise(context.threads(), terms, kRidge, signals);
  };
  SignalFit result;
  const ListwiseGroups of_target = groups_of(target), of_source = groups_of(source);
  if (of_target.edges() + of_source.edges() == 0) {
    throw Error("neither domain has a training positive: there is nothing to learn from");
  }
  const ListwiseTerm source_alone{&of_source, 1};
  result.weights[kSource] = named(names, fit({&source_alone, 1}));

  const std::vector<char> kept = thinned(*source.domain, *target.domain, options.seed);
  const bool all_kept = std::find(kept.begin(), kept.end(), 0) == kept.end();
  const ListwiseGroups of_thinned = all_kept ? of_source : groups_of(source, kept);
  const std::vector<double> priors =
      priors_to_try(options.prior, of_target.edges() > 0, of_thinned.edges() > 0);
  std::vector<std::vector<double>> weights;
  for (const double prior : priors) {
    std::vector<ListwiseTerm> terms;
    if (prior < kOnlySource) terms.push_back({&of_target, 1});
    if (prior > 0) {
      const auto edges = static_cast<double>(of_thinned.edges());
      terms.push_back({&of_thinned, prior < kOnlySource ? prior / edges : 1});
    }
    weights.push_back(fit(terms));
    result.tried.push_back({prior});
  }
  const HeldOut held_out = make_held_out(*target.domain, Split::valid, Mask::automatic);
  const ScaledSignals made = make_scaled_signals(context, target, names, options.signal());
  const std::size_t taken =
      priors.size() > 1 ? choose_prior(context, held_out, made, weights, result.tried) : 0;
  result.prior = priors[taken];
  result.weights[kTarget] = named(names, weights[taken]);

  const auto popular = std::find(names.begin(), names.end(), SignalName::popularity);
  if (popular != names.end() && of_target.edges() > 0 && options.prior != SignalPrior::only) {
    std::vector<double> alone(names.size());
    alone[static_cast<std::size_t>(popular - names.begin())] = 1;
    result.beside_popularity =
        beside_popularity(context, held_out, made, of_target, weights[taken], alone);
    if (result.beside_popularity->taken) {
      log_info(
          "popularity is taken alone: on held-out edges the weights are not clearly ahead of it");
      result.weights[kTarget] = named(names, alone);
    }
  }
  return result;
}

SignalModel::SignalModel(Context& context, const ReviewedData& data, std::size_t domain,
                         const SignalsOptions& options, const std::vector<SignalWeight>& weights)
    : data_(data),
      options_(options.signal()),
      made_([&] {
        std::vector<SignalName> names;
        for (const SignalWeight& w : weights) names.push_back(w.name);
        return make_scaled_signals(context, data.domain(domain), names, options.signal());
      }()),
      weight_([&] {
        std::vector<double> scaled;
        for (std::size_t s = 0; s < weights.size(); ++s) {
          scaled.push_back(weights[s].weight / made_.scale[s]);
        }
        return scaled;
      }()),
      user_scale_(options.with_model() ? history_scale(made_.evidence.liked)
                                       : std::vector<double>()),
      scores_(context, made_.evidence, made_.signals, weight_, user_scale_) {}

std::unique_ptr<Scorer> SignalModel::scorer() const {
  return make_scorer(scores_);
}

SignalModel::Placed SignalModel::place(Context& context, SparseRows liked,
                                       const ReviewTerms& reviews,
                                       std::span<const int32_t> author) const {
  Placed placed;
  placed.users = place_later_users(context, made_.evidence, made_.signals, options_,
                                   std::move(liked), reviews, author);
  if (!user_scale_.empty()) placed.scale = history_scale(placed.users.liked);
  placed.scored = scores_.users_of(context, placed.users, placed.scale);
  return placed;
}

std::unique_ptr<Scorer> SignalModel::scorer(const Placed& placed) const {
  return std::make_unique<BlockScorer>(
      placed.users.users(), scores_.items(),
      [this, &placed](Context& context, std::span<const int32_t> users, int64_t first, int64_t last,
                      MatrixView<float> block) {
        scores_.fill(context, placed.scored, users, first, last, block);
      },
      [this, &placed](int32_t user, std::span<const int32_t> items, double* values) {
        scores_.score(placed.scored, user, items, values);
      });
}

std::vector<SignalReason> SignalModel::reasons(int32_t user, std::span<const int32_t> items) const {
  const double scale = user_scale_.empty() ? 1 : user_scale_[static_cast<std::size_t>(user)];
  return reasons_of([&](const Signal& signal) { return signal_user(signal, made_.evidence, user); },
                    scale, items);
}

std::vector<SignalReason> SignalModel::reasons(const Placed& placed, int32_t user,
                                               std::span<const int32_t> items) const {
  const double scale = placed.scale.empty() ? 1 : placed.scale[static_cast<std::size_t>(user)];
  return reasons_of([&](const Signal&) { return placed.users.user(user); }, scale, items);
}

template <class UserOf>
std::vector<SignalReason> SignalModel::reasons_of(UserOf user_of, double scale,
                                                  std::span<const int32_t> items) const {
  // The strongest signal of each item.
  std::vector<SignalReason> reasons(items.size());
  std::vector<std::size_t> strongest(items.size());
  std::vector<double> most(items.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t s = 0; s < made_.signals.size(); ++s) {
    if (weight_[s] == 0) continue;  // it raised nothing
    std::vector<double> row(static_cast<std::size_t>(made_.evidence.items()));
    add_signal_row(made_.signals[s], user_of(made_.signals[s]), weight_[s], row.data());
    double mean = 0;
    for (const double x : row) mean += x / static_cast<double>(row.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const double raised = row[static_cast<std::size_t>(items[i])] - mean;
      if (!(raised > most[i])) continue;
      most[i] = raised;
      strongest[i] = s;
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Signal& signal = made_.signals[strongest[i]];
    reasons[i].signal = signal.name;
    reasons[i].raised = std::isfinite(most[i]) ? most[i] * scale : 0;  // no signal counts
    explain(signal, user_of(signal), weight_[strongest[i]] < 0, items[i], reasons[i]);
  }
  return reasons;
}

// What counts of the user's items, or of its words, by how much; the largest first.
void SignalModel::explain(const Signal& signal, const SignalUser& user, bool negative, int32_t item,
                          SignalReason& reason) const {
  std::vector<std::pair<double, int32_t>> parts;
  const auto value_at = [](const SparseRows& rows, int32_t row, int32_t column) {
    const auto columns = rows.columns_of(row);
    const auto at = std::lower_bound(columns.begin(), columns.end(), column);
    if (at == columns.end() || *at != column) return 0.0;
    return double{rows.values_of(row)[static_cast<std::size_t>(at - columns.begin())]};
  };
  const bool of_words = signal.word_items.rows() > 0;
  if (of_words) {
    for (std::size_t t = 0; t < user.terms.size(); ++t) {
      parts.emplace_back(-user.term_weights[t] * value_at(signal.word_items, user.terms[t], item),
                         user.terms[t]);
    }
  } else if (signal.bias.empty()) {
    for (const int32_t j : user.liked) {
      double part = 0;
      if (signal.dim > 0) {
        const float* h_i = signal.item_factors.data() + item * signal.dim;
        const float* h_j = signal.item_factors.data() + j * signal.dim;
        for (int64_t q = 0; q < signal.dim; ++q) part += double{h_i[q]} * double{h_j[q]};
      } else {
        part = value_at(signal.votes, j, item);
      }
      parts.emplace_back(-part * (negative ? -1 : 1), j);
    }
  }
  std::sort(parts.begin(), parts.end());
  for (std::size_t p = 0; p < std::min<std::size_t>(3, parts.size()) && parts[p].first < 0; ++p) {
    if (of_words) {
      reason.words.push_back(data_.terms()[static_cast<std::size_t>(parts[p].second)]);
    } else {
      reason.items.push_back(parts[p].second);
    }
  }
}

}  // namespace cfaa
