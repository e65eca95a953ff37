#include "host/data/steps.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "host/core/error.h"
#include "tests/data/raw_reviews.h"

namespace cfaa::test {
namespace {

// Rows of a domain from reviews, through the reader, so that ids and orders are the real ones.
Interactions interactions(const std::vector<Review>& reviews) {
  const TemporaryFolder folder;
  write_text(folder.path("f"), as_json_2014(reviews));
  ThreadPool pool(2);
  ReadReport report;
  return read_reviews({{folder.path("f")}}, {}, pool, report);
}

using Pair = std::pair<std::string, std::string>;

std::multiset<Pair> pairs(const Interactions& domain) {
  std::multiset<Pair> result;
  for (const Interaction& row : domain.rows) {
    result.emplace(domain.users[row.user], domain.items[row.item]);
  }
  return result;
}

// The k-core by its definition: passes over everything until nothing changes.
std::multiset<Pair> core_by_definition(std::multiset<Pair> rows, const CoreMinima& minima) {
  for (;;) {
    std::map<std::string, int64_t> users, items;
    for (const auto& [user, item] : rows) ++users[user], ++items[item];
    const std::size_t before = rows.size();
    std::erase_if(rows, [&](const Pair& row) {
      return users[row.first] < minima.user || items[row.second] < minima.item;
    });
    if (rows.size() == before) return rows;
  }
}

class CoreOfRandomRows : public testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(CoreOfRandomRows, IsTheFixpointOfRemovingWhatIsTooSmall) {
  const auto [rows, user, item] = GetParam();
  const CoreMinima minima{user, item};
  for (unsigned seed = 0; seed < 20; ++seed) {
    Interactions domain = interactions(random_reviews(rows, 40, 30, seed, "x"));
    remove_duplicates(domain, Duplicates::latest, "source");
    const std::multiset<Pair> expected = core_by_definition(pairs(domain), minima);

    keep_core(domain, minima);
    const std::multiset<Pair> once = pairs(domain);
    keep_core(domain, minima);

    EXPECT_EQ(once, expected);
    EXPECT_EQ(pairs(domain), once);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CoreOfRandomRows,
                         testing::Values(std::tuple(200, 3, 3), std::tuple(400, 5, 5),
                                         std::tuple(400, 2, 9), std::tuple(400, 9, 1),
                                         std::tuple(50, 0, 0), std::tuple(100, 30, 30)));

// A chain that unravels from its end, a user at a time against the order of the rows, beside a
// block that stays: passes from front to back alone would need as many as it has users.
TEST(Core, AChainThatUnravelsAgainstTheOrderOfRowsGoesToItsEnd) {
  constexpr uint32_t kChain = 200000, kBlock = 3;
  Interactions domain;
  domain.users.resize(kChain + kBlock);
  domain.items.resize(kChain + 1 + kBlock);
  for (uint32_t u = 0; u < kChain; ++u) {
    domain.rows.push_back({.user = u, .item = u});
    domain.rows.push_back({.user = u, .item = u + 1});
  }
  domain.rows.push_back({.user = 0, .item = kChain + 1});  // the front hangs on the block
  for (uint32_t u = kChain; u < kChain + kBlock; ++u) {
    for (uint32_t i = 0; i < kBlock; ++i)
      domain.rows.push_back({.user = u, .item = kChain + 1 + i});
  }

  keep_core(domain, {2, 2});

  ASSERT_EQ(domain.rows.size(), std::size_t{kBlock * kBlock});
  for (const Interaction& row : domain.rows) EXPECT_GE(row.user, kChain);
}

TEST_P(CoreOfRandomRows, IsTheSameWhereRowsLieInAFile) {
  const auto [rows, user, item] = GetParam();
  const TemporaryFolder folder;
  const auto spool = std::make_shared<Spool>(folder.path(), 0);
  for (unsigned seed = 0; seed < 20; ++seed) {
    Interactions domain = interactions(random_reviews(rows * 10, 300, 200, seed, "x"));
    remove_duplicates(domain, Duplicates::latest, "source");
    Interactions on_disk = domain;
    on_disk.rows =
        InteractionRows(domain.rows.begin(), domain.rows.end(), SpoolAllocator<Interaction>(spool));
    ASSERT_GT(spool->on_disk(), 0u);
    const std::multiset<Pair> expected = core_by_definition(pairs(domain), {user, item});

    keep_core(on_disk, {user, item});

    EXPECT_EQ(pairs(on_disk), expected);
  }
}

TEST(Core, NoLargerSetHoldsTheMinima) {
  // Maximal: adding back any removed rows and shrinking again gives the same core.
  const CoreMinima minima{3, 4};
  Interactions domain = interactions(random_reviews(300, 40, 30, 5, "x"));
  remove_duplicates(domain, Duplicates::latest, "source");
  const std::multiset<Pair> all = pairs(domain);
  keep_core(domain, minima);
  const std::multiset<Pair> core = pairs(domain);
  std::mt19937 random(1);

  for (int round = 0; round < 50; ++round) {
    std::multiset<Pair> more = core;
    for (const Pair& row : all) {
      if (!core.contains(row) && random() % 2 == 0) more.insert(row);
    }
    EXPECT_EQ(core_by_definition(more, minima), core);
  }
}

TEST(Duplicates, TheLatestOrTheEarliestReviewOfAPairStays) {
  const std::vector<Review> reviews = {{"u", "i", 1, 200, "second"},
                                       {"u", "i", 5, 300, "third"},
                                       {"u", "i", 3, 100, "first"},
                                       {"u", "j", 2, 100, "other"}};
  Interactions latest = interactions(reviews), earliest = interactions(reviews);

  remove_duplicates(latest, Duplicates::latest, "source");
  remove_duplicates(earliest, Duplicates::earliest, "source");

  ASSERT_EQ(latest.rows.size(), 2u);
  EXPECT_EQ(latest.rows[0].review(), "third");
  EXPECT_EQ(earliest.rows[0].review(), "first");
  Interactions refused = interactions(reviews);
  EXPECT_THROW(remove_duplicates(refused, Duplicates::error, "source"), Error);
}

TEST(Overlap, CommonIdsGoFromTheDomainThatWasAsked) {
  const std::vector<Review> a = {{"u", "i", 5, 1, ""}, {"v", "j", 5, 1, ""}, {"w", "k", 5, 1, ""}};
  const std::vector<Review> b = {{"u", "x", 5, 1, ""}, {"y", "j", 5, 1, ""}, {"z", "z", 5, 1, ""}};
  Interactions source = interactions(a), target = interactions(b);

  const OverlapCounts common = resolve_overlap(source, target, Overlap::separate);
  EXPECT_EQ(common.users, 1);
  EXPECT_EQ(common.items, 1);
  EXPECT_EQ(target.rows.size(), 3u);
  EXPECT_THROW(resolve_overlap(source, target, Overlap::error), Error);

  resolve_overlap(source, target, Overlap::drop_target);
  EXPECT_EQ(pairs(target), (std::multiset<Pair>{{"z", "z"}}));
  EXPECT_EQ(source.rows.size(), 3u);

  Interactions again = interactions(b);
  resolve_overlap(source, again, Overlap::drop_source);
  EXPECT_EQ(pairs(source), (std::multiset<Pair>{{"w", "k"}}));
  EXPECT_EQ(again.rows.size(), 3u);
}

TEST(Split, SharesComeOutAndDependOnTheSeedAlone) {
  Interactions domain = interactions(random_reviews(20000, 400, 300, 3, "x"));
  remove_duplicates(domain, Duplicates::latest, "source");
  const SplitShares shares{0.7, 0.2, 0.1};

  const auto first = split(domain, "source", SplitRule::ratio, shares, 1);
  const auto other = split(domain, "source", SplitRule::ratio, shares, 2);
  const auto target = split(domain, "target", SplitRule::ratio, shares, 1);

  const auto share = [&](Split s) {
    return static_cast<double>(std::count(first.begin(), first.end(), s)) /
           static_cast<double>(first.size());
  };
  EXPECT_NEAR(share(Split::train), 0.7, 0.02);
  EXPECT_NEAR(share(Split::valid), 0.2, 0.02);
  EXPECT_NEAR(share(Split::test), 0.1, 0.02);
  EXPECT_NE(first, other);
  EXPECT_NE(first, target);
}

TEST(Split, OfAPairDoesNotDependOnTheOtherRows) {
  Interactions all = interactions(random_reviews(3000, 100, 80, 4, "x"));
  remove_duplicates(all, Duplicates::latest, "source");
  Interactions core = interactions(random_reviews(3000, 100, 80, 4, "x"));
  remove_duplicates(core, Duplicates::latest, "source");
  keep_core(core, {9, 9});
  const auto named = [](const Interactions& domain, const std::vector<Split>& splits) {
    std::map<Pair, Split> result;
    for (std::size_t r = 0; r < splits.size(); ++r) {
      result[{std::string(domain.users[domain.rows[r].user]),
              std::string(domain.items[domain.rows[r].item])}] = splits[r];
    }
    return result;
  };

  const auto whole = named(all, split(all, "source", SplitRule::ratio, {}, 0));
  const auto part = named(core, split(core, "source", SplitRule::ratio, {}, 0));

  ASSERT_GT(part.size(), 100u);
  ASSERT_LT(part.size(), whole.size());
  for (const auto& [pair, s] : part) EXPECT_EQ(whole.at(pair), s);
}

TEST(Split, LeaveOneOutHoldsTheLatestRowsOfEachUser) {
  Interactions domain = interactions(random_reviews(800, 60, 50, 6, "x"));
  remove_duplicates(domain, Duplicates::latest, "source");

  const auto splits = split(domain, "source", SplitRule::leave_one_out, {}, 0);

  std::map<uint32_t, std::map<Split, std::vector<int64_t>>> of_user;
  for (std::size_t r = 0; r < splits.size(); ++r) {
    of_user[domain.rows[r].user][splits[r]].push_back(domain.rows[r].time);
  }
  for (auto& [user, times] : of_user) {
    const std::size_t rows =
        times[Split::train].size() + times[Split::valid].size() + times[Split::test].size();
    EXPECT_EQ(times[Split::test].size(), rows >= 3 ? 1u : 0u);
    EXPECT_EQ(times[Split::valid].size(), rows >= 3 ? 1u : 0u);
    if (rows < 3) continue;
    EXPECT_LE(times[Split::valid][0], times[Split::test][0]);
    for (const int64_t time : times[Split::train]) EXPECT_LE(time, times[Split::valid][0]);
  }
}

TEST(Split, ByTimeNothingInTrainingIsLaterThanWhatIsHeldOut) {
  Interactions domain = interactions(random_reviews(800, 60, 50, 6, "x"));
  remove_duplicates(domain, Duplicates::latest, "source");

  const auto splits = split(domain, "source", SplitRule::time, {0.8, 0.1, 0.1}, 0);

  int64_t latest[3] = {0, 0, 0}, earliest[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
  for (std::size_t r = 0; r < splits.size(); ++r) {
    const auto s = static_cast<std::size_t>(splits[r]);
    latest[s] = std::max(latest[s], domain.rows[r].time);
    earliest[s] = std::min(earliest[s], domain.rows[r].time);
  }
  EXPECT_LE(latest[0], earliest[1]);
  EXPECT_LE(latest[1], earliest[2]);
  EXPECT_EQ(std::count(splits.begin(), splits.end(), Split::train),
            std::llround(0.8 * static_cast<double>(splits.size())));
}

TEST(Labels, ADrawThinsTrainingAndValidationAndLeavesTheTestSplitWhole) {
  Interactions domain = interactions(random_reviews(6000, 100, 80, 7, "x"));
  remove_duplicates(domain, Duplicates::latest, "target");
  const auto splits = split(domain, "target", SplitRule::ratio, {}, 0);

  const auto labelled = draw_labels(domain, splits, "target", 0.3, 0, 0);

  const auto share = [&](Split of) {
    double kept = 0, all = 0;
    for (std::size_t r = 0; r < splits.size(); ++r) {
      kept += splits[r] == of && labelled[r] != 0;
      all += splits[r] == of;
    }
    return kept / all;
  };
  EXPECT_NEAR(share(Split::train), 0.3, 0.05);
  EXPECT_NEAR(share(Split::valid), 0.3, 0.1);
  EXPECT_EQ(share(Split::test), 1);
}

TEST(Labels, ALargerShareKeepsWhatASmallerOneKeptAndAnotherDrawDoesNot) {
  Interactions domain = interactions(random_reviews(3000, 100, 80, 7, "x"));
  remove_duplicates(domain, Duplicates::latest, "target");
  const auto splits = split(domain, "target", SplitRule::ratio, {}, 0);

  const auto few = draw_labels(domain, splits, "target", 0.2, 0, 5);
  const auto many = draw_labels(domain, splits, "target", 0.6, 0, 5);
  const auto other = draw_labels(domain, splits, "target", 0.6, 1, 5);

  for (std::size_t r = 0; r < few.size(); ++r) EXPECT_LE(few[r], many[r]);
  EXPECT_NE(many, other);
}

TEST(Sparsify, ALargerShareKeepsWhatASmallerOneKept) {
  Interactions small = interactions(random_reviews(3000, 100, 80, 7, "x"));
  remove_duplicates(small, Duplicates::latest, "target");
  Interactions large = small;

  keep_share(small, "target", 0.2, 5);
  keep_share(large, "target", 0.6, 5);

  const auto few = pairs(small), many = pairs(large);
  EXPECT_TRUE(std::includes(many.begin(), many.end(), few.begin(), few.end()));
  EXPECT_LT(few.size(), many.size());
}

}  // namespace
}  // namespace cfaa::test
