// `cfaa_gpu tokenize` and `cfaa_gpu sentences` as a user runs them.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/golden.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

using nlohmann::json;
using test::run_program;
using test::TemporaryFolder;
using test::write_text;

std::vector<json> lines_of(const std::string& out) {
  std::vector<json> rows;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) rows.push_back(json::parse(line));
  return rows;
}

TEST(TextProgram, SentencesOfPlainAndJsonLinesAreTheSame) {
  const TemporaryFolder folder;
  write_text(folder.path("a.txt"), "One. Café two!\n\nThree\n");
  write_text(folder.path("a.jsonl"),
             "{\"text\": \"One. Caf\\u00e9 two!\"}\n{\"n\": [{\"text\": 1}], \"text\": \"\"}\n"
             "{\"text\": \"Three\"}");

  const auto plain = run_program("sentences --lang en --json " + folder.path("a.txt"));
  const auto objects = run_program("sentences --lang en --json " + folder.path("a.jsonl"));
  const auto piped = run_program("sentences --json < " + folder.path("a.txt"));

  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.out,
            "{\"sentences\": [[0, 4], [5, 14]]}\n{\"sentences\": []}\n{\"sentences\": [[0, 5]]}\n");
  EXPECT_EQ(objects.out, plain.out) << objects.err;
  EXPECT_EQ(piped.out, plain.out) << piped.err;
}

TEST(TextProgram, TokenizePrintsIdsAndTokens) {
  const TemporaryFolder folder;
  write_text(folder.path("a.txt"), "a \"[SEP]\"\n");
  const std::string model = "tokenize --model " + test::text_data("bert") + " ";

  const auto plain = run_program(model + "--json " + folder.path("a.txt"));
  const auto parity = run_program(model + "--json --special parity " + folder.path("a.txt"));
  const auto cut = run_program(model + "--json --max-length 3 " + folder.path("a.txt"));
  const auto readable = run_program(model + folder.path("a.txt"));

  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(lines_of(plain.out).at(0)["tokens"],
            json({"[CLS]", "a", "\"", "[", "[UNK]", "]", "\"", "[SEP]"}));
  EXPECT_EQ(lines_of(parity.out).at(0)["tokens"],
            json({"[CLS]", "a", "\"", "[SEP]", "\"", "[SEP]"}));
  EXPECT_EQ(lines_of(cut.out).at(0)["tokens"], json({"[CLS]", "a", "[SEP]"}));
  EXPECT_NE(cut.err.find("1 text was cut"), std::string::npos) << cut.err;
  EXPECT_EQ(readable.out.substr(0, 8), "[CLS] a ");
}

TEST(TextProgram, NulBytesAndIllFormedBytesAreReadAndCounted) {
  const TemporaryFolder folder;
  write_text(folder.path("a.txt"), std::string("a\0b \xFF cc. D\xE2\x82\n", 14));

  const auto outcome = run_program("sentences --json " + folder.path("a.txt"));

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "{\"sentences\": [[0, 9], [10, 12]]}\n");
  EXPECT_NE(outcome.err.find("2 pieces"), std::string::npos) << outcome.err;
}

TEST(TextProgram, UnpairedSurrogatesInJsonAreReplaced) {
  const TemporaryFolder folder;
  write_text(folder.path("a.jsonl"),
             "{\"text\": \"a \\ud800 b\"}\n{\"text\": \"\\ud83d\\ude00 \\\\ud800\"}\n");

  const auto outcome = run_program("sentences --json " + folder.path("a.jsonl"));

  EXPECT_EQ(outcome.out, "{\"sentences\": [[0, 5]]}\n{\"sentences\": [[0, 8]]}\n");
  EXPECT_NE(outcome.err.find("1 piece "), std::string::npos) << outcome.err;
}

TEST(TextProgram, UserErrorsAreOneSentenceAndCodeTwo) {
  const TemporaryFolder folder;
  write_text(folder.path("bad.jsonl"), "{\"text\": \"a\"}\n{\"text\": \n");
  write_text(folder.path("field.jsonl"), "{\"review\": \"a\"}\n");
  const std::string model = "tokenize --model " + test::text_data("bert") + " ";
  const std::pair<std::string, std::string> cases[] = {
      {"tokenize --model /no/such/folder", "there is no directory '/no/such/folder'"},
      {"tokenize --model " + folder.path(), "has no vocabulary"},
      {model + "/no/such/file", "/no/such/file: cannot be opened"},
      {model + folder.path(), "is a directory"},
      {model + "--max-length 1 " + folder.path("bad.jsonl"), "leaves no room"},
      {"sentences " + folder.path("bad.jsonl"), "line 2 is not valid JSON"},
      {"sentences " + folder.path("field.jsonl"), "line 1 has no string field 'text'"},
  };
  for (const auto& [arguments, expected] : cases) {
    const auto outcome = run_program(arguments + " --json");

    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.err.find(expected), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(TextProgram, WhatPrecedesABadLineIsWritten) {
  const TemporaryFolder folder;
  write_text(folder.path("a.jsonl"), "{\"text\": \"One.\"}\nnot json\n");

  const auto outcome = run_program("sentences --json " + folder.path("a.jsonl"));

  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "{\"sentences\": [[0, 4]]}\n");
}

TEST(TextProgram, LinesLongerThanABlockAreWhole) {
  const TemporaryFolder folder;
  std::string line(3'000'000, 'a');
  write_text(folder.path("a.txt"), line + ". B\nshort\n");

  const auto outcome = run_program("sentences --json " + folder.path("a.txt"));

  EXPECT_EQ(outcome.out,
            "{\"sentences\": [[0, 3000001], [3000002, 3000003]]}\n{\"sentences\": [[0, 5]]}\n");
}

}  // namespace
}  // namespace cfaa
