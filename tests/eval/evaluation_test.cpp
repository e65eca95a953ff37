// The protocol: who is ranked, over which items, and what is reported apart.

#include "host/eval/evaluation.h"

#include <gtest/gtest.h>

#include <set>

#include "host/data/dataset.h"
#include "host/device/make_context.h"
#include "host/eval/evaluation_config.h"
#include "tests/compare.h"
#include "tests/eval/rankings.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

HeldOut random_held_out(int64_t users, int64_t items, uint64_t seed) {
  HeldOut held_out;
  held_out.items = items;
  held_out.masked = random_items(users, items, 12, seed);
  held_out.positives = random_items(users, items, 3, seed + 1);
  std::vector<std::pair<int32_t, int32_t>> apart;
  for (int64_t user = 0; user < users; ++user) {
    for (const int32_t item : held_out.positives.of(user)) {
      if (!held_out.masked.contains(user, item)) apart.emplace_back(user, item);
    }
  }
  held_out.positives = make_user_items(users, apart);
  held_out.cold_user.assign(static_cast<std::size_t>(users), 0);
  held_out.cold_item.assign(static_cast<std::size_t>(items), 0);
  for (std::size_t u = 0; u < held_out.cold_user.size(); u += 4) held_out.cold_user[u] = 1;
  for (std::size_t i = 0; i < held_out.cold_item.size(); i += 5) held_out.cold_item[i] = 1;
  return held_out;
}

class Protocol : public OnDevice {};
CFAA_TEST_ON_DEVICES(Protocol);

TEST_P(Protocol, SkipsAndCountsUsersWithoutPositives) {
  const HeldOut held_out = random_held_out(60, 200, 1);
  const auto factors = random_factors<float>(60, 200, 5, 2, 2);
  int64_t with_positives = 0;
  for (int64_t u = 0; u < 60; ++u) with_positives += held_out.positives.of(u).empty() ? 0 : 1;

  const Evaluation evaluation = evaluate(context(), factors.scorer(), held_out, {.bootstrap = 0});

  EXPECT_EQ(evaluation.all.users, with_positives);
  EXPECT_EQ(evaluation.skipped_users, 60 - with_positives);
  EXPECT_GT(evaluation.skipped_users, 0);
  EXPECT_EQ(static_cast<int64_t>(evaluation.lists.user.size()), with_positives);
  EXPECT_TRUE(evaluation.intervals.empty());
  EXPECT_TRUE(same(evaluation.lists,
                   sorted_lists(evaluation.lists.user, 200, held_out.masked, 20,
                                [&](int32_t u, int32_t i) { return factors.score(u, i); })));
}

TEST_P(Protocol, ReportsColdUsersAndItemsApart) {
  const HeldOut held_out = random_held_out(80, 150, 3);
  const auto factors = random_factors<float>(80, 150, 5, 4);

  const Evaluation evaluation = evaluate(context(), factors.scorer(), held_out, {.ks = {10}});

  int64_t cold_users = 0, cold_positives = 0, users_with_cold = 0;
  double cold_user_hits = 0, cold_item_recall = 0;
  for (std::size_t row = 0; row < evaluation.lists.user.size(); ++row) {
    const int32_t user = evaluation.lists.user[row];
    const auto list = evaluation.lists.of(row);
    const std::set<int32_t> shown(list.begin(), list.end());
    int64_t hits = 0, cold = 0, cold_hits = 0;
    for (const int32_t item : held_out.positives.of(user)) {
      hits += shown.count(item) > 0 ? 1 : 0;
      if (item % 5 != 0) continue;
      ++cold;
      cold_hits += shown.count(item) > 0 ? 1 : 0;
    }
    if (user % 4 == 0) {
      ++cold_users;
      cold_user_hits += hits > 0 ? 1 : 0;
    }
    if (cold > 0) {
      ++users_with_cold;
      cold_positives += cold;
      cold_item_recall += static_cast<double>(cold_hits) / static_cast<double>(cold);
    }
  }
  EXPECT_EQ(evaluation.cold_users.users, cold_users);
  EXPECT_TRUE(close(evaluation.cold_users.metrics[0].value[0],
                    cold_user_hits / static_cast<double>(cold_users), 1e-14));
  EXPECT_EQ(evaluation.cold_items.users, users_with_cold);
  EXPECT_EQ(evaluation.cold_items.positives, cold_positives);
  EXPECT_TRUE(close(evaluation.cold_items.metrics[0].value[1],
                    cold_item_recall / static_cast<double>(users_with_cold), 1e-14));
}

TEST_P(Protocol, SampledRankingSortsTheSampledItems) {
  const HeldOut held_out = random_held_out(50, 300, 5);
  const auto factors = random_factors<double>(50, 300, 4, 6, 2);

  const Evaluation evaluation =
      evaluate(context(), factors.scorer(), held_out, {.candidates = 40, .candidate_seed = 9});

  for (std::size_t row = 0; row < evaluation.lists.user.size(); ++row) {
    const int32_t user = evaluation.lists.user[row];
    std::vector<std::pair<double, int32_t>> order;
    for (const int32_t item : sampled_items(held_out, user, 40, 9)) {
      order.emplace_back(-factors.score(user, item), item);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(evaluation.lists.of(row)[i], order[i].second);
    }
  }
}

TEST(SampledItems, ArePositivesAndDistinctOtherItems) {
  const HeldOut held_out = random_held_out(100, 130, 7);
  for (int32_t user = 0; user < 100; ++user) {
    for (const int64_t candidates : {1, 99, 129, 1000}) {
      const auto items = sampled_items(held_out, user, candidates, 1);
      const auto positives = held_out.positives.of(user);
      const auto others =
          static_cast<int64_t>(130 - positives.size() - held_out.masked.of(user).size());

      EXPECT_EQ(static_cast<int64_t>(items.size()),
                static_cast<int64_t>(positives.size()) + std::min(candidates, others));
      EXPECT_TRUE(std::adjacent_find(items.begin(), items.end(), std::greater_equal<>()) ==
                  items.end());
      EXPECT_TRUE(std::includes(items.begin(), items.end(), positives.begin(), positives.end()));
      for (const int32_t item : items) {
        EXPECT_TRUE(item >= 0 && item < 130 && !held_out.masked.contains(user, item));
      }
    }
  }
}

TEST(SampledItems, AreDrawnUniformly) {
  HeldOut held_out;
  held_out.items = 10;
  held_out.masked = make_user_items(20000, {});
  held_out.positives = make_user_items(20000, {});
  std::vector<int> drawn(10, 0);

  for (int32_t user = 0; user < 20000; ++user) {
    for (const int32_t item : sampled_items(held_out, user, 3, 11)) {
      ++drawn[static_cast<std::size_t>(item)];
    }
  }

  // 6000 each; the standard deviation is 65.
  for (const int count : drawn) EXPECT_NEAR(count, 6000, 5 * 65);
}

TEST(SampledItems, DependOnTheSeed) {
  const HeldOut held_out = random_held_out(1, 1000, 12);

  EXPECT_EQ(sampled_items(held_out, 0, 50, 1), sampled_items(held_out, 0, 50, 1));
  EXPECT_NE(sampled_items(held_out, 0, 50, 1), sampled_items(held_out, 0, 50, 2));
}

Domain small_domain() {
  Domain domain;
  for (const char* id : {"a", "b", "c"}) domain.users.append(id);
  for (const char* id : {"p", "q", "r", "s"}) domain.items.append(id);
  const auto fill = [](SplitRows& rows, std::vector<std::array<int, 3>> values) {
    for (const auto& [user, item, label] : values) {
      rows.user.push_back(user);
      rows.item.push_back(item);
      rows.label.push_back(static_cast<float>(label));
    }
  };
  fill(domain.train, {{0, 0, 1}, {0, 1, 0}, {1, 1, 1}});
  fill(domain.valid, {{0, 2, 1}});
  fill(domain.test, {{0, 3, 1}, {1, 0, 0}, {2, 1, 1}});
  return domain;
}

TEST(HeldOut, TakesPositivesOfTheSplitAndMasksWhatWasKnown) {
  const Domain domain = small_domain();

  const HeldOut test = make_held_out(domain, Split::test, Mask::automatic);
  const HeldOut valid = make_held_out(domain, Split::valid, Mask::automatic);

  EXPECT_EQ(test.positives.item, (std::vector<int32_t>{3, 1}));
  EXPECT_EQ(test.positives.offset, (std::vector<int64_t>{0, 1, 1, 2}));
  EXPECT_EQ(test.masked.item, (std::vector<int32_t>{0, 1, 2, 1}));
  EXPECT_EQ(valid.masked.item, (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(valid.positives.item, (std::vector<int32_t>{2}));
  EXPECT_EQ(test.cold_user, (std::vector<char>{0, 0, 1}));
  EXPECT_EQ(test.cold_item, (std::vector<char>{0, 0, 1, 1}));
  EXPECT_TRUE(make_held_out(domain, Split::test, Mask::none).masked.item.empty());
  EXPECT_EQ(make_held_out(domain, Split::test, Mask::train).masked.item,
            (std::vector<int32_t>{0, 1, 1}));
}

TEST(HeldOut, MasksRowsWithoutALabelInEveryRanking) {
  Domain domain = small_domain();
  domain.train.label[0] = kNoLabel;
  domain.valid.label[0] = kNoLabel;

  const HeldOut valid = make_held_out(domain, Split::valid, Mask::automatic);
  const HeldOut test = make_held_out(domain, Split::test, Mask::train);

  EXPECT_TRUE(valid.positives.item.empty());
  EXPECT_EQ(valid.masked.item, (std::vector<int32_t>{0, 1, 2, 1}));
  EXPECT_EQ(test.masked.item, (std::vector<int32_t>{0, 1, 2, 1}));
  EXPECT_EQ(test.cold_item, (std::vector<char>{1, 0, 1, 1})) << "item 0 has no label left";
}

TEST(EvaluationConfig, SortsTheLengthsAndRefusesOthers) {
  EvaluationConfig config;
  OptionSet set = evaluation_option_set(config);
  for (const char* same : {"20,5,10,5", "20 5 10 5", "[20, 5, 10, 5]"}) {
    set.set("k", same, "--k");
    EXPECT_EQ(config.options().ks, (std::vector<int64_t>{5, 10, 20})) << same;
  }
  for (const char* wrong : {"0", "5;10", "-1", "ten", "1025", "5,0", "1.5"}) {
    EXPECT_THROW(set.set("k", wrong, "--k"), Error) << wrong;
  }
  config.k.clear();
  EXPECT_THROW(config.options(), Error);
}

}  // namespace
}  // namespace cfaa::test
