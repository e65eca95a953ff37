#include "host/data/synthesis/synthesis.h"

#include <gtest/gtest.h>

#include <sstream>

#include "host/core/error.h"
#include "host/data/dataset.h"
#include "host/data/synthesis/words.h"
#include "tests/data/raw_reviews.h"

namespace cfaa::test {
namespace {

SynthesisOptions small() {
  SynthesisOptions options;
  options.users = 300;
  options.items = 150;
  options.interactions = 4000;
  return options;
}

std::map<std::string, std::string> synthesized(const SynthesisOptions& options, int threads) {
  const TemporaryFolder folder;
  ThreadPool pool(threads);
  synthesize(options, folder.path("raw"), false, pool);
  return files_of(folder.path("raw"));
}

std::vector<nlohmann::json> lines(const std::string& text) {
  std::vector<nlohmann::json> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) result.push_back(nlohmann::json::parse(line));
  return result;
}

TEST(Synthesis, IsTheSameBytesOnAnyNumberOfThreadsAndOtherBytesFromAnotherSeed) {
  SynthesisOptions other = small();
  other.seed = 1;

  const auto first = synthesized(small(), 1);

  EXPECT_EQ(synthesized(small(), 5), first);
  EXPECT_NE(synthesized(other, 1), first);
}

TEST(Synthesis, WritesAsManyReviewsUsersAndItemsAsAskedFor) {
  const auto files = synthesized(small(), 2);

  for (const char* name : {"source.jsonl", "target.jsonl"}) {
    std::set<std::string> users, items, pairs;
    const auto reviews = lines(files.at(name));
    for (const auto& r : reviews) {
      users.insert(r["user_id"]);
      items.insert(r["parent_asin"]);
      pairs.insert(r["user_id"].get<std::string>() + " " + r["parent_asin"].get<std::string>());
    }
    EXPECT_EQ(reviews.size(), 4000u);
    EXPECT_EQ(users.size(), 300u);
    EXPECT_LE(items.size(), 150u);
    EXPECT_EQ(pairs.size(), reviews.size());
  }
}

TEST(Synthesis, PreparesTheSameWhetherCompressedOrNot) {
  const TemporaryFolder folder;
  ThreadPool pool(2);
  std::map<std::string, std::string> expected;
  int next = 0;
  for (const auto& [compression, suffix] :
       {std::pair(Compression::none, ""), std::pair(Compression::gzip, ".gz"),
        std::pair(Compression::zstd, ".zst")}) {
    SynthesisOptions options = small();
    options.compression = compression;
    const std::string raw = folder.path("raw" + std::to_string(next)),
                      out = folder.path("out" + std::to_string(next++));
    synthesize(options, raw, false, pool);
    run_prepare({raw + "/source.jsonl" + suffix}, {raw + "/target.jsonl" + suffix}, out);
    const auto files = files_of(out, {"prepare.json"});
    if (expected.empty()) expected = files;
    EXPECT_EQ(files, expected);
  }
}

// The share of reviews of `file` that hold a word of the other words.
double share_with(const std::string& file, const std::vector<std::string>& words) {
  const auto reviews = lines(file);
  int with = 0;
  for (const auto& r : reviews) {
    const std::string text = r["text"];
    with += std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return text.find(word) != std::string::npos;
    });
  }
  return with / static_cast<double>(reviews.size());
}

TEST(Synthesis, DomainWordsStandInEveryReviewAtTheDefaultShiftAndInNoneAtZero) {
  SynthesisOptions none = small();
  none.shift = 0;
  const std::vector<std::string> source = {"book", "novel", "reader"},
                                 target = {"speaker", "Audio", "Battery", "electronics"};

  const auto shifted = synthesized(small(), 2), plain = synthesized(none, 2);

  EXPECT_EQ(share_with(shifted.at("source.jsonl"), source), 1.0);
  EXPECT_EQ(share_with(shifted.at("target.jsonl"), target), 1.0);
  EXPECT_EQ(share_with(shifted.at("source.jsonl"), target), 0.0);
  EXPECT_EQ(share_with(plain.at("source.jsonl"), source), 0.0);
  EXPECT_EQ(share_with(plain.at("target.jsonl"), target), 0.0);
}

TEST(Synthesis, RatingsFollowWhatTasteAndContentHaveInCommon) {
  const auto files = synthesized(small(), 2);
  std::map<std::string, std::vector<double>> weights;
  std::istringstream in(files.at("source.truth.tsv"));
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string kind, id;
    fields >> kind >> id;
    for (double w; fields >> w;) weights[id].push_back(w);
  }
  double liked = 0, disliked = 0;
  int likes = 0, dislikes = 0;

  for (const auto& r : lines(files.at("source.jsonl"))) {
    const auto &u = weights.at(r["user_id"]), &i = weights.at(r["parent_asin"]);
    double affinity = 0;
    for (std::size_t t = 0; t < u.size(); ++t) affinity += u[t] * i[t];
    (r["rating"] >= 4 ? liked : disliked) += affinity;
    ++(r["rating"] >= 4 ? likes : dislikes);
  }

  EXPECT_GT(likes, 1000);
  EXPECT_GT(dislikes, 1000);
  EXPECT_GT(liked / likes, 3 * disliked / dislikes);
}

TEST(Synthesis, SizesThatDoNotFitAreRefused) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  const auto refused = [&](const std::function<void(SynthesisOptions&)>& change) {
    SynthesisOptions options = small();
    change(options);
    EXPECT_THROW(synthesize(options, folder.path("raw"), false, pool), Error);
  };
  refused([](auto& o) { o.topics = 1; });
  refused([](auto& o) { o.topics = kMostTopics + 1; });
  refused([](auto& o) { o.interactions = o.users - 1; });
  refused([](auto& o) { o.interactions = o.users * o.items; });
  refused([](auto& o) { o.shift = -1; });
  refused([](auto& o) { o.users = 0; });
  EXPECT_FALSE(std::filesystem::exists(folder.path("raw")));
}

}  // namespace
}  // namespace cfaa::test
