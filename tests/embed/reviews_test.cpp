// The reviews of a prepared directory to sums, counts and means; and the reader that training uses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "host/embed/known_reviews.h"
#include "host/embed/review_sums.h"
#include "host/embed/reviews.h"
#include "host/embed/sentence_selection.h"
#include "host/io/npy.h"
#include "tests/data/raw_reviews.h"
#include "tests/embed/embed_case.h"

namespace cfaa::test {
namespace {

class EmbedReviews : public testing::Test {
 protected:
  void SetUp() override { prepare_again(1); }
  void prepare_again(unsigned seed) {
    write_text(folder_.path("s"), as_json_2014(random_reviews(3000, 60, 60, seed, "s")));
    write_text(folder_.path("t"), as_json_2014(random_reviews(3000, 60, 60, seed + 1, "t")));
    PrepareOptions options;
    options.keep_heldout_text = true;
    run_prepare({folder_.path("s")}, {folder_.path("t")}, data_, options, 2, true);
  }
  EmbedReport run(const Domain& domain, HashedEngine& engine, ReviewsRequest request = {},
                  const std::string& name = "hashed") {
    EmbeddingModel model{small_tokenizer(), engine, 24, {{"model", name}}};
    request.options.window = 30;
    return embed_reviews(domain, request, model);
  }

  static ReviewsRequest with_summaries() {
    ReviewsRequest request;
    request.options.summaries = true;
    return request;
  }

  TemporaryFolder folder_;
  const std::string data_ = folder_.path("data");
};

TEST_F(EmbedReviews, SumsCountsAndMeansAreThoseOfAPlainLoop) {
  const Domain domain = load_domain(data_, "target");
  // Held-out text is not opened: unreadable, it does not matter.
  for (const Split split : {Split::valid, Split::test}) {
    ASSERT_TRUE(std::filesystem::exists(domain.text_path(split)));
    write_text(domain.text_path(split).string(), "not a text file");
  }
  HashedEngine engine;

  const EmbedReport report = run(domain, engine);

  const ReviewSums reviews = load_review_sums(domain);
  const ReviewTextFile texts(domain.text_path(Split::train));
  const int64_t width = engine.width(), rows = domain.train.size();
  ASSERT_EQ(reviews.width, width);
  ASSERT_GT(rows, 100);
  ASSERT_EQ(reviews.dtype, DType::f32);
  const auto* sums = reinterpret_cast<const float*>(reviews.sum);
  const int32_t* counts = reviews.count;
  std::vector<double> user(static_cast<std::size_t>(domain.users.size() * width), 0),
      item(static_cast<std::size_t>(domain.items.size() * width), 0);
  std::vector<double> user_count(static_cast<std::size_t>(domain.users.size()), 0),
      item_count(static_cast<std::size_t>(domain.items.size()), 0);
  int64_t empty = 0;
  TokenizerScratch scratch(small_tokenizer());
  std::vector<int32_t> ids;
  for (int64_t r = 0; r < rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const std::string text(texts.text(r));
    small_tokenizer().encode(text, 24, scratch, ids);
    const bool blank = ids.size() == 2;  // the special tokens alone
    const auto vectors =
        blank ? std::vector<std::vector<float>>() : sentence_vectors(text, true, 24, width);
    empty += blank;
    ASSERT_EQ(counts[r], static_cast<int32_t>(vectors.size())) << text;
    for (int64_t i = 0; i < width; ++i) {
      double sum = 0;
      for (const auto& vector : vectors) sum += double(vector[static_cast<std::size_t>(i)]);
      ASSERT_EQ(sums[r * width + i], static_cast<float>(sum));
      user[static_cast<std::size_t>(domain.train.user[at] * width + i)] +=
          double(sums[r * width + i]);
      item[static_cast<std::size_t>(domain.train.item[at] * width + i)] +=
          double(sums[r * width + i]);
    }
    user_count[static_cast<std::size_t>(domain.train.user[at])] += counts[r];
    item_count[static_cast<std::size_t>(domain.train.item[at])] += counts[r];
  }
  const auto same = [&](const char* name, const std::vector<double>& sum,
                        const std::vector<double>& count) {
    const NpyFile file((domain.path / name).string());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const double n = count[i / static_cast<std::size_t>(width)];
      ASSERT_EQ(file.mapped<float>()[i], n == 0 ? 0 : static_cast<float>(sum[i] / n)) << i;
    }
  };
  same("user_reviews.npy", user, user_count);
  same("item_reviews.npy", item, item_count);
  EXPECT_GT(empty, 0);
  EXPECT_EQ(report.counts.empty, empty);
}

TEST_F(EmbedReviews, SummariesAreTheChosenSentencesOfEachReview) {
  const Domain domain = load_domain(data_, "target");
  HashedEngine engine;

  run(domain, engine, with_summaries());

  const ReviewTextFile texts(domain.text_path(Split::train));
  const int64_t width = engine.width(), rows = domain.train.size();
  const ReviewSums all = load_review_sums(domain);
  for (const bool of_users : {true, false}) {
    const std::vector<int32_t>& entity = of_users ? domain.train.user : domain.train.item;
    const ReviewSums summary = load_review_sums(
        domain, of_users ? SummedSentences::user_summary : SummedSentences::item_summary);
    const auto* sums = reinterpret_cast<const float*>(summary.sum);
    std::size_t most = 0;  // reviews of one summary
    for (int32_t chosen = 0; chosen < 20; ++chosen) {
      std::vector<float> vectors;
      std::vector<int64_t> row_of;
      for (int64_t r = 0; r < rows; ++r) {
        if (entity[static_cast<std::size_t>(r)] != chosen || all.count[r] == 0) continue;
        for (const auto& v : sentence_vectors(std::string(texts.text(r)), true, 24, width)) {
          vectors.insert(vectors.end(), v.begin(), v.end());
          row_of.push_back(r);
        }
      }
      std::map<int64_t, std::vector<double>> sum;
      std::map<int64_t, int32_t> count;
      const auto sentences = static_cast<int64_t>(row_of.size());
      for (const int32_t s :
           select_sentences({vectors.data(), {sentences, width}}, {.seed = of_users ? 0u : 1u},
                            static_cast<uint64_t>(chosen))) {
        const int64_t r = row_of[static_cast<std::size_t>(s)];
        sum[r].resize(static_cast<std::size_t>(width));
        for (int64_t i = 0; i < width; ++i) {
          sum[r][static_cast<std::size_t>(i)] +=
              double{vectors[static_cast<std::size_t>(s * width + i)]};
        }
        ++count[r];
      }
      most = std::max(most, count.size());
      for (int64_t r = 0; r < rows; ++r) {
        if (entity[static_cast<std::size_t>(r)] != chosen) continue;
        ASSERT_EQ(summary.count[r], count.contains(r) ? count[r] : 0);
        for (int64_t i = 0; i < width; ++i) {
          const double expected = count.contains(r) ? sum[r][static_cast<std::size_t>(i)] : 0;
          ASSERT_EQ(sums[r * width + i], static_cast<float>(expected));
        }
      }
    }
    EXPECT_GT(most, 1u);
  }
}

TEST_F(EmbedReviews, SummariesAreAskedForByName) {
  const Domain domain = load_domain(data_, "target");
  HashedEngine engine;
  run(domain, engine);

  EXPECT_THAT(error_of([&] { load_review_sums(domain, SummedSentences::user_summary); }),
              testing::HasSubstr("--set embed.summaries=true"));
  EXPECT_THAT(error_of([&] { run(domain, engine, with_summaries()); }),
              testing::HasSubstr("have no summaries; --fresh"));
  const ReviewSums before = load_review_sums(domain);
  const std::vector<std::byte> sums(
      before.sum, before.sum + domain.train.size() * before.width * int64_t{sizeof(float)});
  ReviewsRequest again = with_summaries();
  again.fresh = true;
  run(domain, engine, again);
  EXPECT_TRUE(std::equal(sums.begin(), sums.end(), load_review_sums(domain).sum));
  EXPECT_TRUE(run(domain, engine).was_there) << "what has summaries serves who wants none";
  EXPECT_FALSE(std::filesystem::exists(domain.path / "review_sentences.f32"));
}

TEST_F(EmbedReviews, StoppedAnywhereTheDirectoryComesOutTheSame) {
  const Domain domain = load_domain(data_, "source");
  for (ReviewsRequest request : {ReviewsRequest(), with_summaries()}) {
    HashedEngine whole;
    request.fresh = true;
    run(domain, whole, request);
    const auto expected = files_of(domain.path.string());

    for (const int64_t stop : {1, 5, 17, 40, 80}) {
      HashedEngine stopping, engine;
      stopping.starts_left = stop;
      request.fresh = true;
      EXPECT_NE(error_of([&] { run(domain, stopping, request); }), "no error");
      request.fresh = false;
      run(domain, engine, request);

      EXPECT_EQ(files_of(domain.path.string()) == expected, true) << stop;
    }
  }
}

TEST_F(EmbedReviews, WhatIsThereIsNotMadeAgainNorSilentlyReplaced) {
  const Domain domain = load_domain(data_, "source");
  HashedEngine engine, idle;
  run(domain, engine);

  EXPECT_TRUE(run(domain, idle).was_there);
  EXPECT_EQ(idle.sequences, 0);
  const std::string error = error_of([&] { run(domain, idle, {}, "another"); });
  EXPECT_NE(error.find("the embeddings there have model 'hashed', this one has 'another'"),
            std::string::npos)
      << error;
  ReviewsRequest fresh;
  fresh.fresh = true;
  fresh.options.dtype = DType::f16;
  run(domain, idle, fresh, "another");
  EXPECT_EQ(load_review_sums(domain).dtype, DType::f16);
}

TEST_F(EmbedReviews, AStaleSetIsRefused) {
  const auto load = [&] { load_review_sums(load_dataset(data_)); };
  EXPECT_NE(error_of(load).find("there are no review embeddings"), std::string::npos);
  HashedEngine engine;
  run(load_domain(data_, "source"), engine);
  run(load_domain(data_, "target"), engine, {}, "another");
  EXPECT_NE(error_of(load).find("model 'hashed', this one has 'another'"), std::string::npos)
      << error_of(load);
  ReviewsRequest fresh;
  fresh.fresh = true;
  run(load_domain(data_, "target"), engine, fresh);
  EXPECT_EQ(error_of(load), "no error");
  // The means are for other programs; training makes its own from the sums.
  std::filesystem::remove(data_ + "/target/user_reviews.npy");
  EXPECT_EQ(error_of(load), "no error");

  // The directory is prepared again and somebody copies the old vectors back.
  for (const char* name : {"review_sums.npy", "embed.json"}) {
    const std::string path = data_ + "/target/" + name;
    const std::string kept = read_text(path);
    write_text(path, kept.substr(0, kept.size() / 2));
    EXPECT_NE(error_of(load), "no error") << name;
    write_text(path, kept);
  }
  const auto old = files_of(data_);
  prepare_again(7);
  for (const char* name : {"review_sums.npy", "review_counts.npy", "embed.json"}) {
    for (const std::string domain : {"source/", "target/"}) {
      write_text(data_ + "/" + domain + name, old.at(domain + name));
    }
  }
  EXPECT_NE(error_of(load).find("was made from other"), std::string::npos) << error_of(load);
}

TEST_F(EmbedReviews, VectorsOfTheSameTextsAreTakenFromAnotherDirectory) {
  const std::string other = folder_.path("other");
  PrepareOptions options;
  options.seed = 5;  // other splits of the same reviews
  run_prepare({folder_.path("s")}, {folder_.path("t")}, other, options);
  HashedEngine first, fresh, reusing;
  for (const char* name : {"source", "target"}) run(load_domain(data_, name), first);
  const Domain domain = load_domain(other, "target");
  const std::set<std::string> described = {"target/embed.json"};
  run(domain, fresh);
  const auto expected = files_of(other, described);
  ReviewsRequest request;
  request.fresh = true;
  request.reuse = embedded_beside(other);
  ASSERT_EQ(request.reuse, std::vector<std::filesystem::path>{data_});

  const EmbedReport report = run(domain, reusing, request);

  EXPECT_EQ(files_of(other, described) == expected, true);
  EXPECT_GT(report.reused, domain.train.size() / 2);
  EXPECT_LT(report.reused, domain.train.size());
  EXPECT_LT(reusing.sequences, fresh.sequences / 2);
  // Vectors of another model are not taken.
  EXPECT_EQ(run(domain, reusing, request, "another").reused, 0);
}

TEST_F(EmbedReviews, AFirstLookWritesNothing) {
  const Domain domain = load_domain(data_, "target");
  const auto before = files_of(data_);
  HashedEngine engine;
  EmbeddingModel model{small_tokenizer(), engine, 24, {{"model", "hashed"}}};

  const EmbedReport report = try_reviews(domain, {}, 20, model);

  EXPECT_EQ(report.rows, 20);
  EXPECT_GT(report.share, 0);
  EXPECT_LT(report.share, 0.5);
  EXPECT_EQ(files_of(data_) == before, true);
}

TEST_F(EmbedReviews, FilesOfOthersAreReplacedByForceOnly) {
  const Domain domain = load_domain(data_, "target");
  const std::string foreign = (domain.path / "review_sums.npy").string();
  write_text(foreign, "mine");
  HashedEngine engine;

  EXPECT_NE(error_of([&] { run(domain, engine); }).find("--force"), std::string::npos);
  EXPECT_EQ(read_text(foreign), "mine");
  ReviewsRequest request;
  request.force = true;
  run(domain, engine, request);
  EXPECT_EQ(load_review_sums(domain).width, engine.width());
}

}  // namespace
}  // namespace cfaa::test
