// Users whom training never saw.

#include "host/run/newcomers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>

#include "host/device/make_context.h"
#include "host/io/content_hash.h"
#include "host/io/mapped_file.h"
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

void expect_refused(const Outcome& outcome, const std::string& because) {
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, testing::HasSubstr(because));
}

// As a file of reviews has them.
std::string as_lines(const std::vector<NewReview>& reviews) {
  std::string lines;
  for (const NewReview& review : reviews) {
    lines += nlohmann::json{{"user", review.user},
                            {"item", review.item},
                            {"rating", review.rating},
                            {"text", review.text}}
                 .dump() +
             "\n";
  }
  return lines;
}

TEST_F(NewcomersOf, TheProgramPrintsTheirListsFromAFileOfReviews) {
  const auto run = signal_run();
  std::vector<NewReview> reviews = training_reviews(run->domain(kTarget), "u103", "zoe");
  std::ranges::copy(training_reviews(run->domain(kTarget), "u110", "ann"),
                    std::back_inserter(reviews));
  reviews.push_back({"ann", "elsewhere", "", 5});
  reviews.push_back({"zoe", "i100", "Прекрасные струны", 5});
  write_text(path("new.jsonl"), as_lines(reviews));

  const Outcome outcome =
      run_program("recommend " + path("run") + " --reviews " + path("new.jsonl") + " --json");
  const Outcome file = run_program("recommend " + path("run") + " --reviews " + path("new.jsonl") +
                                   " --out " + path("lists.tsv"));

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr("does not have: elsewhere"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("1 of 14 reviews are without text"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("1 of 14 reviews are in words that"));
  const auto printed = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(printed["unknown_items"], nlohmann::json({"elsewhere"}));
  ASSERT_EQ(printed["users"].size(), 2u);
  const NewUserLists made = Newcomers(*context_, *run).lists(*context_, reviews);
  ASSERT_EQ(file.code, 0) << file.err;
  const std::string table = read_text(path("lists.tsv"));
  for (const Recommendation& list : made.users) {
    const nlohmann::json& items = printed["users"][list.user == "ann" ? 0 : 1]["items"];
    ASSERT_EQ(items.size(), list.items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(items[i]["rank"], i + 1);
      EXPECT_EQ(items[i]["item"], list.items[i].item);
      EXPECT_EQ(items[i]["score"], list.items[i].score);
      EXPECT_THAT(table, testing::HasSubstr(fmt::format("\n{}\t{}\t{}\t{}\n", list.user, i + 1,
                                                        list.items[i].item, list.items[i].score)));
    }
  }
}

TEST_F(NewcomersOf, WhatContradictsItselfIsRefused) {
  signal_run();
  write_text(path("new.jsonl"), as_lines({{"ann", "i100", "strings", 5}}));
  const std::string command = "recommend " + path("run"),
                    with_reviews = command + " --reviews " + path("new.jsonl");

  expect_refused(run_program(command), "give --user ID");
  expect_refused(run_program(with_reviews + " --user u103"), "give --user ID");
  expect_refused(run_program(with_reviews + " --all --out x"), "give --user ID");
  expect_refused(run_program(command + " --all"), "--all needs --out");
  expect_refused(run_program(command + " --user u103 --out x"), "--out goes with");
  expect_refused(run_program(command + " --user u103 --columns user=a"), "go with --reviews");
  expect_refused(run_program(with_reviews + " --columns user=nobody"), "nobody");
  write_text(path("bad.jsonl"), "{\"user\": \"ann\", \"item\": \"i100\", \"rating\": 99}\n");
  expect_refused(run_program(command + " --reviews " + path("bad.jsonl")), "bad.jsonl:1: ");
  write_text(path("empty.jsonl"), "");
  expect_refused(run_program(command + " --reviews " + path("empty.jsonl")), "is empty");
}

TEST_F(NewcomersOf, ThoseWhoWereHeldOutAreMeasuredAsKnownUsersWithTheirReviewsAre) {
  const auto run = signal_run();
  const Domain& target = run->domain(kTarget);
  std::filesystem::create_directories(path("data/newcomers"));
  std::string asked = "user_id\titem_id\n", lines;
  for (std::size_t row = 0; row < target.test.user.size(); ++row) {
    const std::string user(target.users[target.test.user[row]]);
    asked += "new" + user + "\t" + std::string(target.items[target.test.item[row]]) + "\n";
    asked += "new" + user + "\tgone\n";
    lines += as_lines(training_reviews(target, user, "new" + user));
  }
  write_text(path("data/newcomers/asked.tsv"), asked + "silent\ti100\n");
  write_text(path("data/newcomers/reviews.jsonl"), lines);

  const Outcome known = run_program("evaluate " + path("run") + " --json");
  const Outcome fresh = run_program("evaluate " + path("run") + " --newcomers --json --out " +
                                    path("kept") + " --name newcomers");

  ASSERT_EQ(fresh.code, 0) << fresh.err;
  const auto expected = nlohmann::json::parse(known.out),
             measured = nlohmann::json::parse(fresh.out);
  for (const char* key : {"NDCG@10", "HR@5", "MRR@20", "positives", "evaluated_users"}) {
    EXPECT_EQ(measured[key], expected[key]) << key;
  }
  EXPECT_GT(measured["NDCG@10"], 0);
  EXPECT_EQ(measured["split"], "newcomers");
  EXPECT_EQ(measured["without_reviews"], 1);
  EXPECT_EQ(measured["of_unknown_items"], target.test.size());
  EXPECT_TRUE(std::filesystem::exists(path("kept/result.json")));
  expect_refused(run_program("evaluate " + path("run") + " --newcomers --split valid"), "leave");
  expect_refused(run_program("evaluate " + path("data") + " --newcomers"), "needs a run");
  std::filesystem::remove_all(path("data/newcomers"));
  expect_refused(run_program("evaluate " + path("run") + " --newcomers"), "--hold-out-users");
}

// Vectors of 3 that follow from the text, as many sentences as it has letters "a".
class HashedReader final : public ReviewReader {
 public:
  TextSums read(std::span<const std::string_view> texts) override {
    TextSums sums;
    sums.width = 3;
    for (const std::string_view text : texts) {
      const auto sentences = static_cast<int32_t>(std::ranges::count(text, 'a'));
      sums.count.push_back(sentences);
      for (uint64_t c = 0; c < 3; ++c) {
        const auto bits = XXH3_64bits_withSeed(text.data(), text.size(), c) >> 40;
        sums.sum.push_back(sentences == 0 ? 0.0f : static_cast<float>(bits) / (1 << 23) - 1);
      }
    }
    return sums;
  }
};

class NewcomersOfNetworks : public NewcomersOf {
 protected:
  NewcomersOfNetworks() {
    write_embeddings(folder_, 1, 0);
    for (const std::string name : {"source", "target"}) {
      const Domain domain = load_domain(path("data"), name);
      const ReviewTextFile texts(domain.text_path(Split::train));
      std::vector<std::string_view> all;
      for (int64_t i = 0; i < texts.count(); ++i) all.push_back(texts.text(i));
      const TextSums sums = reader_->read(all);
      write_npy<float>((domain.path / "review_sums.npy").string(), {texts.count(), 3},
                       sums.sum.data());
      write_npy<int32_t>((domain.path / "review_counts.npy").string(), {texts.count()},
                         sums.count.data());
    }
  }

  // Makes a user's row of the target's id table zero in a run's best parameters.
  void forget_id(const std::string& run, int64_t user) const {
    auto manifest = nlohmann::json::parse(read_text(path(run + "/best.json")));
    const std::string file = path(run + "/" + manifest["file"].get<std::string>());
    std::string bytes = read_text(file);
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    const auto table = nlohmann::json::parse(bytes.substr(8, header))["target.user.id"];
    const auto row = table["shape"][1].get<std::size_t>() * sizeof(float);
    const std::size_t first = 8 + header + table["data_offsets"][0].get<std::size_t>() +
                              static_cast<std::size_t>(user) * row;
    ASSERT_NE(bytes.substr(first, row), std::string(row, '\0'));
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(first), row, '\0');
    write_text(file, bytes);
    manifest["xxh3_128"] = content_hash(MappedFile(file));
    write_text(path(run + "/best.json"), manifest.dump());
  }

  void expect_list_of_zeroed_row(const std::string& more, const std::string& inputs) {
    ASSERT_EQ(run_program(command("run", more, inputs)).code, 0);
    const std::vector<NewReview> reviews =
        training_reviews(load_domain(path("data"), "target"), "u103", "zoe");
    const auto whole = open_model(*context_, path("run"));
    const Recommendation before = recommend(*context_, *whole, "u103");
    forget_id("run", 3);
    const auto run = open_model(*context_, path("run"));
    const Recommendation known = recommend(*context_, *run, "u103");

    const NewUserLists made =
        Newcomers(*context_, *run, "target", reader_).lists(*context_, reviews);

    ASSERT_EQ(made.users.size(), 1u);
    expect_equal_items(known, made.users[0]);
    ASSERT_FALSE(known.items.empty());
    EXPECT_NE(known.items[0].score, before.items[0].score) << "the row counts";
  }

  std::shared_ptr<ReviewReader> reader_ = std::make_shared<HashedReader>();
};

TEST_F(NewcomersOfNetworks, HaveTheListOfAModelWhoseRowOfTheIdTableIsZero) {
  expect_list_of_zeroed_row("", "[\"id\",\"history\",\"review\"]");
}

TEST_F(NewcomersOfNetworks, HaveItByADotProductAndSplitHistoriesToo) {
  expect_list_of_zeroed_row("--set model.scorer=dot --set model.history.labels=split",
                            "[\"id\",\"history\"]");
}

TEST_F(NewcomersOfNetworks, HaveItByAFactorisationMachineToo) {
  expect_list_of_zeroed_row("--set model.scorer=fm", "[\"id\",\"history\",\"review\"]");
}

TEST_F(NewcomersOfNetworks, OfBothDomainsHaveTheSameListWhereThereIsNoIdTable) {
  ASSERT_EQ(run_program(command("run", "", "[\"history\",\"review\"]")).code, 0);
  const auto run = open_model(*context_, path("run"));
  for (const char* domain : {"target", "source"}) {
    const Newcomers newcomers(*context_, *run, domain, reader_);
    const Domain& of = run->domain(domain_index(domain));
    std::vector<NewReview> two = training_reviews(of, "u103", "zoe");
    std::ranges::copy(training_reviews(of, "u110", "ann"), std::back_inserter(two));

    const NewUserLists made = newcomers.lists(*context_, two);

    expect_equal_items(recommend(*context_, *run, "u103", {domain, 10}), made.users[0]);
    expect_equal_items(recommend(*context_, *run, "u110", {domain, 10}), made.users[1]);
  }
}

TEST_F(NewcomersOfNetworks, OfAResidualHaveTheSumOfSignalsAndModel) {
  ASSERT_EQ(run_program(command("run", "--set signals.residual=model", "[\"history\"]")).code, 0);
  // Whatever validation has said of the model: half of it counts.
  auto fit = nlohmann::json::parse(read_text(path("run/signals.json")));
  fit["residual"]["beta"] = 0.5;
  write_text(path("run/signals.json"), fit.dump());
  const auto run = open_model(*context_, path("run"));
  ASSERT_EQ(run->residual_share(), 0.5);

  const NewUserLists made =
      Newcomers(*context_, *run)
          .lists(*context_, training_reviews(run->domain(kTarget), "u103", "zoe"));

  expect_equal_items(recommend(*context_, *run, "u103"), made.users[0]);
}

TEST_F(NewcomersOfNetworks, NeedTheEncoderAndATowerToRead) {
  write_text(path("new.jsonl"), as_lines({{"ann", "i100", "strings", 5}}));
  const std::string reviews = " --reviews " + path("new.jsonl");
  ASSERT_EQ(run_program(command("run", "", "[\"history\",\"review\"]")).code, 0);
  ASSERT_EQ(run_program("baseline " + path("data") + " popularity --out " + path("pop")).code, 0);

  expect_refused(run_program("recommend " + path("run") + reviews), "--model");
  expect_refused(run_program("recommend " + path("run") + reviews + " --model " + path("nowhere")),
                 "nowhere");
  expect_refused(run_program("recommend " + path("pop") + reviews), "a baseline has no lists");
}

}  // namespace
}  // namespace cfaa::test
