// `cfaa_gpu embed` as a user runs it, over a tiny random model.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "bench/reference/encoder.h"
#include "host/embed/review_sums.h"
#include "host/io/npy.h"
#include "tests/data/raw_reviews.h"
#include "tests/embed/embed_case.h"
#include "tests/paths.h"
#include "tests/program.h"

namespace cfaa::test {
namespace {

using namespace reference;

namespace fs = std::filesystem;

class EmbedProgram : public testing::Test {
 protected:
  void SetUp() override {
    shape_.vocabulary = static_cast<int64_t>(small_tokenizer().vocabulary_size());
    shape_.positions = 64;
    model_ = make_model("model");
    write_text(folder_.path("probe.txt"), "a\n");
    const Outcome probe = run("probe.txt --out probe.npy");
    if (probe.err.find("was built without") != std::string::npos) GTEST_SKIP() << probe.err;
    ASSERT_EQ(probe.code, 0) << probe.err;
  }

  std::string make_model(const std::string& name) {
    const std::string folder = folder_.path(name);
    fs::create_directory(folder);
    write_encoder(random_encoder(shape_, 1), folder);
    for (const char* file : {"vocab.txt", "tokenizer_config.json"}) {
      if (exists(text_data("bert/") + file)) {
        fs::copy_file(text_data("bert/") + file, folder + "/" + file,
                      fs::copy_options::overwrite_existing);
      }
    }
    return folder;
  }
  // Names in `arguments` are relative to the test's folder.
  std::string command(const std::string& arguments, const std::string& model = "model") {
    return fmt::format("embed --device cpu --threads 2 --model {} {}", model, arguments);
  }
  Outcome run(const std::string& arguments, const std::string& model = "model",
              const std::string& before = "") {
    const TemporaryFolder output;
    const std::string line =
        fmt::format("cd {} && {} {} {} >{} 2>{}", folder_.path(), before, program_path(),
                    command(arguments, model), output.path("out"), output.path("err"));
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            read_text(output.path("out")), read_text(output.path("err"))};
  }
  // Kills the command after a while; whether it was still running.
  bool run_and_kill(const std::string& arguments, std::chrono::microseconds after) {
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_RDWR);
      ::dup2(null, 1);
      ::dup2(null, 2);
      const std::string line =
          "cd " + folder_.path() + " && exec " + program_path() + " " + command(arguments);
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    std::this_thread::sleep_for(after);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status);
  }
  std::string bytes(const std::string& name) { return read_text(folder_.path(name)); }

  TemporaryFolder folder_;
  EncoderShape shape_;
  std::string model_;
};

TEST_F(EmbedProgram, VectorsAreThoseOfTheReference) {
  const std::vector<std::string> texts = {"a fine guitar.", "It is not. The one!", "x"};
  write_text(folder_.path("a.txt"), as_lines(texts));

  const Outcome outcome = run("a.txt --out v.npy --split none --layer last --json");

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const NpyFile file(folder_.path("v.npy"));
  ASSERT_EQ(file.shape(), (std::vector<int64_t>{3, shape_.hidden}));
  const ReferenceEncoder reference = random_encoder(shape_, 1);
  TokenizerScratch scratch(small_tokenizer());
  std::vector<int32_t> ids;
  for (std::size_t d = 0; d < texts.size(); ++d) {
    small_tokenizer().encode(texts[d], 64, scratch, ids);
    const std::vector<double> expected = encode(reference, ids, shape_.layers);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(file.mapped<float>()[d * expected.size() + i], expected[i], 1e-5) << d;
    }
  }
  const auto summary = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(summary["rows"], 3);
  EXPECT_EQ(summary["device"], "cpu");
  for (const char* key : {"sentences", "tokens", "cut", "empty", "unique_share", "seconds",
                          "tokens_per_second", "padding_share", "engine", "precision"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
}

TEST_F(EmbedProgram, StandardInputAndCompressedFilesGiveTheSameBytes) {
  const std::string lines = as_lines(random_texts(60, 1));
  write_text(folder_.path("a.txt"), lines);
  write_text(folder_.path("a.txt.gz"), gzip_members(lines));

  const Outcome file = run("a.txt --out v.npy"), packed = run("a.txt.gz --out w.npy"),
                piped = run("- --out x.npy <a.txt");

  EXPECT_EQ(file.code, 0) << file.err;
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_NE(piped.err.find("cannot be read a second time"), std::string::npos) << piped.err;
  EXPECT_EQ(bytes("v.npy") == bytes("w.npy"), true);
  EXPECT_EQ(bytes("v.npy") == bytes("x.npy"), true);
}

TEST_F(EmbedProgram, KilledOftenTheCorpusComesOutTheSame) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(800, 2)));
  const std::string rest = "--unit sentence --window 50 --batch-tokens 64";
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(run("a.txt --out expected.npy " + rest).code, 0);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - before);
  const std::string again = "a.txt --out v.npy " + rest;
  std::mt19937 random(5);
  const int kills = kills_asked_for(8);
  int killed = 0, at_work = 0, rounds = 0;

  for (; killed < kills && rounds < 5 * kills; ++rounds) {
    killed += run_and_kill(again, whole * static_cast<int>(100 + random() % 500) / 1000);
    at_work += exists(folder_.path("v.npy.journal"));
    if (!exists(folder_.path("v.npy"))) continue;
    ASSERT_EQ(bytes("v.npy") == bytes("expected.npy"), true) << rounds;
    fs::remove(folder_.path("v.npy"));
  }
  const Outcome last = run(again + " --json");

  ASSERT_EQ(last.code, 0) << last.err;
  std::cout << "killed " << killed << " of " << rounds << " runs, " << at_work
            << " of them with windows done or under way\n";
  EXPECT_EQ(killed, kills);
  EXPECT_GT(at_work, kills / 4);
  EXPECT_EQ(bytes("v.npy") == bytes("expected.npy"), true);
  EXPECT_EQ(bytes("v.ids.tsv") == bytes("expected.ids.tsv"), true);
  EXPECT_EQ(bytes("v.empty.txt") == bytes("expected.empty.txt"), true);
  EXPECT_FALSE(exists(folder_.path("v.npy.journal")));
}

TEST_F(EmbedProgram, APreparedDirectoryIsEmbeddedKilledOrNot) {
  write_text(folder_.path("s"), as_json_2014(random_reviews(1500, 30, 30, 1, "s")));
  write_text(folder_.path("t"), as_json_2014(random_reviews(1500, 30, 30, 2, "t")));
  fs::create_directory(folder_.path("apart"));  // beside it vectors would be reused
  run_prepare({folder_.path("s")}, {folder_.path("t")}, folder_.path("apart/whole"));
  fs::copy(folder_.path("apart/whole"), folder_.path("data"), fs::copy_options::recursive);
  const auto before = std::chrono::steady_clock::now();
  const Outcome whole = run("apart/whole --window 100 --json");
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - before);
  std::mt19937 random(6);

  for (int round = 0; round < 6; ++round) {
    run_and_kill("data --window 100", time * static_cast<int>(200 + random() % 800) / 1000);
  }
  const Outcome last = run("data --window 100"), nothing_left = run("data --window 100");

  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_NE(nothing_left.out.find("all of it was there"), std::string::npos) << nothing_left.out;
  EXPECT_EQ(files_of(folder_.path("data")) == files_of(folder_.path("apart/whole")), true);
  const Dataset data = load_dataset(folder_.path("data"));
  EXPECT_EQ(load_review_sums(data).first.width, shape_.hidden);
  const auto summary = nlohmann::json::parse(whole.out);
  EXPECT_EQ(summary["target"]["rows"], data.target.train.size());
}

TEST_F(EmbedProgram, AskedToStopItSaysHowToResume) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(8000, 2)));
  const std::string arguments = "a.txt --out v.npy --window 200 --batch-tokens 64";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string line = "cd " + folder_.path() + " && exec " + program_path() + " " +
                             command(arguments) + " >/dev/null 2>said";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  while (!exists(folder_.path("v.npy.journal")) && ::waitpid(child, nullptr, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  ::kill(child, SIGTERM);
  int status = 0;
  ::waitpid(child, &status, 0);
  const Outcome rest = run(arguments + " --json");

  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM) << status;
  EXPECT_NE(bytes("said").find("stopped by SIGTERM; "), std::string::npos) << bytes("said");
  EXPECT_NE(bytes("said").find("the same command resumes"), std::string::npos) << bytes("said");
  ASSERT_EQ(rest.code, 0) << rest.err;
  ASSERT_EQ(run("a.txt --out expected.npy --window 200 --batch-tokens 64").code, 0);
  EXPECT_EQ(bytes("v.npy") == bytes("expected.npy"), true);
}

TEST_F(EmbedProgram, VectorsGoToStandardOutputAndIntoDevices) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(60, 1)));
  ASSERT_EQ(run("a.txt --out v.npy").code, 0);

  const Outcome piped = run("a.txt --out -"), nowhere = run("a.txt --out /dev/null");

  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_EQ(piped.out == bytes("v.npy"), true);
  EXPECT_FALSE(exists(folder_.path("-")));
  EXPECT_EQ(nowhere.code, 0) << nowhere.err;
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(EmbedProgram, WhatIsWrongIsOneSentenceAndCodeTwo) {
  write_text(folder_.path("a.txt"), "a fine guitar\n");
  const std::string none = make_model("none"), wide = make_model("wide"), torn = make_model("torn"),
                    other = make_model("other");
  fs::remove(none + "/model.safetensors");
  std::string words = read_text(wide + "/vocab.txt");
  write_text(wide + "/vocab.txt", words + "onemoreword\n");
  fs::resize_file(torn + "/model.safetensors", fs::file_size(torn + "/model.safetensors") / 2);
  auto config = nlohmann::json::parse(read_text(other + "/config.json"));
  config["model_type"] = "xlm-roberta";
  write_text(other + "/config.json", config.dump());
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {"a.txt --out v.npy", "none", "model.safetensors"},
      {"a.txt --out v.npy", "wide", "they do not belong together"},
      {"a.txt --out v.npy", "torn", "model.safetensors"},
      {"a.txt --out v.npy", "other", "xlm-roberta"},
      {"a.txt --out v.npy", "absent", "absent"},
      {"a.txt", "model", "--out is needed"},
      {"a.txt --out v.bin", "model", "must end in .npy or .safetensors"},
      {"b.txt --out v.npy", "model", "b.txt: there is no such file"},
      {"a.txt --out no/v.npy", "model", "No such file or directory"},
      {"a.txt --out v.npy --layer 9", "model", "--layer 9"},
      {"a.txt --out v.npy --max-length 1", "model", "--max-length 1"},
      {"a.txt --out v.npy --dtype f8", "model", "dtype"},
      {"model", "model", "give a directory that 'cfaa_gpu prepare' wrote"},
  };
  for (const auto& [arguments, model, expected] : cases) {
    const Outcome outcome = run(arguments, model);

    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.err.find(expected), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.err.find("terminate"), std::string::npos) << outcome.err;
    EXPECT_FALSE(exists(folder_.path("v.npy")));
    EXPECT_FALSE(exists(folder_.path("v.npy.partial")));
  }
}

TEST_F(EmbedProgram, NoRoomIsSaidAndTheRunGoesOn) {
  write_text(folder_.path("a.txt"), as_lines(random_texts(3000, 4)));
  ASSERT_EQ(run("a.txt --out expected.npy --window 100").code, 0);

  // Files of at most 100 blocks of 512 bytes.
  const Outcome full = run("a.txt --out v.npy --window 100", "model", "ulimit -f 100 &&");
  const Outcome changed = run("a.txt --out v.npy --window 100 --layer last");
  const Outcome again = run("a.txt --out v.npy --window 100 --json");

  EXPECT_EQ(full.code, 2) << full.err;
  EXPECT_NE(full.err.find("File too large; free some room"), std::string::npos) << full.err;
  EXPECT_EQ(changed.code, 2);
  EXPECT_NE(changed.err.find("the interrupted run had layer 2, this one has 3"), std::string::npos)
      << changed.err;
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_GT(nlohmann::json::parse(again.out)["resumed_at"], 0);
  EXPECT_EQ(bytes("v.npy") == bytes("expected.npy"), true);
}

}  // namespace
}  // namespace cfaa::test
