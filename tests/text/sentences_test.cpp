#include "host/text/sentences.h"

#include <gtest/gtest.h>

#include <random>

#include "host/io/utf8.h"
#include "tests/golden.h"
#include "tests/paths.h"

namespace cfaa {
namespace {

using test::read_json_lines;

std::vector<std::string> split(const std::string& text, Language language = Language::kEnglish) {
  SentenceSplitter splitter(language);
  std::vector<Sentence> sentences;
  splitter.split(text, sentences);
  std::vector<std::string> parts;
  for (const auto& [begin, end] : sentences) parts.push_back(text.substr(begin, end - begin));
  return parts;
}

using Parts = std::vector<std::string>;

TEST(Sentences, EmptyTextHasNone) {
  EXPECT_EQ(split(""), Parts{});
  EXPECT_EQ(split("", Language::kChinese), Parts{});
}

TEST(Sentences, OneSpaceBetweenTokensBelongsToNoSentence) {
  EXPECT_EQ(split("One. Two! Three? "), (Parts{"One.", "Two!", "Three?"}));
  EXPECT_EQ(split("One.  Two."), (Parts{"One.", " Two."}));
  EXPECT_EQ(split("One.\nTwo."), (Parts{"One.", "\nTwo."}));
  EXPECT_EQ(split(" "), (Parts{" "}));
  EXPECT_EQ(split(" a"), (Parts{" a"}));
  EXPECT_EQ(split("a  "), (Parts{"a  "}));
}

TEST(Sentences, ClosingPunctuationStaysWithItsSentence) {
  EXPECT_EQ(split("He said \"no.\" Then left."), (Parts{"He said \"no.\"", "Then left."}));
  EXPECT_EQ(split("Really?!) Yes."), (Parts{"Really?!)", "Yes."}));
}

TEST(Sentences, AbbreviationsKeepTheirFullStop) {
  EXPECT_EQ(split("Mr. Smith met Dr. Who."), (Parts{"Mr. Smith met Dr. Who."}));
  EXPECT_EQ(split("Made in the U.S. by hand. Good."),
            (Parts{"Made in the U.S. by hand.", "Good."}));
  EXPECT_EQ(split("At 10a.m. we left. Ok."), (Parts{"At 10a.m. we left.", "Ok."}));
  EXPECT_EQ(split("It is OK. It is A. It is 5. End"),
            (Parts{"It is OK.", "It is A. It is 5.", "End"}));
}

TEST(Sentences, AMissingSpaceStillEndsASentence) {
  EXPECT_EQ(split("the end.Next one"), (Parts{"the end.", "Next one"}));
  EXPECT_EQ(split("great!It is"), (Parts{"great!It is"}));
  EXPECT_EQ(split("I like it.the sound"), (Parts{"I like it.the sound"})) << "looks like a URL";
}

TEST(Sentences, NeighbouringTokensThatFormASpecialCaseAreMerged) {
  EXPECT_EQ(split("It was Mr.Smith here"), (Parts{"It was Mr.Smith here"}));
  EXPECT_EQ(split("Cut to 5m. Then"), (Parts{"Cut to 5m. Then"}));
  EXPECT_EQ(split("Im. Then"), (Parts{"Im. Then"}));
}

TEST(Sentences, UrlsAndAddressesAreOneToken) {
  EXPECT_EQ(split("See http://a.b.com/xx.Y now. Ok"),
            (Parts{"See http://a.b.com/xx.Y now.", "Ok"}));
  EXPECT_EQ(split("http://8.8.8.8/xx.Y ok"), (Parts{"http://8.8.8.8/xx.Y ok"}));
  EXPECT_EQ(split("http://10.8.8.8/xx.Y ok"), (Parts{"http://10.8.8.8/xx.", "Y ok"}))
      << "a private address is none";
}

TEST(Sentences, ChineseSplitsAtEveryEndCharacter) {
  EXPECT_EQ(split("很好。真的！「是。」对", Language::kChinese),
            (Parts{"很好。", "真的！「", "是。」", "对"}));
  EXPECT_EQ(split("3.5元", Language::kChinese), (Parts{"3.", "5元"}));
}

TEST(Sentences, OffsetsCountCodePoints) {
  const std::string text = "Café \U0001F600. Naïve.";
  SentenceSplitter splitter(Language::kEnglish);
  std::vector<Sentence> sentences;
  splitter.split(text, sentences);

  to_code_point_offsets(text, sentences);

  EXPECT_EQ(sentences, (std::vector<Sentence>{{0, 7}, {8, 14}}));
}

void expect_golden(const std::string& path, Language language) {
  SentenceSplitter splitter(language);
  std::vector<Sentence> sentences;
  for (const auto& row : read_json_lines(path)) {
    const auto text = row["text"].get<std::string>();
    splitter.split(text, sentences);
    to_code_point_offsets(text, sentences);
    nlohmann::json got = nlohmann::json::array();
    for (const auto& [begin, end] : sentences) got.push_back({begin, end});

    EXPECT_EQ(got, row["sentences"]) << row["text"];
  }
}

TEST(Sentences, SmallGoldenLinesAreSplitAsSpacySplitsThem) {
  expect_golden(test::text_data("sentences.en.jsonl"), Language::kEnglish);
  expect_golden(test::text_data("sentences.zh.jsonl"), Language::kChinese);
}

TEST(Sentences, AllGoldenLinesAreSplitAsSpacySplitsThem) {
  CFAA_SKIP_WITHOUT_GOLDEN("fixtures/text/sentences.en.jsonl");
  expect_golden(test::golden_path("fixtures/text/sentences.en.jsonl"), Language::kEnglish);
  expect_golden(test::golden_path("fixtures/text/sentences.zh.jsonl"), Language::kChinese);
}

// Random text from pieces that matter to the rules.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> pieces = {
      "a",  "B",  "word", "Mr", ".",  "..",     "!",  "?", " ",      " ",    "  ", "\n", "'s",
      "\"", "(",  ")",    ":",  "D",  "5",      "km", "@", "://",    "www.", "/",  "-",  "$",
      "…",  "。", "中",   "😀",  "°C", "\u00A0", "_",  "+", "\u2028", "e.g.", "’",  ",",  "8)"};
  std::string text;
  for (std::size_t n = random() % 30; n > 0; --n) text += pieces[random() % pieces.size()];
  return text;
}

TEST(Sentences, EveryByteButSingleSpacesIsInExactlyOneSentence) {
  std::mt19937 random(7);
  for (const Language language : {Language::kEnglish, Language::kChinese}) {
    SentenceSplitter splitter(language);
    std::vector<Sentence> sentences;
    for (int round = 0; round < 20000; ++round) {
      const std::string text = random_text(random);

      splitter.split(text, sentences);

      ASSERT_EQ(sentences.empty(), text.empty());
      std::size_t at = 0;
      for (const auto& [begin, end] : sentences) {
        ASSERT_LT(begin, end) << text;
        ASSERT_TRUE(begin == at || (begin == at + 1 && text[at] == ' ')) << text;
        at = end;
      }
      ASSERT_TRUE(at == text.size() || (at + 1 == text.size() && text[at] == ' ')) << text;
    }
  }
}

TEST(Sentences, ASplitterKeepsNothingFromEarlierTexts) {
  std::mt19937 random(8);
  SentenceSplitter reused(Language::kEnglish);
  std::vector<Sentence> sentences, fresh_sentences;
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_text(random);
    SentenceSplitter fresh(Language::kEnglish);

    reused.split(text, sentences);
    fresh.split(text, fresh_sentences);

    ASSERT_EQ(sentences, fresh_sentences) << text;
  }
}

// A quadratic step anywhere would take minutes here.
TEST(Sentences, LongChunksTakeLinearTime) {
  for (const std::string piece :
       {"(", ".", "a.", "@", "a@b.", "-a", "Mr.", ":)", "x.Y", "'s", "!"}) {
    std::string text;
    while (text.size() < 400'000) text += piece;
    EXPECT_FALSE(split(text).empty());
  }
}

}  // namespace
}  // namespace cfaa
