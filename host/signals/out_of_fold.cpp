#include "host/signals/out_of_fold.h"

#include <algorithm>
#include <cmath>

#include "host/data/keyed_draw.h"

namespace cfaa {
namespace {

constexpr uint64_t kCandidateStream = 0x63616E64;  // + fold: each fold draws its own

// One user's held-out positives of a fold, and the items they are compared with.
struct Group {
  int32_t user = 0;
  std::vector<int32_t> positives, negatives;
  float stands_for = 1;
};

// `count` of the items in ascending order, by Floyd's sampling with numbers of (user, fold).
std::vector<int32_t> draw(const std::vector<int32_t>& items, int64_t count, const Philox& random,
                          int32_t user, uint64_t stream) {
  const auto n = static_cast<int64_t>(items.size());
  std::vector<char> taken(items.size());
  for (int64_t j = n - count; j < n; ++j) {
    const uint64_t counter = (static_cast<uint64_t>(user) << 32) | static_cast<uint64_t>(j);
    const auto t = random.below(static_cast<uint64_t>(j) + 1, counter, stream);
    taken[taken[t] != 0 ? static_cast<std::size_t>(j) : t] = 1;
  }
  std::vector<int32_t> drawn;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (taken[i] != 0) drawn.push_back(items[i]);
  }
  return drawn;
}

// The users with held-out positives, in ascending order. `rows` are sorted by user; those for which
// held_out(row) holds are. Items that the user has in `known` are no negatives.
template <class Chosen>
std::vector<Group> make_groups(const SparseRows& known, const SplitRows& rows, Chosen held_out,
                               const FoldOptions& options, uint64_t stream) {
  const Philox random{options.seed};
  std::vector<Group> groups;
  std::vector<char> passed_over(static_cast<std::size_t>(known.columns));
  for (std::size_t begin = 0, end = 0; begin < rows.user.size(); begin = end) {
    Group group;
    group.user = rows.user[begin];
    // A disliked item that is held out is like any other that the user does not have.
    for (; end < rows.user.size() && rows.user[end] == group.user; ++end) {
      if (held_out(end) && rows.label[end] > 0) group.positives.push_back(rows.item[end]);
    }
    if (group.positives.empty()) continue;
    const auto mark = [&](char value) {
      for (const int32_t item : known.columns_of(group.user)) {
        passed_over[static_cast<std::size_t>(item)] = value;
      }
      for (const int32_t item : group.positives)
        passed_over[static_cast<std::size_t>(item)] = value;
    };
    mark(1);
    for (std::size_t i = 0; i < passed_over.size(); ++i) {
      if (passed_over[i] == 0) group.negatives.push_back(static_cast<int32_t>(i));
    }
    mark(0);
    const auto all = static_cast<int64_t>(group.negatives.size());
    if (all > options.candidates) {
      group.negatives = draw(group.negatives, options.candidates, random, group.user, stream);
      group.stands_for = static_cast<float>(all) / static_cast<float>(options.candidates);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// Where a fold has more users than it may, those with the lowest keyed numbers.
void keep_some(std::vector<Group>& groups, int64_t most, const Domain& domain, int32_t fold,
               uint64_t seed) {
  if (static_cast<int64_t>(groups.size()) <= most) return;
  const KeyedDraw draw("fold users " + std::to_string(fold), domain.name,
                       static_cast<int64_t>(seed));
  const auto number = [&](const Group& g) { return draw.bits(domain.users[g.user], ""); };
  std::nth_element(groups.begin(), groups.begin() + most, groups.end(),
                   [&](const Group& a, const Group& b) { return number(a) < number(b); });
  groups.resize(static_cast<std::size_t>(most));
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.user < b.user; });
}

void append(ListwiseGroups& all, const std::vector<Group>& groups, Context& context,
            const ScaledSignals& made) {
  const std::size_t signals = made.signals.size();
  const std::size_t items = static_cast<std::size_t>(made.evidence.items());
  const std::size_t first = all.stands_for.size();
  for (const Group& group : groups) {
    all.positive_offset.push_back(all.positive_offset.back() +
                                  static_cast<int64_t>(group.positives.size()));
    all.negative_offset.push_back(all.negative_offset.back() +
                                  static_cast<int64_t>(group.negatives.size()));
    all.stands_for.push_back(group.stands_for);
  }
  all.positives.resize(static_cast<std::size_t>(all.positive_offset.back()) * signals);
  all.negatives.resize(static_cast<std::size_t>(all.negative_offset.back()) * signals);
  context.threads().parallel_for(
      static_cast<int64_t>(groups.size()), 8, [&](int64_t begin, int64_t end, int) {
        std::vector<double> rows(signals * items);
        for (int64_t g = begin; g < end; ++g) {
          const Group& group = groups[static_cast<std::size_t>(g)];
          const std::size_t at = first + static_cast<std::size_t>(g);
          scaled_rows(made, group.user, rows.data());
          const std::size_t liked = made.evidence.liked.columns_of(group.user).size();
          const double shrink = 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(1, liked)));
          const auto copy = [&](const std::vector<int32_t>& chosen, float* out) {
            for (const int32_t item : chosen) {
              for (std::size_t s = 0; s < signals; ++s) {
                *out++ =
                    static_cast<float>(shrink * rows[s * items + static_cast<std::size_t>(item)]);
              }
            }
          };
          copy(group.positives,
               all.positives.data() + static_cast<std::size_t>(all.positive_offset[at]) * signals);
          copy(group.negatives,
               all.negatives.data() + static_cast<std::size_t>(all.negative_offset[at]) * signals);
        }
      });
}

}  // namespace

ScaledSignals make_scaled_signals(Context& context, const ReviewedDomain& reviewed,
                                  std::span<const SignalName> names, const SignalOptions& options,
                                  std::span<const char> used) {
  ScaledSignals made;
  made.evidence = gather_evidence(context.threads(), reviewed, used);
  for (const SignalName name : names) {
    made.signals.push_back(make_signal(context, made.evidence, name, options));
    const double spread = spread_within_rows(context, made.signals.back(), made.evidence);
    made.scale.push_back(spread > 0 ? spread : 1);
  }
  return made;
}

void scaled_rows(const ScaledSignals& made, int32_t user, double* rows) {
  const auto items = static_cast<std::size_t>(made.evidence.items());
  std::fill_n(rows, made.signals.size() * items, 0.0);
  for (std::size_t s = 0; s < made.signals.size(); ++s) {
    add_signal_row(made.signals[s], signal_user(made.signals[s], made.evidence, user),
                   1 / made.scale[s], rows + s * items);
  }
}

std::vector<int32_t> folds_of_rows(const Domain& domain, const FoldOptions& options) {
  const KeyedDraw draw("fold", domain.name, static_cast<int64_t>(options.seed));
  std::vector<int32_t> fold(domain.train.user.size());
  for (std::size_t row = 0; row < fold.size(); ++row) {
    const uint64_t bits =
        draw.bits(domain.users[domain.train.user[row]], domain.items[domain.train.item[row]]);
    fold[row] = static_cast<int32_t>(bits % static_cast<uint64_t>(options.folds));
  }
  return fold;
}

ListwiseGroups held_out_groups(Context& context, const ReviewedDomain& reviewed,
                               const ScaledSignals& made, const SplitRows& rows,
                               const FoldOptions& options) {
  std::vector<Group> groups = make_groups(
      made.evidence.known, rows, [](std::size_t) { return true; }, options, kCandidateStream);
  keep_some(groups, options.groups, *reviewed.domain, 0, options.seed);
  ListwiseGroups all;
  all.signals = static_cast<int64_t>(made.signals.size());
  append(all, groups, context, made);
  return all;
}

ListwiseGroups out_of_fold_groups(Context& context, const ReviewedDomain& reviewed,
                                  std::span<const SignalName> names, const SignalOptions& options,
                                  const FoldOptions& folds, std::span<const char> kept) {
  const Domain& domain = *reviewed.domain;
  const std::vector<int32_t> fold = folds_of_rows(domain, folds);
  ListwiseGroups all;
  all.signals = static_cast<int64_t>(names.size());
  for (int32_t which = 0; which < folds.folds; ++which) {
    std::vector<char> used(fold.size());
    const auto counts = [&](std::size_t row) { return kept.empty() || kept[row] != 0; };
    for (std::size_t row = 0; row < used.size(); ++row)
      used[row] = fold[row] != which && counts(row);
    const ScaledSignals made = make_scaled_signals(context, reviewed, names, options, used);
    std::vector<Group> groups = make_groups(
        made.evidence.known, domain.train,
        [&](std::size_t row) { return fold[row] == which && counts(row); }, folds,
        kCandidateStream + 1 + static_cast<uint64_t>(which));
    keep_some(groups, std::max<int64_t>(1, folds.groups / folds.folds), domain, which, folds.seed);
    append(all, groups, context, made);
  }
  return all;
}

}  // namespace cfaa
