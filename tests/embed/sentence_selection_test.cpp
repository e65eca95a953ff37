#include "host/embed/sentence_selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bench/reference/inputs.h"

namespace {

using namespace cfaa;

std::vector<int32_t> select(const std::vector<float>& values, int64_t width,
                            const SelectionOptions& options = {}, uint64_t entity = 0) {
  const auto n = static_cast<int64_t>(values.size()) / width;
  return select_sentences({values.data(), {n, width}}, options, entity);
}

TEST(SentenceSelection, TakesTheMiddleOfEachClusterAndTheFirstSentence) {
  // three around 0, three around 100, whatever the start: K = floor(0.4 * 6) = 2
  const std::vector<float> values = {-2, 0, 1.9f, 98, 100, 103};

  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(select(values, 1, {.seed = seed}), (std::vector<int32_t>{0, 1, 4})) << seed;
  }
}

TEST(SentenceSelection, OneClusterTakesTheSentenceNearestToTheMean) {
  EXPECT_EQ(select({0, 5, 9}, 1, {.share = 0.4}), (std::vector<int32_t>{0, 1}));
}

TEST(SentenceSelection, OneSentenceIsTakenAndNoneGivesNone) {
  EXPECT_EQ(select({3, 4}, 2), (std::vector<int32_t>{0}));
  EXPECT_TRUE(select({}, 2).empty());
}

TEST(SentenceSelection, EqualSentencesAreTakenOnceEach) {
  const auto chosen = select(std::vector<float>(10, 7.0f), 1);

  EXPECT_EQ(chosen, (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(SentenceSelection, CountsFollowTheShare) {
  const auto values = reference::normal<float>(50 * 8, 1);
  for (const double share : {0.1, 0.4, 1.0}) {
    const auto chosen = select(values, 8, {.share = share});

    const auto wanted = static_cast<std::size_t>(share * 50);
    EXPECT_GE(chosen.size(), wanted) << share;
    EXPECT_LE(chosen.size(), wanted + 1) << share;
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    EXPECT_EQ(chosen.front(), 0);
    EXPECT_EQ(std::set<int32_t>(chosen.begin(), chosen.end()).size(), chosen.size());
  }
}

TEST(SentenceSelection, DependsOnSeedAndEntityAlone) {
  const auto values = reference::normal<float>(40 * 8, 2);

  EXPECT_EQ(select(values, 8, {.seed = 1}, 5), select(values, 8, {.seed = 1}, 5));
  EXPECT_NE(select(values, 8, {.seed = 1}, 5), select(values, 8, {.seed = 2}, 5));
  EXPECT_NE(select(values, 8, {.seed = 1}, 5), select(values, 8, {.seed = 1}, 6));
}

}  // namespace
