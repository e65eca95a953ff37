#include "host/run/baselines.h"

#include <gtest/gtest.h>

#include "host/core/error.h"
#include "host/eval/evaluation.h"
#include "host/run/matrix_factorization.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

struct Interaction {
  int32_t user, item;
  float label = 1;
};

void add(SplitRows& rows, const std::vector<Interaction>& interactions) {
  for (const Interaction& one : interactions) {
    rows.user.push_back(one.user);
    rows.item.push_back(one.item);
    rows.label.push_back(one.label);
    rows.rating.push_back(one.label > 0 ? 5 : 1);
    rows.time.push_back(0);
  }
}

Domain make_domain(int64_t users, int64_t items) {
  Domain domain;
  domain.name = "target";
  for (int64_t u = 0; u < users; ++u) domain.users.append("u" + std::to_string(1000 + u));
  for (int64_t i = 0; i < items; ++i) domain.items.append("i" + std::to_string(1000 + i));
  return domain;
}

// Users 0 and 1 like items 0 and 1, user 2 likes 1 and 2; user 3 dislikes 0; nobody knows item 3.
Domain tiny_domain() {
  Domain domain = make_domain(4, 4);
  add(domain.train, {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 0, 0}});
  return domain;
}

std::vector<double> scores(const Scorer& scorer, int32_t user) {
  std::vector<int32_t> items(static_cast<std::size_t>(scorer.items()));
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = static_cast<int32_t>(i);
  std::vector<double> result(items.size());
  scorer.score(user, items, result.data());
  return result;
}

class Baselines : public OnDevice {};
CFAA_TEST_ON_DEVICES(Baselines);

TEST_P(Baselines, PopularityCountsTrainingPositives) {
  const Domain domain = tiny_domain();

  const DomainEmbeddings embeddings = popularity_embeddings(domain);

  EXPECT_EQ(embeddings.z[kItem], (std::vector<float>{2, 3, 1, 0}));
  EXPECT_EQ(embeddings.z[kUser], (std::vector<float>{1, 1, 1, 1}));
}

TEST_P(Baselines, ItemSimilarityIsTheShrunkCosine) {
  BaselineOptions options;
  options.shrink = 0.5;
  const Domain domain = tiny_domain();

  const ItemNeighbours neighbours(context(), domain, options);

  const double s01 = 2 / (std::sqrt(6.0) + 0.5), s12 = 1 / (std::sqrt(3.0) + 0.5);
  const auto scorer = neighbours.scorer();
  EXPECT_TRUE(close(scores(*scorer, 0), std::vector<double>{s01, s01, s12, 0}, 1e-7));
  EXPECT_TRUE(close(scores(*scorer, 2), std::vector<double>{s01, s12, s12, 0}, 1e-7));
  EXPECT_EQ(scores(*scorer, 3), (std::vector<double>{0, 0, 0, 0})) << "a dislike is no vote";
}

TEST_P(Baselines, OnlyTheMostSimilarItemsVote) {
  BaselineOptions options;
  options.shrink = 0;
  options.neighbours = 1;
  const Domain domain = tiny_domain();

  const ItemNeighbours neighbours(context(), domain, options);

  // Item 1's one neighbour is 0, so that 2 has no vote for it; item 2's is 1.
  const auto scorer = neighbours.scorer();
  const double s01 = 2 / std::sqrt(6.0), s12 = 1 / std::sqrt(3.0);
  EXPECT_TRUE(close(scores(*scorer, 2), std::vector<double>{s01, 0, s12, 0}, 1e-7));
}

TEST_P(Baselines, NeighboursRankInBlocksAsTheyScorePairs) {
  const Domain domain = tiny_domain();
  const ItemNeighbours neighbours(context(), domain, {});
  const auto scorer = neighbours.scorer();
  RankingOptions ranking;
  ranking.k = 4;
  ranking.user_block = 1;
  ranking.item_block = 3;

  const std::vector<int32_t> users = {0, 2};
  const Lists lists = scorer->rank(context(), users, make_user_items(4, {}), ranking);

  for (std::size_t row = 0; row < users.size(); ++row) {
    const std::vector<double> expected = scores(*scorer, users[row]);
    for (std::size_t i = 0; i < 4; ++i) {
      const auto item = static_cast<std::size_t>(lists.item[row * 4 + i]);
      EXPECT_EQ(lists.score[row * 4 + i], expected[item]);
    }
  }
}

// Four groups of users, each of which likes its own quarter of the items; one item of each user is
// held out for validation and one for the test.
Domain clustered_domain() {
  constexpr int64_t kUsers = 48, kItems = 32, kGroups = 4, kOwn = kItems / kGroups;
  Domain domain = make_domain(kUsers, kItems);
  for (int32_t user = 0; user < kUsers; ++user) {
    const auto first = static_cast<int32_t>(user % kGroups * kOwn);
    for (int32_t i = 0; i < kOwn; ++i) {
      SplitRows& rows = i == user / 4 % kOwn         ? domain.test
                        : i == (user / 4 + 3) % kOwn ? domain.valid
                                                     : domain.train;
      add(rows, {{user, first + i}});
    }
  }
  return domain;
}

double ndcg(Context& context, const Domain& domain, const DomainEmbeddings& embeddings) {
  EvaluationOptions options;
  options.ks = {5};
  options.bootstrap = 0;
  const DotScorer<float> scorer(embeddings.view(kUser), embeddings.view(kItem));
  const HeldOut held_out = make_held_out(domain, Split::test, Mask::automatic);
  return evaluate(context, scorer, held_out, options).all.metrics[0].value[2];
}

BaselineOptions small_factorization() {
  BaselineOptions options;
  options.dim = 8;
  options.learning_rate = 0.02;
  options.weight_decay = 0.1;
  options.batch_size = 64;
  options.epochs = 15;
  options.negatives = 2;
  return options;
}

TEST_P(Baselines, FactorizationFindsGroupsThatPopularityCannot) {
  const Domain domain = clustered_domain();

  const Factorization trained = factorize(context(), domain, small_factorization());

  EXPECT_GT(ndcg(context(), domain, trained.embeddings), 0.9);
  EXPECT_LT(ndcg(context(), domain, popularity_embeddings(domain)), 0.4);
  EXPECT_GT(trained.valid, 0.5);
  EXPECT_LE(trained.best_epoch, trained.epochs);
}

TEST_P(Baselines, FactorizationHasTheBitsOfItsSeed) {
  const Domain domain = clustered_domain();
  BaselineOptions options = small_factorization();
  options.epochs = 2;

  const Factorization first = factorize(context(), domain, options);
  const Factorization again = factorize(context(), domain, options);
  options.seed = 1;
  const Factorization other = factorize(context(), domain, options);

  EXPECT_EQ(first.embeddings.z, again.embeddings.z);
  EXPECT_NE(first.embeddings.z, other.embeddings.z);
}

TEST_P(Baselines, FactorizationStopsWithoutImprovement) {
  const Domain domain = clustered_domain();
  BaselineOptions options = small_factorization();
  options.learning_rate = 1e-12;
  options.patience = 3;

  const Factorization trained = factorize(context(), domain, options);

  EXPECT_EQ(trained.best_epoch, 1);
  EXPECT_EQ(trained.epochs, 4);
}

TEST_P(Baselines, FactorizationRefusesADomainWithoutPositives) {
  Domain domain = make_domain(2, 2);
  add(domain.train, {{0, 0, 0}});

  EXPECT_THROW(factorize(context(), domain, {}), Error);
}

}  // namespace
}  // namespace cfaa::test
