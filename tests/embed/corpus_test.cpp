// A corpus to vectors, over an engine whose numbers are known.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "host/io/npy.h"
#include "host/io/safetensors.h"
#include "tests/data/raw_reviews.h"
#include "tests/embed/embed_case.h"

namespace cfaa::test {
namespace {

class EmbedCorpus : public testing::Test {
 protected:
  CorpusRequest request(const std::string& input, const std::string& out = "v.npy") {
    CorpusRequest request;
    request.inputs = {folder_.path(input)};
    request.out = folder_.path(out);
    request.lines.format = format_by_name(input);
    request.options.window = 64;
    request.threads = 2;
    return request;
  }
  std::string bytes(const std::string& name) { return read_text(folder_.path(name)); }

  TemporaryFolder folder_;
  HashedEngine engine_;
};

TEST_F(EmbedCorpus, BytesDoNotDependOnThreadsWindowsBatchesOrSlots) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(250, 1)));
  run_corpus(request("a.txt"), engine_);
  const std::string expected = bytes("v.npy");

  for (const int threads : {1, 3}) {
    for (const int64_t window : {1, 50, 5000}) {
      for (const int64_t budget : {1, 4096}) {
        HashedEngine engine({.batch_tokens = budget, .slots = threads});
        CorpusRequest other = request("a.txt", "w.npy");
        other.threads = threads;
        other.options.window = window;

        run_corpus(other, engine);

        EXPECT_EQ(bytes("w.npy") == expected, true) << threads << " " << window << " " << budget;
      }
    }
  }
  EXPECT_FALSE(exists(folder_.path("w.npy.partial")));
  EXPECT_FALSE(exists(folder_.path("w.npy.journal")));
}

TEST_F(EmbedCorpus, ADocumentIsTheExactMeanOfItsSentences) {
  const std::vector<std::string> texts = random_texts(200, 2);
  write_text(folder_.path("a.txt"), as_lines(texts));

  const EmbedReport report = run_corpus(request("a.txt"), engine_);

  const NpyFile file(folder_.path("v.npy"));
  ASSERT_EQ(file.shape(), (std::vector<int64_t>{200, engine_.width()}));
  ASSERT_EQ(file.dtype(), DType::f32);
  int64_t sentences = 0;
  for (std::size_t d = 0; d < texts.size(); ++d) {
    const auto vectors = sentence_vectors(texts[d], true, 24, engine_.width());
    sentences += static_cast<int64_t>(vectors.size());
    for (int64_t i = 0; i < engine_.width(); ++i) {
      double sum = 0;
      for (const auto& vector : vectors) sum += double(vector[static_cast<std::size_t>(i)]);
      const auto mean = static_cast<float>(vectors.empty() ? 0 : sum / double(vectors.size()));
      ASSERT_EQ(file.mapped<float>()[static_cast<int64_t>(d) * engine_.width() + i], mean) << d;
    }
  }
  EXPECT_EQ(report.counts.sentences, sentences);
  EXPECT_EQ(report.rows, 200);
}

TEST_F(EmbedCorpus, BucketsGiveTheSameVectorsAndTheirPaddingIsCounted) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(100, 3)));
  HashedEngine bucketed({.batch_tokens = 256, .bucket = 8});

  const EmbedReport exact = run_corpus(request("a.txt"), engine_);
  const EmbedReport padded = run_corpus(request("a.txt", "w.npy"), bucketed);

  EXPECT_EQ(bytes("v.npy"), bytes("w.npy"));
  EXPECT_EQ(exact.counts.padded_tokens, exact.counts.encoded_tokens);
  EXPECT_GT(padded.counts.padded_tokens, padded.counts.encoded_tokens);
}

TEST_F(EmbedCorpus, SentencesWithTheSameTokensAreEncodedOnceInAWindow) {
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += "Great. GREAT.  I like it!\n";
  write_text(folder_.path("a.txt"), lines);
  CorpusRequest one_window = request("a.txt");
  one_window.options.window = 1000;

  const EmbedReport report = run_corpus(one_window, engine_);

  EXPECT_EQ(engine_.sequences, 2);
  EXPECT_EQ(report.counts.sentences, 90);
  EXPECT_EQ(report.counts.encoded_sentences, 2);
}

TEST_F(EmbedCorpus, EmptyBlankNulAndIllFormedTextsHaveTheirRows) {
  const std::string text =
      std::string("fine.\n\n  \t\na\0b \xFF c\n", 19) + std::string("\xE2\x82\n\xEF\xBB\xBF x");
  write_text(folder_.path("a.txt"), text);

  const EmbedReport report = run_corpus(request("a.txt"), engine_);

  EXPECT_EQ(report.rows, 6);
  EXPECT_EQ(report.counts.replaced, 2);
  EXPECT_EQ(bytes("v.empty.txt"), "1\n2\n4\n");
  const NpyFile file(folder_.path("v.npy"));
  for (int64_t i = 0; i < engine_.width(); ++i) {
    EXPECT_EQ(file.mapped<float>()[1 * engine_.width() + i], 0);
    EXPECT_EQ(file.mapped<float>()[4 * engine_.width() + i], 0);
    EXPECT_NE(file.mapped<float>()[3 * engine_.width() + i], 0);
  }
}

TEST_F(EmbedCorpus, UnsplitDocumentsAreOneSequenceCutAtTheLimit) {
  const std::vector<std::string> texts = {"a fine. the guitar!", "",
                                          "a a a a a a a a a a a a a a a a a a"};
  write_text(folder_.path("a.txt"), as_lines(texts));
  CorpusRequest unsplit = request("a.txt");
  unsplit.options.split = SplitChoice::none;

  const EmbedReport report = run_corpus(unsplit, engine_, 10);

  const NpyFile file(folder_.path("v.npy"));
  for (std::size_t d = 0; d < texts.size(); ++d) {
    const auto expected = sentence_vectors(texts[d], false, 10, engine_.width())[0];
    for (int64_t i = 0; i < engine_.width(); ++i) {
      EXPECT_EQ(file.mapped<float>()[static_cast<int64_t>(d) * engine_.width() + i],
                expected[static_cast<std::size_t>(i)]);
    }
  }
  EXPECT_EQ(report.counts.cut, 1);
  EXPECT_EQ(bytes("v.empty.txt"), "1\n");
}

TEST_F(EmbedCorpus, EveryFormatAndCompressionGivesTheSameRows) {
  const std::vector<std::string> texts = random_texts(150, 4);
  std::string json_lines, csv = "\xEF\xBB\xBFn,\"text\"\r\n", tsv = "text\tn\n";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    json_lines += nlohmann::json({{"n", i}, {"text", texts[i]}}).dump() + "\n";
    csv += std::to_string(i) + "," + quoted(texts[i]) + "\r\n";
    tsv += texts[i] + "\t" + std::to_string(i) + "\n";
  }
  const std::string lines = as_lines(texts);
  run_corpus((write_text(folder_.path("a.txt"), lines), request("a.txt")), engine_);
  const std::string expected = bytes("v.npy");
  const std::pair<std::string, std::string> files[] = {{"a.jsonl", json_lines},
                                                       {"a.csv", csv},
                                                       {"a.tsv", tsv},
                                                       {"a.txt.gz", gzip_members(lines)},
                                                       {"a.jsonl.gz", gzip_members(json_lines)},
                                                       {"a.csv.zst", zstd_frames(csv)},
                                                       {"a.corpus", lines},
                                                       {"b.corpus", json_lines}};
  for (const auto& [name, content] : files) {
    write_text(folder_.path(name), content);

    run_corpus(request(name, "w.npy"), engine_);

    EXPECT_EQ(bytes("w.npy") == expected, true) << name;
  }
}

TEST_F(EmbedCorpus, IdsAreKeptBeside) {
  write_text(folder_.path("a.jsonl"),
             "{\"id\": \"x\\ty\", \"text\": \"One. Two.\"}\n\n{\"text\": null, \"id\": 7}\n"
             "{\"id\": \"z\", \"text\": \"Thrée  ok. Four\"}\n{\"id\": \"w\"}\n");
  CorpusRequest documents = request("a.jsonl"), sentences = request("a.jsonl", "s.npy");
  documents.lines.id_field = sentences.lines.id_field = "id";
  documents.lines.absent_is_empty = sentences.lines.absent_is_empty = true;
  sentences.by_sentence = true;

  run_corpus(documents, engine_);
  const EmbedReport report = run_corpus(sentences, engine_);

  EXPECT_EQ(bytes("v.ids.tsv"), "row\tid\n0\tx\\ty\n1\t7\n2\tz\n3\tw\n");
  EXPECT_EQ(bytes("s.ids.tsv"),
            "row\tdocument\tstart\tend\tid\n0\t0\t0\t4\tx\\ty\n1\t0\t5\t9\tx\\ty\n"
            "2\t2\t0\t10\tz\n3\t2\t11\t15\tz\n");
  EXPECT_EQ(report.rows, 4);
  EXPECT_EQ(bytes("s.empty.txt"), "1\n3\n");
}

TEST_F(EmbedCorpus, HalfPrecisionAndSafetensorsHoldTheSameNumbers) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(40, 5)));
  CorpusRequest half = request("a.txt", "h.npy"), tensors = request("a.txt", "v.safetensors");
  half.options.dtype = DType::f16;

  run_corpus(request("a.txt"), engine_);
  run_corpus(half, engine_);
  run_corpus(tensors, engine_);

  const std::vector<float> exact = NpyFile(folder_.path("v.npy")).read<float>();
  const std::vector<float> rounded = NpyFile(folder_.path("h.npy")).read<float>();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(rounded[i], half_to_float(float_to_half(exact[i])));
  }
  const SafetensorsFile file(folder_.path("v.safetensors"));
  EXPECT_EQ(file.entry("vectors").shape, (std::vector<int64_t>{40, engine_.width()}));
  EXPECT_EQ(file.read<float>("vectors"), exact);
}

TEST_F(EmbedCorpus, AFifoIsReadOnceAndLeavesTheSameBytes) {
  const std::string lines = as_lines(random_texts(300, 6));
  write_text(folder_.path("a.txt"), lines);
  ASSERT_EQ(::mkfifo(folder_.path("fifo").c_str(), 0600), 0);
  std::thread writer([&] {
    const int fd = ::open(folder_.path("fifo").c_str(), O_WRONLY);
    for (std::size_t at = 0; at < lines.size();) {
      const ssize_t done =
          ::write(fd, lines.data() + at, std::min<std::size_t>(777, lines.size() - at));
      if (done <= 0) break;
      at += static_cast<std::size_t>(done);
    }
    ::close(fd);
  });

  run_corpus(request("fifo", "w.npy"), engine_);
  writer.join();
  run_corpus(request("a.txt"), engine_);

  EXPECT_EQ(bytes("w.npy"), bytes("v.npy"));
}

TEST_F(EmbedCorpus, AnEmptyCorpusIsAnArrayWithoutRows) {
  write_text(folder_.path("a.txt"), "");

  run_corpus(request("a.txt"), engine_);

  EXPECT_EQ(NpyFile(folder_.path("v.npy")).shape(), (std::vector<int64_t>{0, engine_.width()}));
}

TEST_F(EmbedCorpus, OneHugeDocumentIsEncodedInParts) {
  std::string text;
  for (const std::string& part : random_texts(500, 7)) text += part + " ";
  write_text(folder_.path("a.txt"), text + "\nshort.\n");
  CorpusRequest small = request("a.txt"), large = request("a.txt", "w.npy");
  small.options.window = 10;
  large.options.window = 100000;

  run_corpus(small, engine_);
  run_corpus(large, engine_);

  EXPECT_EQ(bytes("v.npy"), bytes("w.npy"));
}

TEST_F(EmbedCorpus, WhatCannotBeReadIsNamed) {
  write_text(folder_.path("a.txt"), "a\n");
  write_text(folder_.path("a.csv"), "id,review\n1,good\n2\n");
  write_text(folder_.path("a.jsonl"), "{\"review\": \"a\"}\n{\"review\": 3}\n");
  const auto says = [&](CorpusRequest request, const std::string& expected) {
    const std::string error = error_of([&] { run_corpus(request, engine_); });
    EXPECT_NE(error.find(expected), std::string::npos) << error;
    EXPECT_FALSE(exists(request.out));
    EXPECT_FALSE(exists(request.out + ".partial"));
    EXPECT_FALSE(exists(request.out + ".journal"));
  };
  says(request("absent.txt"), "cannot be opened: No such file");
  says(request("a.txt", "v.bin"), "must end in .npy or .safetensors");
  says(request("a.txt", "no/v.npy"), "No such file");
  says(request("a.csv"), "has no column 'text'; --field names one of: id, review");
  says(request("a.jsonl"), "line 1 has no string field 'text'");
  CorpusRequest field = request("a.csv");
  field.lines.field = "review";
  says(field, "line 3 has 1 fields where the header has 2");
  field = request("a.jsonl");
  field.lines.field = "review";
  field.lines.absent_is_empty = true;
  says(field, "line 2 has no string field 'review'");
  CorpusRequest ids = request("a.txt");
  ids.lines.id_field = "id";
  says(ids, "has no fields");
  const std::string error = error_of([&] { run_corpus(request("a.txt"), engine_, 1); });
  EXPECT_NE(error.find("leaves no room"), std::string::npos) << error;
}

TEST_F(EmbedCorpus, FilesOfOthersAreReplacedByForceOnly) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(60, 1)));
  run_corpus(request("a.txt", "expected.npy"), engine_);
  for (const char* foreign : {"v.npy", "v.ids.tsv", "v.empty.txt", "v.files.json"}) {
    write_text(folder_.path(foreign), "mine");

    const std::string error = error_of([&] { run_corpus(request("a.txt"), engine_); });

    EXPECT_NE(error.find(std::string(foreign) + ": is there already"), std::string::npos) << error;
    EXPECT_EQ(bytes(foreign), "mine");
    CorpusRequest forced = request("a.txt");
    forced.force = true;
    run_corpus(forced, engine_);
    EXPECT_EQ(bytes("v.npy") == bytes("expected.npy"), true);
    run_corpus(request("a.txt"), engine_);  // its own it replaces
    for (const char* name : {"v.npy", "v.ids.tsv", "v.empty.txt", "v.files.json"}) {
      std::filesystem::remove(folder_.path(name));
    }
  }
}

TEST_F(EmbedCorpus, ALinkIsWrittenThrough) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(60, 1)));
  std::filesystem::create_directory(folder_.path("far"));
  std::filesystem::create_symlink("far/real.npy", folder_.path("v.npy"));

  run_corpus(request("a.txt"), engine_);
  run_corpus(request("a.txt", "expected.npy"), engine_);

  EXPECT_TRUE(std::filesystem::is_symlink(folder_.path("v.npy")));
  EXPECT_EQ(bytes("far/real.npy") == bytes("expected.npy"), true);
}

TEST_F(EmbedCorpus, AFirstLookIsTheFirstRows) {
  const std::vector<std::string> texts = random_texts(100, 1);
  write_text(folder_.path("a.txt"), as_lines(texts));
  write_text(folder_.path("b.txt"), as_lines({texts.begin(), texts.begin() + 7}));
  CorpusRequest first = request("a.txt");
  first.limit = 7;

  const EmbedReport report = run_corpus(first, engine_);
  run_corpus(request("b.txt", "w.npy"), engine_);

  EXPECT_EQ(report.rows, 7);
  EXPECT_EQ(bytes("v.npy"), bytes("w.npy"));
}

}  // namespace
}  // namespace cfaa::test
