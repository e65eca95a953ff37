// Shards joined are what one run writes; a missing, damaged or foreign shard is named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/embed/reviews.h"
#include "host/io/npy.h"
#include "tests/data/raw_reviews.h"
#include "tests/embed/embed_case.h"

namespace cfaa::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class EmbedShards : public testing::Test {
 protected:
  CorpusRequest request(const std::vector<std::string>& inputs, const std::string& out) {
    CorpusRequest request;
    for (const std::string& input : inputs) request.inputs.push_back(folder_.path(input));
    request.out = folder_.path(out);
    request.options.window = 40;
    request.threads = 2;
    return request;
  }
  void run_shards(CorpusRequest request, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      request.shard = Shard{i, count};
      run_corpus(request, engine_);
    }
  }
  std::string json_lines(int count, unsigned seed) {
    std::string lines = "\n";
    int id = 0;
    for (const std::string& text : random_texts(count, seed)) {
      lines +=
          nlohmann::json({{"id", id++}, {"text", text}}).dump() + (id % 7 == 0 ? "\r\n" : "\n");
    }
    return lines;
  }
  std::string bytes(const std::string& name) {
    return exists(folder_.path(name)) ? read_text(folder_.path(name)) : "";
  }
  void expect_same_files(const std::string& a, const std::string& b, const std::string& what) {
    for (const char* end : {".npy", ".ids.tsv", ".empty.txt"}) {
      EXPECT_EQ(bytes(a + end) == bytes(b + end), true) << end << " " << what;
    }
  }

  TemporaryFolder folder_;
  HashedEngine engine_;
};

TEST_F(EmbedShards, JoinedTheyAreTheBytesOfOneRun) {
  write_text(folder_.path("a.jsonl"), json_lines(80, 1));
  write_text(folder_.path("b.jsonl.gz"), gzip_members(json_lines(30, 2)));
  write_text(folder_.path("c.jsonl"), json_lines(40, 3) + "{\"text\": \"The last.\", \"id\": 9}");
  write_text(folder_.path("d.csv"), "id,text\n1,\"Two\nlines. Here!\"\n2,fine\n");
  write_text(folder_.path("e.jsonl"), "");
  for (const bool by_sentence : {false, true}) {
    CorpusRequest whole =
        request({"a.jsonl", "b.jsonl.gz", "c.jsonl", "d.csv", "e.jsonl"}, "w.npy");
    whole.by_sentence = by_sentence;
    whole.lines.id_field = "id";
    whole.lines.absent_is_empty = true;
    const EmbedReport expected = run_corpus(whole, engine_);
    for (const int64_t count : {1, 7, 40}) {
      CorpusRequest parts = whole;
      parts.out = folder_.path("v.npy");
      run_shards(parts, count);
      EXPECT_FALSE(exists(parts.out));

      const EmbedReport report = join_corpus({.out = parts.out});

      expect_same_files("w", "v", std::to_string(count));
      EXPECT_EQ(report.rows, expected.rows);
      EXPECT_EQ(report.counts.tokens, expected.counts.tokens);
      for (const char* name : {"v.shards", "v.npy", "v.ids.tsv", "v.empty.txt"}) {
        fs::remove_all(folder_.path(name));
      }
    }
  }
}

TEST_F(EmbedShards, ALineBelongsToTheShardInWhichItBegins) {
  const std::string lines = "One.\nTwo two two two.\n\nThree.\r\nFour";
  write_text(folder_.path("a.txt"), lines);
  run_corpus(request({"a.txt"}, "w.npy"), engine_);
  const auto all = static_cast<int64_t>(lines.size());

  run_shards(request({"a.txt"}, "v.npy"), all);  // a byte each

  for (int64_t i = 0; i < all; ++i) {
    const int64_t begins = i == 0 || lines[static_cast<std::size_t>(i) - 1] == '\n' ? 1 : 0;
    const NpyFile part(folder_.path("v.shards/" + Shard{i, all}.name() + ".npy"));
    EXPECT_EQ(part.shape()[0], begins) << i;
  }
  join_corpus({.out = folder_.path("v.npy")});
  EXPECT_EQ(bytes("v.npy"), bytes("w.npy"));
}

TEST_F(EmbedShards, AShardReadsAndHashesNoOthersBytes) {
  std::string lines = as_lines(random_texts(200, 4));
  write_text(folder_.path("a.txt"), lines);
  CorpusRequest last = request({"a.txt"}, "v.npy");
  last.shard = Shard{3, 4};
  run_corpus(last, engine_);
  const int64_t before = engine_.starts;
  lines[0] = lines[0] == 'G' ? 'g' : 'G';  // of the first shard
  write_text(folder_.path("a.txt"), lines);

  const EmbedReport again = run_corpus(last, engine_);

  EXPECT_TRUE(again.was_there);
  EXPECT_EQ(engine_.starts, before);
}

TEST_F(EmbedShards, StoppedAtAnyBatchAShardResumes) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(150, 5)));
  run_corpus(request({"a.txt"}, "w.npy"), engine_);
  CorpusRequest part = request({"a.txt"}, "v.npy");
  part.options.window = 10;
  run_shards(part, 3);
  part.shard = Shard{1, 3};
  const std::string stem = folder_.path("v.shards/00001-of-00003");
  int64_t resumed = 0, named = 0;
  for (int64_t n = 1; n < 28; n += 6) {
    fs::remove(stem + ".json");
    HashedEngine failing;
    failing.starts_left = n;
    EXPECT_NE(error_of([&] { run_corpus(part, failing); }), "no error");
    const std::string interrupted = error_of([&] { join_corpus({.out = part.out}); });
    named += interrupted.find("under way or interrupted: 1/3;") != interrupted.npos;

    resumed += run_corpus(part, engine_).resumed_at > 0;

    join_corpus({.out = part.out, .fresh = true});
    EXPECT_EQ(bytes("v.npy") == bytes("w.npy"), true) << n;
  }
  EXPECT_GT(resumed, 1);
  EXPECT_EQ(named, resumed);
}

TEST_F(EmbedShards, MissingDamagedAndForeignShardsAreNamed) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(60, 6)));
  CorpusRequest part = request({"a.txt"}, "v.npy");
  const auto joined = [&] { return error_of([&] { join_corpus({.out = part.out}); }); };
  EXPECT_THAT(joined(), HasSubstr("v.shards: there are no shards to join"));
  for (const int64_t i : {0, 2, 4}) {
    part.shard = Shard{i, 5};
    run_corpus(part, engine_);
  }
  EXPECT_THAT(joined(), HasSubstr("2 of 5 shards are not done; missing: 1/5, 3/5; run embed"));
  run_shards(part, 5);

  const std::string file = folder_.path("v.shards/00002-of-00005.npy"), good = read_text(file);
  std::string bad = good;
  bad[bad.size() / 2] ^= 1;
  write_text(file, bad);
  EXPECT_THAT(joined(), HasSubstr("00002-of-00005.npy: is not what the shard's .json tells of"));
  fs::remove(file);
  EXPECT_THAT(joined(), HasSubstr("is missing; make that shard again with --shard 2/5 --fresh"));
  EXPECT_FALSE(exists(part.out));
  write_text(file, good);

  part.shard = Shard{3, 5};
  part.fresh = true;
  run_corpus(part, engine_, 24, {{"model", "another"}});
  EXPECT_THAT(joined(), HasSubstr("00003-of-00005.json: does not belong to 00000-of-00005.json, "
                                  "which has model 'hashed', this one has 'another'"));
  part.fresh = false;
  EXPECT_THAT(error_of([&] { run_corpus(part, engine_); }), HasSubstr("--fresh replaces it"));
  part.shard = Shard{0, 6};
  run_corpus(part, engine_);
  EXPECT_THAT(joined(), HasSubstr("holds shards of 5 and of 6"));
  EXPECT_FALSE(exists(part.out));
}

TEST_F(EmbedShards, AnIndexListsThemWithoutACopy) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(60, 7)));
  run_shards(request({"a.txt"}, "v.safetensors"), 3);

  const EmbedReport report = join_corpus({.out = folder_.path("v.safetensors"), .index = true});

  EXPECT_FALSE(exists(folder_.path("v.safetensors")));
  const auto index = nlohmann::json::parse(bytes("v.shards/index.json"));
  EXPECT_EQ(index["rows"], report.rows);
  int64_t rows = 0;
  for (const auto& shard : index["shards"]) {
    EXPECT_EQ(shard["first_row"], rows);
    rows += NpyFile(folder_.path("v.shards/" + shard["file"].get<std::string>())).shape()[0];
  }
  EXPECT_EQ(rows, 60);
}

TEST_F(EmbedShards, ANumberThatIsNoShardIsRefused) {
  EXPECT_EQ(parse_shard("17/1000").index, 17);
  for (const char* text : {"", "3", "3/", "/3", "3/3", "-1/3", "0/0", "1/3x", "0/100000"}) {
    EXPECT_THAT(error_of([&] { parse_shard(text); }), HasSubstr("write it as 0/8")) << text;
  }
}

TEST_F(EmbedShards, ThoseOfAPreparedDirectoryJoinToTheSameFiles) {
  const std::string data = folder_.path("data");
  write_text(folder_.path("s"), as_json_2014(random_reviews(1500, 40, 40, 1, "s")));
  write_text(folder_.path("t"), as_json_2014(random_reviews(1500, 40, 40, 2, "t")));
  run_prepare({folder_.path("s")}, {folder_.path("t")}, data, PrepareOptions(), 2, true);
  const Domain domain = load_domain(data, "target");
  EmbeddingModel model{small_tokenizer(), engine_, 24, {{"model", "hashed"}}};
  const std::vector<std::string> names = {
      "review_sums.npy",         "review_counts.npy",     "user_reviews.npy",
      "item_reviews.npy",        "empty_reviews.txt",     "user_summary_sums.npy",
      "user_summary_counts.npy", "item_summary_sums.npy", "item_summary_counts.npy"};
  const auto take = [&] {
    std::vector<std::string> all;
    for (const std::string& name : names) {
      all.push_back(bytes("data/target/" + name));
      fs::remove(domain.path / name);
    }
    fs::remove(domain.path / "embed.json");
    return all;
  };
  for (const bool summaries : {false, true}) {
    ReviewsRequest request;
    request.options.window = 30;
    request.options.summaries = summaries;
    embed_reviews(domain, request, model);
    const std::vector<std::string> expected = take();
    for (int64_t i = 0; i < 5; ++i) {
      request.shard = Shard{i, 5};
      embed_reviews(domain, request, model);
    }
    EXPECT_FALSE(exists((domain.path / "review_sums.npy").string()));

    const EmbedReport report = join_reviews(domain, {});

    EXPECT_EQ(report.rows, domain.train.size());
    EXPECT_TRUE(join_reviews(domain, {}).was_there);
    EXPECT_EQ(take() == expected, true) << summaries;
    fs::remove(domain.path / "embed.shards/00002-of-00005.json");
    EXPECT_THAT(error_of([&] { join_reviews(domain, {}); }), HasSubstr("missing: 2/5"));
    fs::remove_all(domain.path / "embed.shards");
  }
}

}  // namespace
}  // namespace cfaa::test
