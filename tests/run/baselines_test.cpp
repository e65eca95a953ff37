#include "host/run/baseline/baselines.h"

#include <gtest/gtest.h>

#include "host/core/error.h"
#include "host/eval/evaluation.h"
#include "host/run/baseline/matrix_factorization.h"
#include "host/run/baseline/measure_baseline.h"
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

TEST_P(Baselines, PopularityRanksByTrainingPositives) {
  const Domain domain = tiny_domain();

  SignalBaselines baselines(context(), domain);
  const std::vector<double> liked = scores(*baselines.scorer("popularity", {}), 0);

  EXPECT_GT(liked[1], liked[0]);
  EXPECT_GT(liked[0], liked[2]);
  EXPECT_EQ(liked[3], 0);
}

TEST_P(Baselines, ADislikeIsNoVote) {
  const Domain domain = tiny_domain();

  SignalBaselines baselines(context(), domain);

  EXPECT_EQ(scores(*baselines.scorer("itemknn", {}), 3), (std::vector<double>{0, 0, 0, 0}));
}

TEST_P(Baselines, NeighboursRankInBlocksAsTheyScorePairs) {
  const Domain domain = tiny_domain();
  SignalBaselines baselines(context(), domain);
  const auto scorer = baselines.scorer("itemknn", {});
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

double ndcg(Context& context, const Domain& domain, const Scorer& scorer) {
  EvaluationOptions options;
  options.ks = {5};
  options.bootstrap = 0;
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

  SignalBaselines baselines(context(), domain);
  const auto popularity = baselines.scorer("popularity", {});
  EXPECT_GT(ndcg(context(), domain, *make_scorer(context(), trained.embeddings, {})), 0.9);
  EXPECT_LT(ndcg(context(), domain, *popularity), 0.4);
  EXPECT_GT(trained.valid, 0.5);
  EXPECT_LE(trained.best_epoch, trained.epochs);
}

TEST_P(Baselines, RowsThatReadNoTextFindTheGroups) {
  const Domain domain = clustered_domain();
  for (const char* name : {"itemknn", "rp3beta", "ease", "ials"}) {
    BaselineRequest request;
    request.name = name;
    request.evaluation.eval.k = {5, 10};

    const BaselineReport report = measure_baseline(context(), domain, request);

    EXPECT_GT(metric_values(report.evaluation.evaluation.all.metrics).at("NDCG@5"), 0.9) << name;
  }
}

TEST_P(Baselines, TuningTakesTheBestOfAFixedGridOnValidation) {
  const Domain domain = clustered_domain();
  BaselineRequest request;
  request.name = "ease";
  request.tune = true;

  const BaselineReport report = measure_baseline(context(), domain, request);

  ASSERT_EQ(report.tried.size(), 8u);
  const auto best =
      std::max_element(report.tried.begin(), report.tried.end(),
                       [](const auto& a, const auto& b) { return a.valid < b.valid; });
  for (const BaselineReport::Tried& tried : report.tried) {
    EXPECT_EQ(tried.taken, &tried == &*best) << tried.description;
  }
}

TEST_P(Baselines, RefuseANameThatIsNone) {
  const Domain domain = tiny_domain();
  BaselineRequest request;
  request.name = "knn";

  EXPECT_THROW(measure_baseline(context(), domain, request), Error);
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
