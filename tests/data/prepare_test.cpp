#include "host/data/prepare.h"

#include <gtest/gtest.h>

#include <sstream>

#include "host/core/error.h"
#include "host/data/dataset.h"
#include "host/data/held_out_users.h"
#include "host/data/review_text.h"
#include "host/io/parquet.h"
#include "tests/data/raw_reviews.h"
#include "tests/paths.h"
#include "tests/refusal.h"

namespace cfaa::test {
namespace {

const std::set<std::string> kReport = {"prepare.json"};

PrepareOptions loose_options() {
  PrepareOptions options;
  options.source_core = "2,2";
  options.target_core = "2,2";
  options.keep_heldout_text = true;
  return options;
}

// Of newcomers/reviews.jsonl.
struct NewcomersLine {
  std::string user, item, text;
};

class PreparedFiles : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& content) {
    write_text(folder_.path(name), content);
    return folder_.path(name);
  }
  std::map<std::string, std::string> prepared(const std::vector<std::string>& source,
                                              const std::vector<std::string>& target,
                                              int threads = 2,
                                              const PrepareOptions& options = loose_options()) {
    const std::string out = folder_.path("out" + std::to_string(next_++));
    run_prepare(source, target, out, options, threads);
    return files_of(out, kReport);
  }

  TemporaryFolder folder_;
  int next_ = 0;
};

TEST_F(PreparedFiles, AreTheSameBytesFromEveryFormatAndCompression) {
  const auto source = random_reviews(3000, 120, 80, 1, "s");
  const auto target = random_reviews(2000, 90, 60, 2, "t");
  const std::string json = as_json_2014(source);
  const std::string other = put("t.json", as_json_2014(target));

  const auto expected = prepared({put("s.json", json)}, {other});

  EXPECT_EQ(expected.size(), 18u);
  EXPECT_EQ(prepared({put("s.json.gz", gzip_members(json))}, {other}), expected);
  EXPECT_EQ(prepared({put("s.json.zst", zstd_frames(json))}, {other}), expected);
  EXPECT_EQ(prepared({put("s.loose", as_python(source))}, {other}), expected);
  EXPECT_EQ(prepared({put("s.csv", as_delimited(source, ','))}, {other}), expected);
  EXPECT_EQ(prepared({put("s.tsv", as_delimited(source, '\t'))}, {other}), expected);
  EXPECT_EQ(prepared({put("s.2023", as_json_2023(source))}, {other}), expected);
  EXPECT_EQ(prepared({put("s.csv.zst", zstd_frames(as_delimited(source, ',')))},
                     {put("t.loose.gz", gzip_members(as_python(target)))}),
            expected);
}

TEST_F(PreparedFiles, AreTheSameBytesFromAnInterFile) {
  // An .inter file has no way to write a tab or a newline inside a field.
  const auto source = random_reviews(3000, 120, 80, 1, "s", true);
  const auto target = random_reviews(2000, 90, 60, 2, "t", true);

  EXPECT_EQ(prepared({put("s.inter", as_inter(source))}, {put("t.inter", as_inter(target))}),
            prepared({put("s.json", as_json_2014(source))}, {put("t.json", as_json_2014(target))}));
}

TEST_F(PreparedFiles, AreTheSameBytesFromAnyNumberOfThreadsAndOrderOfFiles) {
  // More than the chunk size of the reader, so that threads meet different lines.
  auto source = random_reviews(60000, 900, 700, 3, "s");
  const auto target = random_reviews(2000, 90, 60, 2, "t");
  const std::string whole = put("whole", as_json_2014(source)),
                    other = put("t.json", as_json_2014(target));

  const auto expected = prepared({whole}, {other}, 1);

  EXPECT_EQ(prepared({whole}, {other}, 2), expected);
  EXPECT_EQ(prepared({whole}, {other}, 5), expected);
  const std::string a = put("a", as_json_2014({source.begin(), source.begin() + 20000})),
                    b = put("b", as_python({source.begin() + 20000, source.end()}));
  EXPECT_EQ(prepared({a, b}, {other}, 5), expected);
  EXPECT_EQ(prepared({b, a}, {other}, 2), expected);
  std::shuffle(source.begin(), source.end(), std::mt19937(1));
  EXPECT_EQ(prepared({put("shuffled", as_json_2014(source))}, {other}, 2), expected);
}

TEST_F(PreparedFiles, AreTheSameBytesHoweverLittleIsKeptInMemory) {
  const std::string source = as_json_2014(random_reviews(30000, 1200, 800, 1, "s"));
  const std::vector<std::string> target = {
      put("t.csv.zst", zstd_frames(as_delimited(random_reviews(2000, 90, 60, 2, "t"), ',')))};
  for (const std::string& content : {source, gzip_members(source)}) {
    PrepareRequest request;
    request.source = {put("s", content)};
    request.target = target;
    request.options = loose_options();
    for (const uint64_t memory : {uint64_t{1} << 30, uint64_t{1} << 20, uint64_t{0}}) {
      request.memory = memory;
      request.out = folder_.path("out" + std::to_string(memory));
      request.force = true;
      ThreadPool pool(3);
      prepare(request, pool, {});
      EXPECT_EQ(files_of(request.out), files_of(folder_.path("out" + std::to_string(1u << 30))));
    }
  }
}

TEST_F(PreparedFiles, OfMoreIdsThanAThreadKeepsAreTheSameFromAnyNumberOfThreads) {
  std::string source = "user\titem\trating\ttitle\n";
  std::mt19937 random(3);
  for (int i = 0; i < 700000; ++i) {
    const unsigned item = random() % 1000;
    source += fmt::format("u{}\ti{}\t5\tTitle {}\n", random() % 400000, item, item % 7);
  }
  const std::string path = put("s.tsv", source);
  const std::string target = put("t.json", as_json_2014(random_reviews(2000, 90, 60, 2, "t")));

  const auto expected = prepared({path}, {target}, 1);

  const std::string& users = expected.at("source/users.tsv");
  EXPECT_GT(std::count(users.begin(), users.end(), '\n'), 150000);
  EXPECT_NE(expected.at("source/item_titles.tsv").find("i500\tTitle 3\n"), std::string::npos);
  EXPECT_EQ(prepared({path}, {target}, 3), expected);
}

// The reviews of tests/fixtures/parquet/make.py.
std::vector<Review> parquet_reviews() {
  std::vector<Review> reviews;
  for (int i = 0; i < 600; ++i) {
    reviews.push_back({"u" + std::to_string(i % 40), "i" + std::to_string(i * 7 % 30), 1 + i % 5,
                       1300000000 + i, i % 11 == 0 ? "" : fmt::format("text {} ☕", i)});
  }
  return reviews;
}

TEST_F(PreparedFiles, OfParquetAreTheBytesOfJson) {
  const std::string parquet = fixture_path("parquet/reviews.parquet");
  const std::string target = put("t.json", as_json_2014(random_reviews(2000, 90, 60, 2, "t")));
  if (!has_parquet()) {
    const std::string error = error_of([&] { prepared({parquet}, {target}); });
    EXPECT_NE(error.find("-DCFAA_ARROW=ON"), std::string::npos) << error;
    return;
  }
  const auto expected = prepared({put("s.json", as_json_2014(parquet_reviews()))}, {target});
  PrepareOptions milliseconds = loose_options(), other = loose_options();
  milliseconds.time_unit = TimeUnit::milliseconds;
  other.source_columns = "rating=stars";

  EXPECT_EQ(prepared({parquet}, {target}, 3), expected);
  EXPECT_EQ(prepared({parquet}, {target}, 1, other), expected);
  // A timestamp knows its unit, and the target's numbers are what is misread.
  const auto misread = prepared({parquet}, {target}, 1, milliseconds);
  EXPECT_EQ(misread.at("source/source.train.inter"), expected.at("source/source.train.inter"));
}

TEST_F(PreparedFiles, OfParquetNameARowThatCannotBeTaken) {
  if (!has_parquet()) GTEST_SKIP() << "this build has no Arrow (-DCFAA_ARROW=ON)";
  PrepareOptions options = loose_options();
  options.rating_scale = "1,4";
  const std::string parquet = fixture_path("parquet/reviews.parquet");

  const std::string error = error_of([&] { prepared({parquet}, {parquet}, 3, options); });

  EXPECT_NE(error.find("reviews.parquet:5: the rating 5 lies outside"), std::string::npos) << error;
}

TEST_F(PreparedFiles, ReadBackAsInputGiveTheSameSplitsAgain) {
  const auto source = random_reviews(3000, 120, 80, 1, "s");
  const auto target = random_reviews(2000, 90, 60, 2, "t");
  PrepareOptions options = loose_options();
  options.target_negatives = TargetNegatives::keep;
  const std::string out = folder_.path("first");
  run_prepare({put("s", as_json_2014(source))}, {put("t", as_json_2014(target))}, out, options);
  const auto inters = [&](const std::string& name) {
    std::vector<std::string> paths;
    for (const char* split : {"train", "valid", "test"}) {
      paths.push_back(out + "/" + name + "/" + name + "." + split + ".inter");
    }
    return paths;
  };
  auto expected = files_of(out, kReport);
  // The text is not in an .inter file.
  const auto without_text = [](std::map<std::string, std::string> files) {
    std::erase_if(files, [](const auto& file) { return file.first.ends_with(".text"); });
    return files;
  };

  EXPECT_EQ(without_text(prepared(inters("source"), inters("target"), 2, options)),
            without_text(expected));
}

// What the steps promise, on the loaded data, against the raw reviews.
TEST_F(PreparedFiles, HoldEveryPairOnceWithItsOwnTextAndNothingElse) {
  const auto source = random_reviews(6000, 150, 100, 11, "s");
  const auto target = random_reviews(5000, 120, 90, 12, "t");
  std::map<std::pair<std::string, std::string>, std::set<std::string>> texts;
  for (const auto* reviews : {&source, &target}) {
    for (const Review& r : *reviews) texts[{r.user, r.item}].insert(r.text);
  }
  const std::string out = folder_.path("data");
  run_prepare({put("s", as_json_2014(source))}, {put("t", as_json_2014(target))}, out,
              loose_options());

  const Dataset data = load_dataset(out);

  for (const Domain* domain : {&data.source, &data.target}) {
    std::set<std::pair<int32_t, int32_t>> seen;
    std::vector<char> user_used(static_cast<std::size_t>(domain->users.size()), 0);
    for (const Split split : {Split::train, Split::valid, Split::test}) {
      const SplitRows& rows = domain->rows(split);
      const ReviewTextFile text(domain->text_path(split));
      text.verify();
      ASSERT_EQ(text.count(), rows.size());
      EXPECT_GT(rows.size(), 0);
      for (int64_t i = 0; i < rows.size(); ++i) {
        EXPECT_TRUE(seen.emplace(rows.user[i], rows.item[i]).second) << "a pair in two splits";
        user_used[rows.user[i]] = 1;
        const std::pair<std::string, std::string> raw(domain->users[rows.user[i]],
                                                      domain->items[rows.item[i]]);
        ASSERT_TRUE(texts.contains(raw));
        EXPECT_TRUE(texts.at(raw).contains(std::string(text.text(i))));
        EXPECT_EQ(rows.label[i], rows.rating[i] >= 4 ? 1.0f : 0.0f);
        EXPECT_TRUE(domain->name == "source" || rows.label[i] == 1.0f);
      }
    }
    EXPECT_EQ(std::count(user_used.begin(), user_used.end(), 0), 0);
    for (int64_t i = 0; i < domain->users.size(); ++i) {
      EXPECT_EQ(domain->users.find(domain->users[i]), i);
    }
    EXPECT_EQ(domain->users.find("nobody"), -1);
  }
}

TEST_F(PreparedFiles, HoldNoTextOfHeldOutInteractionsUnlessAsked) {
  // Every review has a word of its own; those of held-out interactions must be in no file.
  std::vector<Review> source = random_reviews(800, 30, 30, 1, "s"), target = source;
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i].text = fmt::format("word{}source", i);
    target[i].user += "t", target[i].item += "t";
    target[i].text = fmt::format("word{}target", i);
  }
  const std::string s = put("s", as_json_2014(source)), t = put("t", as_json_2014(target));
  PrepareOptions with = loose_options(), without = loose_options();
  without.keep_heldout_text = false;

  const auto held = prepared({s}, {t}, 2, with), plain = prepared({s}, {t}, 2, without);

  for (const char* domain : {"source", "target"}) {
    for (const char* split : {"valid", "test"}) {
      const std::string name = std::string(domain) + "/" + domain + "." + split + ".text";
      EXPECT_FALSE(plain.contains(name));
      std::string_view text = held.at(name);
      int words = 0;
      for (std::size_t at = 0; (at = text.find("word", at)) != std::string_view::npos; ++words) {
        const std::string word(text.substr(at, text.find(domain, at) + 6 - at));
        for (const auto& [file, content] : plain) {
          EXPECT_EQ(content.find(word), std::string::npos) << word << " in " << file;
        }
        at += word.size();
      }
      EXPECT_GT(words, 5);
    }
  }
}

class BadLines : public PreparedFiles {
 protected:
  // The message about a JSON file whose third line is `line`.
  std::string message(const std::string& line, PrepareOptions options = loose_options()) {
    const std::string good = as_json_2014({{"u", "i", 5, 1300000000, "x"}});
    const std::string bad = put("bad", good + good + line + "\n" + good);
    return error_of([&] { prepared({bad}, {put("t", good)}, 2, options); });
  }
};

TEST_F(BadLines, NameTheFileTheLineAndTheReason) {
  const auto says = [&](const std::string& line, const std::string& reason) {
    const std::string got = message(line);
    EXPECT_NE(got.find(folder_.path("bad") + ":3: "), std::string::npos) << got;
    EXPECT_NE(got.find(reason), std::string::npos) << got;
  };
  says("{\"reviewerID\": ", "not JSON");
  says("17", "not a JSON object");
  says(R"({"reviewerID": "", "asin": "i", "overall": 5})", "the user id is empty");
  says(R"({"reviewerID": "u", "overall": 5})", "the item id is empty or absent");
  says(R"({"reviewerID": "a\tb", "asin": "i", "overall": 5})", "control character");
  says(R"({"reviewerID": "u", "asin": "i"})", "the rating is absent");
  says(R"({"reviewerID": "u", "asin": "i", "overall": 6})", "outside 1 to 5");
  says(R"({"reviewerID": "u", "asin": "i", "overall": "five"})", "'five' is not a number");
  says(R"({"reviewerID": "u\u009b", "asin": "i", "overall": 5})", "control character");
  says(R"({"reviewerID": "u", "asin": "i", "overall": 5, "unixReviewTime": -6e9})", "1800");
  says(R"({"reviewerID": "u", "asin": "i", "overall": 5, "unixReviewTime": 9e10})", "future");
  says(R"({"reviewerID": ["u"], "asin": "i", "overall": 5})", "neither text nor a whole number");
}

TEST_F(BadLines, UpToTheNumberAskedForAreLeftOutAndReported) {
  std::string text;
  const auto reviews = random_reviews(40000, 200, 200, 1, "s");
  const std::string json = as_json_2014(reviews);
  std::vector<int64_t> bad;
  int64_t line = 0;
  for (std::size_t at = 0; at < json.size(); ++line) {
    const std::size_t end = json.find('\n', at) + 1;
    if (line % 5000 == 4999) {
      text += "broken\n";
      bad.push_back(++line);
    }
    text += json.substr(at, end - at);
    at = end;
  }
  const std::string path = put("s", text),
                    target = put("t", as_json_2014(random_reviews(500, 30, 30, 2, "t")));
  PrepareOptions enough = loose_options(), short_of = loose_options();
  enough.skip_bad = static_cast<int64_t>(bad.size());
  short_of.skip_bad = 2;

  for (const int threads : {1, 5}) {
    const auto report = run_prepare(
        {path}, {target}, folder_.path("left" + std::to_string(threads)), enough, threads);
    ASSERT_EQ(report["inputs"]["source"]["bad_lines"].size(), bad.size());
    for (std::size_t i = 0; i < bad.size(); ++i) {
      EXPECT_EQ(report["inputs"]["source"]["bad_lines"][i]["line"], bad[i]);
    }
    const std::string error = error_of([&] { prepared({path}, {target}, threads, short_of); });
    EXPECT_NE(error.find(fmt::format("{}:{}: ", path, bad[2])), std::string::npos) << error;
  }
  EXPECT_EQ(prepared({path}, {target}, 2, enough), prepared({put("clean", json)}, {target}, 2));
}

TEST_F(BadLines, LeaveAnExistingDirectoryAsItWas) {
  const std::string good = put("s", as_json_2014(random_reviews(800, 30, 30, 1, "s"))),
                    target = put("t", as_json_2014(random_reviews(800, 30, 30, 2, "t"))),
                    bad = put("bad", "{\n"), out = folder_.path("data");
  run_prepare({good}, {target}, out, loose_options());
  const auto before = files_of(out);

  EXPECT_NE(error_of([&] { run_prepare({good}, {target}, out, loose_options()); }).find("--force"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_prepare({bad}, {target}, out, loose_options(), 2, true);
            }).find("bad:1: "),
            std::string::npos);

  EXPECT_EQ(files_of(out), before);
  int others = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    others += entry.path().filename().string().find("staging") != std::string::npos;
  }
  EXPECT_EQ(others, 0);
  run_prepare(
      {good}, {good}, out,
      [] {
        PrepareOptions options = loose_options();
        options.overlap = Overlap::separate;
        return options;
      }(),
      2, true);
  EXPECT_NE(files_of(out), before);
}

TEST_F(BadLines, ADirectoryThatPrepareDidNotMakeIsNeverReplaced) {
  std::filesystem::create_directory(folder_.path("mine"));
  put("mine/thesis.txt", "x");
  const std::string s = put("s", as_json_2014(random_reviews(800, 30, 30, 1, "s")));

  EXPECT_NE(error_of([&] {
              run_prepare({s}, {s}, folder_.path("mine"), loose_options(), 2, true);
            }).find("was not made by this command"),
            std::string::npos);

  EXPECT_EQ(read_text(folder_.path("mine/thesis.txt")), "x");
}

TEST_F(BadLines, ADirectoryWithFilesOfOthersIsNeverReplaced) {
  const std::string s = put("s", as_json_2014(random_reviews(800, 30, 30, 1, "s"))),
                    t = put("t", as_json_2014(random_reviews(800, 30, 30, 2, "t")));
  run_prepare({s}, {t}, folder_.path("data"), loose_options());
  for (const char* name : {"data/thesis.txt", "data/target/target.train.text.bak"}) {
    put(name, "x");

    const std::string error =
        error_of([&] { run_prepare({s}, {t}, folder_.path("data"), loose_options(), 2, true); });

    EXPECT_NE(error.find(std::string(name) + ": was not written by prepare"), std::string::npos)
        << error;
    EXPECT_EQ(read_text(folder_.path(name)), "x");
    std::filesystem::remove(folder_.path(name));
  }
}

TEST_F(BadLines, InputsInTheDirectoryToBeReplacedAreKept) {
  const std::string s = put("s", as_json_2014(random_reviews(800, 30, 30, 1, "s"))),
                    t = put("t", as_json_2014(random_reviews(800, 30, 30, 2, "t")));
  run_prepare({s}, {t}, folder_.path("data"), loose_options());
  std::filesystem::create_symlink("data", folder_.path("link"));
  const std::string inside = folder_.path("link/source/source.train.inter");

  const std::string error =
      error_of([&] { run_prepare({inside}, {t}, folder_.path("data"), loose_options(), 2, true); });

  EXPECT_NE(error.find("lies in " + folder_.path("data")), std::string::npos) << error;
  EXPECT_TRUE(std::filesystem::exists(inside));
}

TEST_F(PreparedFiles, AreMadeBesideADirectoryThatOnlyLooksLikeATemporaryOne) {
  const std::string s = put("s", as_json_2014(random_reviews(800, 30, 30, 1, "s"))),
                    t = put("t", as_json_2014(random_reviews(800, 30, 30, 2, "t")));
  const std::string mine = folder_.path(".zz.staging-backup"),
                    abandoned = folder_.path(".zz.cfaa-0aXb12.staging");
  for (const std::string& directory : {mine, abandoned}) {
    std::filesystem::create_directory(directory);
    write_text(directory + "/x", "x");
  }

  run_prepare({s}, {t}, folder_.path("zz"), loose_options());

  EXPECT_TRUE(std::filesystem::exists(mine + "/x"));
  EXPECT_FALSE(std::filesystem::exists(abandoned));
}

TEST_F(PreparedFiles, KeepTimesBefore1970AndTakeAReviewWithoutATimeForTheEarliest) {
  const std::string csv =
      "user,item,rating,time,text\nu,i,5,-378691200.5,in 1958\nu,i,4,,without\n"
      "u,j,5,-378691200500,in ms\n";
  PrepareOptions options = loose_options();
  options.source_core = options.target_core = "1,1";
  options.split_ratio = "1:0:0";
  const auto files = prepared(
      {put("s", csv)}, {put("t", as_json_2014(random_reviews(99, 9, 9, 2, "t")))}, 2, options);

  EXPECT_EQ(files.at("source/source.train.inter"),
            "user_id:token\titem_id:token\trating:float\tlabel:float\ttimestamp:float\n"
            "u\ti\t5\t1\t-378691200.5\nu\tj\t5\t1\t-378691200.5\n");
}

TEST_F(PreparedFiles, AreReadByTheColumnsOfTheirDomain) {
  const auto source = random_reviews(800, 30, 30, 1, "s"),
             target = random_reviews(800, 30, 30, 2, "t");
  const auto renamed = [](const std::string& csv, const std::string& header) {
    return header + csv.substr(csv.find('\n'));
  };
  const std::string s = put("s", renamed(as_delimited(source, ','), "when,body,stars,what,who")),
                    t = put("t", renamed(as_delimited(target, ';'), "t;text;r;i;u"));
  PrepareOptions options = loose_options();
  options.source_columns = "user=who,item=what";
  options.target_columns = "user=u,item=i,rating=r,time=t";
  options.columns = "time=when";

  EXPECT_EQ(prepared({s}, {t}, 2, options),
            prepared({put("a", as_json_2014(source))}, {put("b", as_json_2014(target))}));
  options.source_columns = "user=nobody";
  EXPECT_NE(error_of([&] { prepared({s}, {t}, 2, options); }).find("--source-columns user=nobody"),
            std::string::npos);
}

TEST_F(PreparedFiles, OptionsThatDoNotReadAreRefusedBeforeAnythingIsRead) {
  const auto with = [&](const std::function<void(PrepareOptions&)>& change) {
    PrepareOptions options;
    change(options);
    return error_of([&] { run_prepare({"absent"}, {"absent"}, folder_.path("x"), options); });
  };
  EXPECT_NE(with([](auto& o) { o.source_core = "5,x"; }).find("source_core"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.target_core = "1,2,3"; }).find("target_core"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.split_ratio = "0:1:1"; }).find("split_ratio"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.columns = "who=x"; }).find("--columns"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.rating_scale = "5,1"; }).find("rating_scale"), std::string::npos);
  EXPECT_NE(with([](auto&) {}).find("cannot be opened"), std::string::npos);
}

class TargetLabels : public PreparedFiles {
 protected:
  Domain target_with(double labels, bool keep_reviews) {
    PrepareOptions options = loose_options();
    options.target_labels = labels;
    options.keep_reviews = keep_reviews;
    const std::string out = folder_.path("out" + std::to_string(next_++));
    run_prepare({put("s", as_json_2014(source_))}, {put("t", as_json_2014(target_))}, out, options);
    return load_domain(out, "target");
  }
  static std::vector<std::string> texts(const Domain& domain) {
    const ReviewTextFile file(domain.text_path(Split::train));
    std::vector<std::string> all;
    for (int64_t i = 0; i < file.count(); ++i) all.emplace_back(file.text(i));
    return all;
  }

  std::vector<Review> source_ = random_reviews(3000, 120, 80, 1, "s");
  std::vector<Review> target_ = random_reviews(4000, 90, 60, 2, "t");
};

TEST_F(TargetLabels, WhenDroppedLeaveTheCatalogueTheUsersTheRowsAndTheTestSplit) {
  const Domain whole = target_with(1, false), thin = target_with(0.1, false);

  ASSERT_EQ(thin.users.size(), whole.users.size());
  ASSERT_EQ(thin.items.size(), whole.items.size());
  EXPECT_EQ(thin.train.item, whole.train.item);
  EXPECT_EQ(thin.valid.item, whole.valid.item);
  EXPECT_EQ(thin.test.item, whole.test.item);
  EXPECT_EQ(thin.test.label, whole.test.label);
  const auto labels = [](const SplitRows& rows) {
    return std::count_if(rows.label.begin(), rows.label.end(), [](float l) { return l >= 0; });
  };
  EXPECT_NEAR(static_cast<double>(labels(thin.train)),
              0.1 * static_cast<double>(whole.train.size()),
              0.05 * static_cast<double>(whole.train.size()));
  EXPECT_LT(labels(thin.valid), whole.valid.size() / 2);
}

TEST_F(TargetLabels, WhenDroppedTakeTheirRatingsAndTheirReviewsAlong) {
  const Domain whole = target_with(1, false), thin = target_with(0.3, false),
               read = target_with(0.3, true);

  const auto all = texts(whole), few = texts(thin), kept = texts(read);
  ASSERT_EQ(few.size(), all.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    EXPECT_EQ(few[r], thin.train.has_label(r) ? all[r] : "");
    EXPECT_EQ(thin.train.rating[r], thin.train.has_label(r) ? whole.train.rating[r] : 0);
  }
  EXPECT_EQ(kept, all);
  EXPECT_EQ(read.train.label, thin.train.label);
}

TEST_F(TargetLabels, AtNoneLeaveNothingToLearnFromOrToChooseBy) {
  const Domain none = target_with(0, true);

  for (const SplitRows* rows : {&none.train, &none.valid}) {
    EXPECT_EQ(std::count(rows->label.begin(), rows->label.end(), kNoLabel), rows->size());
  }
}

TEST_F(PreparedFiles, ATargetThatIsLeftEmptySaysWhatToDo) {
  const std::string s = put("s", as_json_2014(random_reviews(800, 30, 30, 1, "s")));

  EXPECT_NE(error_of([&] { prepared({s}, {s}); }).find("no interaction of the target is left"),
            std::string::npos);
}

class UsersHeldOut : public PreparedFiles {
 protected:
  std::string prepare_with(double share, double labels = 1) {
    PrepareOptions options = loose_options();
    options.hold_out_users = share;
    options.target_labels = labels;
    const std::string out = folder_.path("out" + std::to_string(next_++));
    run_prepare({put("s", as_json_2014(source_))}, {put("t", as_json_2014(target_))}, out, options);
    return out;
  }
  // Users, items and texts of newcomers/reviews.jsonl.
  static std::vector<NewcomersLine> lines(const std::string& out) {
    std::vector<NewcomersLine> all;
    std::istringstream file(read_text(held_out_reviews_path(out)));
    for (std::string line; std::getline(file, line);) {
      const auto fields = nlohmann::json::parse(line);
      all.push_back({fields["user"], fields["item"], fields["text"]});
    }
    return all;
  }

  std::vector<Review> source_ = random_reviews(3000, 120, 80, 1, "s");
  std::vector<Review> target_ = random_reviews(4000, 90, 60, 2, "t");
};

TEST_F(UsersHeldOut, AreWhollyApartAndTheOthersAsTheyWere) {
  const std::string whole_path = prepare_with(0), part_path = prepare_with(0.3);
  const Domain whole = load_domain(whole_path, "target"), part = load_domain(part_path, "target");

  EXPECT_FALSE(std::filesystem::exists(whole_path + "/newcomers"));
  std::map<std::pair<std::string, std::string>, std::string> said;
  const ReviewTextFile texts(whole.text_path(Split::train));
  std::set<std::pair<std::string, std::string>> to_find;
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    const SplitRows &all = whole.rows(split), &kept = part.rows(split);
    std::size_t next = 0;
    for (std::size_t r = 0; r < all.user.size(); ++r) {
      const std::string user(whole.users[all.user[r]]), item(whole.items[all.item[r]]);
      if (part.users.find(user) >= 0) {
        ASSERT_LT(next, kept.user.size());
        EXPECT_EQ(part.users[kept.user[next]], user);
        EXPECT_EQ(part.items[kept.item[next]], item);
        ++next;
      } else if (split == Split::train) {
        said[{user, item}] = texts.text(static_cast<int64_t>(r));
      } else {
        to_find.emplace(user, item);
      }
    }
    EXPECT_EQ(next, kept.user.size());
  }
  EXPECT_LT(part.users.size(), 0.9 * static_cast<double>(whole.users.size()));
  EXPECT_GT(part.users.size(), 0.5 * static_cast<double>(whole.users.size()));
  std::map<std::pair<std::string, std::string>, std::string> written;
  for (const NewcomersLine& line : lines(part_path)) written[{line.user, line.item}] = line.text;
  EXPECT_EQ(written, said);
  const auto asked = read_asked_items(part_path);
  EXPECT_EQ((std::set<std::pair<std::string, std::string>>(asked.begin(), asked.end())), to_find);
  EXPECT_EQ(asked.size(), to_find.size());
}

TEST_F(UsersHeldOut, AreTheMoreTheLargerTheShareAndKeepWhatTheySayWhateverTheLabels) {
  std::set<std::string> few, many;
  for (const NewcomersLine& line : lines(prepare_with(0.2))) few.insert(line.user);
  const std::string half = prepare_with(0.5);
  for (const NewcomersLine& line : lines(half)) many.insert(line.user);

  EXPECT_TRUE(std::includes(many.begin(), many.end(), few.begin(), few.end()));
  EXPECT_GT(many.size(), few.size());
  EXPECT_EQ(files_of(half + "/newcomers", {}), files_of(prepare_with(0.5, 0.1) + "/newcomers", {}));
  EXPECT_NE(error_of([&] { prepare_with(1); }).find("--hold-out-users"), std::string::npos);
}

TEST_F(UsersHeldOut, AreReplacedWithTheDirectory) {
  PrepareOptions options = loose_options();
  const std::string out = prepare_with(0.3);
  PrepareRequest request{{put("s", as_json_2014(source_))}, {put("t", as_json_2014(target_))}};
  request.out = out;
  request.force = true;
  request.options = options;
  ThreadPool pool(2);

  prepare(request, pool, {});

  EXPECT_FALSE(std::filesystem::exists(out + "/newcomers"));
  EXPECT_NE(error_of([&] { read_asked_items(out); }).find("no users were held out"),
            std::string::npos);
}

}  // namespace
}  // namespace cfaa::test
