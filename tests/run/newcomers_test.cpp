// Users whom training never saw.

#include "host/run/newcomers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/device/make_context.h"
#include "host/run/run.h"
#include "tests/run/small_runs.h"

namespace cfaa::test {
namespace {

using testing::ElementsAre;

// The training reviews of a user, as somebody who is new would give them.
std::vector<NewReview> training_reviews(const Domain& domain, const std::string& user,
                                        const std::string& name) {
  const ReviewTextFile texts(domain.text_path(Split::train));
  std::vector<NewReview> reviews;
  const SplitRows& rows = domain.train;
  for (std::size_t row = 0; row < rows.user.size(); ++row) {
    if (domain.users[rows.user[row]] != user) continue;
    reviews.push_back({name, std::string(domain.items[rows.item[row]]),
                       std::string(texts.text(static_cast<int64_t>(row))), rows.rating[row]});
  }
  return reviews;
}

void expect_equal_items(const Recommendation& known, const Recommendation& fresh) {
  ASSERT_EQ(known.items.size(), fresh.items.size());
  for (std::size_t i = 0; i < known.items.size(); ++i) {
    EXPECT_EQ(known.items[i].item, fresh.items[i].item) << i;
    EXPECT_EQ(known.items[i].score, fresh.items[i].score) << i;
    EXPECT_EQ(known.items[i].signal, fresh.items[i].signal) << i;
    EXPECT_EQ(known.items[i].because, fresh.items[i].because) << i;
    EXPECT_EQ(known.items[i].own_words, fresh.items[i].own_words) << i;
  }
}

class NewcomersOf : public SmallRuns {
 protected:
  // Validation rows are masked for a known user, so there are none.
  NewcomersOf() {
    for (const std::string name : {"source", "target"}) {
      const std::string header =
          "user_id:token\titem_id:token\trating:float\tlabel:float\ttimestamp:float\n";
      write_text(path("data/" + name + "/" + name + ".valid.inter"), header);
    }
  }
  std::unique_ptr<RankingModel> signal_run() {
    const Outcome trained =
        run_program("train " + path("data") + " --out " + path("run") + " --threads 2");
    EXPECT_EQ(trained.code, 0) << trained.err;
    return open_model(*context_, path("run"));
  }

  std::unique_ptr<Context> context_ = make_context("cpu", {2, 0});
};

TEST_F(NewcomersOf, SignalsHaveTheListOfAKnownUserWithTheSameReviews) {
  const auto run = signal_run();
  for (const char* domain : {"target", "source"}) {
    const Newcomers newcomers(*context_, *run, domain);
    const Domain& of = run->domain(domain_index(domain));
    std::vector<NewReview> two = training_reviews(of, "u103", "zoe");
    std::ranges::copy(training_reviews(of, "u110", "ann"), std::back_inserter(two));

    const NewUserLists made = newcomers.lists(*context_, two);

    ASSERT_EQ(made.users.size(), 2u);
    EXPECT_EQ(made.users[0].user, "zoe");
    const RecommendRequest request{domain, 10};
    expect_equal_items(recommend(*context_, *run, "u103", request), made.users[0]);
    expect_equal_items(recommend(*context_, *run, "u110", request), made.users[1]);
  }
}

TEST_F(NewcomersOf, UnknownItemsAreCountedAndNamedAndTheirTextCounts) {
  const auto run = signal_run();
  const Newcomers newcomers(*context_, *run);
  const std::vector<NewReview> reviews = {
      {"ann", "gone", "strings maker1 maker2", 5},
      {"ann", "i100", "", 5},
      {"bob", "elsewhere", "drums maker1 maker0", 5},
      {"bob", "gone", "", 5},
  };

  const NewUserLists made = newcomers.lists(*context_, reviews, 4);

  EXPECT_EQ(made.reviews, 4);
  EXPECT_EQ(made.of_unknown_items, 3);
  EXPECT_EQ(made.without_text, 2);
  EXPECT_THAT(made.unknown_items, ElementsAre("elsewhere", "gone"));
  EXPECT_EQ(made.users[0].known, 1);
  EXPECT_EQ(made.users[1].known, 0);
  EXPECT_LT(made.users[0].items[0].item, "i108") << "strings are the first eight";
  EXPECT_GE(made.users[1].items[0].item, "i108") << "drums the others, by the words alone";
}

TEST_F(NewcomersOf, AReviewBelowThePositivesOnlyHidesItsItem) {
  const auto run = signal_run();
  const Newcomers newcomers(*context_, *run);
  const std::vector<NewReview> liked = {{"ann", "i100", "strings maker1", 5}};
  std::vector<NewReview> both = liked;
  both.push_back({"ann", "i108", "drums drums drums maker2", 1});

  const Recommendation alone = newcomers.lists(*context_, liked, 16).users[0];
  const Recommendation with = newcomers.lists(*context_, both, 16).users[0];

  EXPECT_EQ(alone.items.size(), 15u);
  std::vector<RecommendedItem> others = alone.items;
  std::erase_if(others, [](const RecommendedItem& item) { return item.item == "i108"; });
  ASSERT_EQ(with.items.size(), others.size());
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(with.items[i].item, others[i].item);
    EXPECT_EQ(with.items[i].score, others[i].score);
  }
}

}  // namespace
}  // namespace cfaa::test
