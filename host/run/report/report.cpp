#include "host/run/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "host/core/error.h"
#include "host/core/version.h"
#include "host/eval/held_out.h"
#include "host/eval/proxy_distance.h"
#include "host/eval/user_metrics_file.h"
#include "host/run/report/drawn_rows.h"
#include "host/run/review_words.h"
#include "host/run/run.h"
#include "host/run/signal_fit_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostUsers = 2000;  // whose lists are made

std::vector<ShownWeights> all_weights(const Comparison& comparison) {
  std::vector<ShownWeights> all;
  for (const ComparedRow& row : comparison.rows) {
    const RunDirectory first = trainings(row.run)[0];
    if (!fs::exists(first.signals())) continue;
    const SignalFit fit = read_signal_fit(first);
    for (const std::size_t domain : {kTarget, kSource}) {
      ShownWeights shown{row.run, domain == kTarget ? "target" : "source", {}};
      for (const SignalWeight& weight : fit.weights[domain]) {
        shown.weights.emplace_back(name_of(weight.name), weight.weight);
      }
      all.push_back(std::move(shown));
    }
  }
  return all;
}

std::vector<int64_t> history_sizes(const Domain& domain) {
  std::vector<int64_t> sizes(static_cast<std::size_t>(domain.users.size()));
  for (std::size_t row = 0; row < domain.train.user.size(); ++row) {
    if (domain.train.has_label(row)) ++sizes[static_cast<std::size_t>(domain.train.user[row])];
  }
  return sizes;
}

struct Bounds {
  int64_t least, most;
  const char* name;
};
constexpr Bounds kGroups[] = {{0, 2, "up to 2 interactions"},
                              {3, 4, "3 or 4 interactions"},
                              {5, 9, "5 to 9 interactions"},
                              {10, INT64_MAX, "10 or more interactions"}};

// Each user's value of a metric, averaged over the seeds; empty where one did not keep it.
std::map<std::string, double> user_means(const std::string& run, const std::string& domain,
                                         const std::string& metric) {
  std::vector<UserTable> tables;
  for (const RunDirectory& seed : trainings(run)) {
    if (!fs::exists(seed.user_metrics(domain))) return {};
    tables.push_back(read_user_metrics(seed.user_metrics(domain).string()));
  }
  return means_by_user(tables, metric);
}

std::vector<UserGroup> all_groups(const Comparison& comparison, const Domain& domain,
                                  const std::string& metric) {
  const std::vector<int64_t> sizes = history_sizes(domain);
  std::vector<UserGroup> all;
  for (const ComparedRow& row : comparison.rows) {
    const std::map<std::string, double> means = user_means(row.run, comparison.domain, metric);
    for (const Bounds& bounds : kGroups) {
      std::vector<double> values;
      for (const auto& [user, value] : means) {
        const int64_t index = domain.users.find(user);
        if (index < 0) continue;
        const int64_t size = sizes[static_cast<std::size_t>(index)];
        if (size >= bounds.least && size <= bounds.most) values.push_back(value);
      }
      if (values.empty()) continue;
      const MeanAndDeviation summary = mean_and_deviation(values);
      all.push_back({row.run, bounds.name, static_cast<int64_t>(values.size()), summary.mean,
                     summary.deviation / std::sqrt(static_cast<double>(values.size()))});
    }
  }
  return all;
}

std::vector<ShownItem> items_of(const SplitRows& rows, int32_t user, const Recommender& lists,
                                const ReviewWords& words) {
  std::vector<ShownItem> items;
  const auto [first, last] = std::equal_range(rows.user.begin(), rows.user.end(), user);
  for (auto at = first; at != last; ++at) {
    const auto row = static_cast<std::size_t>(at - rows.user.begin());
    if (rows.label[row] != 1) continue;
    const int32_t item = rows.item[row];
    items.push_back({std::string(lists.domain().items[item]), std::string(lists.title(item)),
                     words.of(user, item)});
  }
  return items;
}

std::vector<int32_t> users_with_something_held_out(const Domain& domain) {
  std::vector<int32_t> users;
  for (std::size_t row = 0; row < domain.test.user.size(); ++row) {
    if (domain.test.label[row] == 1) users.push_back(domain.test.user[row]);
  }
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

bool embeds_both(RankingModel& model) {
  const bool of_signals = model.signals(kTarget) != nullptr && model.residual_share() == 0;
  return model.domains().size() == 2 && !of_signals;
}

// What embeddings of both domains there are, trained and untrained.
void add_embeddings(Context& context, const std::string& run, RankingModel& model,
                    const std::string& data, Report& report) {
  if (!embeds_both(model)) return;
  const PerDomain<DomainEmbeddings> after = {model.embed(kSource), model.embed(kTarget)};
  if (after[kSource].dim == 0 || after[kTarget].dim == 0) return;
  const PerDomain<DomainEmbeddings> before = model.embed_untrained();
  if (report.samples.empty()) {
    report.samples = draw_map_samples(context, model.domain(kSource), model.domain(kTarget));
  }
  const std::size_t first_gap = report.gaps.size();
  for (const std::size_t side : {kUser, kItem}) {
    report.gaps.push_back({run, report.samples[side].side, {}, {}});
    report.maps.push_back({run, report.samples[side].side,
                           map_embeddings(context, after, side, report.samples[side])});
  }
  const RunDirectory& directory = model.directory();
  const AlignmentOptions alignment = read_description(directory).config.alignment;
  for (AttributeFigures& figures : draw_attributes(context, before, after, alignment)) {
    figures.run = run;
    report.figures.push_back(std::move(figures));
  }
  const auto add_gaps = [&](const PerDomain<DomainEmbeddings>& untrained,
                            const PerDomain<DomainEmbeddings>& trained) {
    for (const std::size_t side : {kUser, kItem}) {
      const auto distance = [&](const PerDomain<DomainEmbeddings>& of) {
        return proxy_distance(context, of[kSource].view(side), of[kTarget].view(side)).distance;
      };
      DomainGap& gap = report.gaps[first_gap + side];
      if (untrained[kTarget].dim > 0) gap.before.push_back(distance(untrained));
      gap.after.push_back(distance(trained));
    }
  };
  add_gaps(before, after);
  const std::vector<RunDirectory> seeds = trainings(run);
  for (std::size_t s = 1; s < seeds.size(); ++s) {
    const auto other = open_model(context, seeds[s].path(), data);
    add_gaps(other->embed_untrained(), {other->embed(kSource), other->embed(kTarget)});
  }
}

// By what raised them: `hits` of all users whose lists were made, the most first.
std::vector<std::pair<std::string, int64_t>> sorted(const std::map<std::string, int64_t>& hits) {
  std::vector<std::pair<std::string, int64_t>> order(hits.begin(), hits.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return order;
}

// Lists of some users, and of more the hits by signal.
void add_lists(Context& context, const ReportRequest& request,
               const std::vector<std::unique_ptr<RankingModel>>& models, Report& report) {
  const Domain& domain = models[0]->domain(domain_index(request.domain));
  const std::vector<int32_t> users = users_with_something_held_out(domain);
  report.users_to_choose_from = std::ssize(users);
  const KeyedDraw draw("report", domain.name, 0);
  const std::vector<int32_t> counted = drawn_rows(users, domain.users, draw, kMostUsers);
  const std::vector<int32_t> shown = drawn_rows(users, domain.users, draw, request.users);
  const HeldOut held_out = make_held_out(domain, Split::test, Mask::automatic);
  const ReviewWords words(domain);
  report.users.resize(shown.size());
  for (std::size_t m = 0; m < models.size(); ++m) {
    const Recommender recommender(*models[m], request.domain);
    const bool of_signals = models[m]->signals(domain_index(request.domain)) != nullptr;
    std::map<std::string, int64_t> hits;
    std::size_t next = 0;  // of `shown`, which are some of `counted` in the same order
    for (const int32_t user : of_signals ? counted : shown) {
      Recommendation list = recommender.recommend(context, user, request.list.top);
      for (const RecommendedItem& item : list.items) {
        const bool hit =
            held_out.positives.contains(user, static_cast<int32_t>(domain.items.find(item.item)));
        if (hit && of_signals) ++hits[item.signal];
      }
      if (next == shown.size() || shown[next] != user) continue;
      ShownUser& mine = report.users[next++];
      if (m == 0) {
        mine.user = list.user;
        mine.history = items_of(domain.train, user, recommender, words);
        mine.validation = items_of(domain.valid, user, recommender, words);
        mine.held_out = items_of(domain.test, user, recommender, words);
      }
      mine.lists.push_back(std::move(list));
    }
    if (of_signals) report.hits.push_back({report.listed[m], std::ssize(counted), sorted(hits)});
  }
}

}  // namespace

Report make_report(Context& context, const ReportRequest& request) {
  if (request.metrics.empty()) throw Error("a report needs at least one metric; see --metrics");
  Report report;
  report.version = version();
  const CompareRequest compared{request.runs, request.metrics, request.domain};
  report.comparison = compare_runs(compared);
  report.curves = read_curves(report.comparison);
  if (!request.sweep.empty()) report.sweeps = read_sweeps(request.sweep, compared);
  report.weights = all_weights(report.comparison);

  std::vector<std::unique_ptr<RankingModel>> models;
  for (const ComparedRow& row : report.comparison.rows) {
    const RunDirectory first = trainings(row.run)[0];
    if (!is_model(first.path())) continue;
    models.push_back(open_model(context, first.path(), request.data));
    report.listed.push_back(row.run);
  }
  if (models.empty()) return report;  // scores that somebody measured: no data, no lists
  const std::size_t which = domain_index(request.domain);
  const Domain& domain = models[0]->domain(which);
  report.groups = all_groups(report.comparison, domain, request.metrics[0]);
  const ItemClasses classes = classify_items(domain);
  report.item_classes = classes.classes;
  for (std::size_t m = 0; m < models.size(); ++m) {
    report.item_shares.push_back(
        share_items(context, *models[m], which, classes, request.list.top));
    report.item_shares.back().run = report.listed[m];
    add_embeddings(context, report.listed[m], *models[m], request.data, report);
  }
  add_lists(context, request, models, report);
  return report;
}

}  // namespace cfaa
