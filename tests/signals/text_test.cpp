// Words, terms and TF-IDF vectors of reviews.

#include <gtest/gtest.h>

#include <cmath>

#include "host/signals/term_vectors.h"
#include "host/text/words.h"
#include "tests/compare.h"

namespace cfaa::test {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  WordReader().read(text, [&found](std::string_view word) { found.emplace_back(word); });
  return found;
}

ReviewTexts texts_of(const std::vector<std::string>& reviews) {
  return {static_cast<int64_t>(reviews.size()), [&reviews](int64_t r) -> std::string_view {
            return reviews[static_cast<std::size_t>(r)];
          }};
}

using Strings = std::vector<std::string>;

TEST(ReviewWords, AreRunsOfLettersAndDigitsInLowerCase) {
  EXPECT_EQ(words("A Fender-Strat, 1964 ... isn't IT?"),
            (Strings{"a", "fender", "strat", "1964", "isn", "t", "it"}));
  EXPECT_EQ(words(""), Strings{});
  EXPECT_EQ(words("...!"), Strings{});
}

TEST(ReviewWords, KeepLettersOfOtherScriptsTogether) {
  EXPECT_EQ(words("Mot\xC3\xB6rhead\xE2\x80\x99s"), (Strings{"mot\xC3\xB6rhead", "s"}));
}

TEST(ReviewWords, AreSingleCharactersInChinese) {
  EXPECT_EQ(words("CD\xE5\xBE\x88\xE5\xA5\xBD"), (Strings{"cd", "\xE5\xBE\x88", "\xE5\xA5\xBD"}));
}

TEST(ReviewWords, AreSeparatedByBytesThatAreNoText) {
  EXPECT_EQ(words("good\xFF\xFEone"), (Strings{"good", "one"}));
}

TEST(ReviewTermsTest, NumberTheJointVocabularyInTheOrderOfItsBytes) {
  const Strings source = {"zebra apple apple", "apple zebra", "apple once"};
  const Strings target = {"mango", "mango apple", "mango zebra"};
  const ReviewTexts texts[] = {texts_of(source), texts_of(target)};
  ThreadPool threads(1);

  const ReviewVocabulary read = read_review_terms(threads, texts, 3);

  EXPECT_EQ(read.terms, (Strings{"apple", "mango"})) << "zebra has two reviews in either domain";
  EXPECT_EQ(read.domains[0].term, (std::vector<int32_t>{0, 0, 0}));
  EXPECT_EQ(read.domains[1].offset, (std::vector<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(read.domains[1].term, (std::vector<int32_t>{1, 1, 0, 1}));
}

TEST(ReviewTermsTest, TellWordsApartThatBeginAlike) {
  const Strings alike = {"ab", "abc", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghj"};
  const ReviewTexts texts[] = {texts_of(alike)};
  ThreadPool threads(1);

  const ReviewVocabulary read = read_review_terms(threads, texts, 1);

  EXPECT_EQ(read.terms, alike);
  EXPECT_EQ(read.domains[0].term, (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(ReviewTermsTest, DoNotDependOnTheNumberOfThreads) {
  Strings reviews;
  for (int r = 0; r < 2000; ++r) {
    std::string text;
    for (int w = 0; w < 20; ++w) text += "w" + std::to_string((r * 31 + w * w * 7) % 997) + " ";
    reviews.push_back(text);
  }
  const ReviewTexts texts[] = {texts_of(reviews)};
  ThreadPool one(1), four(4);

  const ReviewVocabulary a = read_review_terms(one, texts);
  const ReviewVocabulary b = read_review_terms(four, texts);

  EXPECT_EQ(a.terms, b.terms);
  EXPECT_EQ(a.domains[0].offset, b.domains[0].offset);
  EXPECT_EQ(a.domains[0].term, b.domains[0].term);
}

// Eight items with one review each, but item 0, which has two. `amp` is on items 0, 1, 2; `bow` on
// 0, 1, 2, 3; `cup` on two items, `dog` on five.
struct SmallCorpus {
  Strings reviews = {
      "amp bow dog", "amp", "amp bow dog cup", "amp bow dog cup", "bow dog", "dog", "", "", ""};
  std::vector<int32_t> item = {0, 0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<int32_t> user = {0, 1, 0, 1, 2, 2, 2, 2, 2};
  ReviewRows rows{3, 8, user, item, {}};
};

TEST(TermVectorsTest, AreTheHandComputedWeightsWithUnitRows) {
  const SmallCorpus corpus;
  const ReviewTexts texts[] = {texts_of(corpus.reviews)};
  ThreadPool threads(2);
  const ReviewVocabulary read = read_review_terms(threads, texts);

  const TermVectors made = make_term_vectors(threads, read.domains[0],
                                             static_cast<int64_t>(read.terms.size()), corpus.rows);

  ASSERT_EQ(read.terms, (Strings{"amp", "bow", "dog"}));
  const double amp = std::log(8.0 / 3), bow = std::log(8.0 / 4), two = 1 + std::log(2.0);
  const auto unit = [](double a, double b) {
    const double norm = std::hypot(a, b);
    return std::vector<float>{static_cast<float>(a / norm), static_cast<float>(b / norm)};
  };
  const auto values = [](const SparseRows& rows, int64_t r) {
    return std::vector<float>(rows.values_of(r).begin(), rows.values_of(r).end());
  };
  EXPECT_TRUE(close(values(made.items, 0), unit(two * amp, bow), 1e-6)) << "dog: df 5 > 8 / 2";
  EXPECT_TRUE(close(values(made.items, 1), unit(amp, bow), 1e-6));
  EXPECT_EQ(values(made.items, 3), (std::vector<float>{1}));
  EXPECT_TRUE(made.items.columns_of(4).empty());
  EXPECT_TRUE(close(values(made.users, 0), unit(two * amp, two * bow), 1e-6));
  EXPECT_TRUE(close(values(made.users, 1), unit(two * amp, bow), 1e-6));
}

TEST(TermVectorsTest, HaveTheirTermsInAscendingOrderInALargeVocabulary) {
  constexpr int32_t kTerms = 10000;  // more than 64 * 64
  const std::vector<int32_t> spread = {9999, 0, 4096, 63, 64, 4095, 127, 9998};
  ReviewTerms reviews;
  for (int r = 0; r < 3; ++r) {
    reviews.term.insert(reviews.term.end(), spread.begin(), spread.end());
    reviews.offset.push_back(static_cast<int64_t>(reviews.term.size()));
  }
  const std::vector<int32_t> item = {0, 1, 2}, user = {0, 0, 0};
  ThreadPool threads(1);

  const TermVectors made = make_term_vectors(threads, reviews, kTerms, {1, 6, user, item, {}});

  const auto columns = made.items.columns_of(1);
  EXPECT_EQ(std::vector<int32_t>(columns.begin(), columns.end()),
            (std::vector<int32_t>{0, 63, 64, 127, 4095, 4096, 9998, 9999}));
  EXPECT_EQ(made.users.entries(), 8);
}

TEST(TermVectorsTest, KnowNothingOfReviewsThatDoNotCount) {
  const SmallCorpus corpus;
  SmallCorpus other;
  other.reviews[3] = "zoo zoo amp";
  const std::vector<char> used = {1, 1, 1, 0, 1, 1, 1, 1, 1};
  ThreadPool threads(2);
  const auto make = [&](const SmallCorpus& c) {
    const ReviewTexts texts[] = {texts_of(c.reviews)};
    const ReviewVocabulary read = read_review_terms(threads, texts);
    ReviewRows rows = c.rows;
    rows.user = c.user;
    rows.item = c.item;
    rows.used = used;
    return make_term_vectors(threads, read.domains[0], static_cast<int64_t>(read.terms.size()),
                             rows);
  };

  const TermVectors a = make(corpus), b = make(other);

  EXPECT_EQ(a.items.value, b.items.value);
  EXPECT_EQ(a.items.offset, b.items.offset);
  EXPECT_EQ(a.users.value, b.users.value);
  EXPECT_TRUE(a.items.columns_of(2).empty());
}

TEST(SparseRowsTest, TransposedTwiceAreThemselves) {
  const SparseRows rows = join_rows(4, {{{0, 1}, {3, 2}}, {}, {{1, 3}, {2, 4}, {3, 5}}});

  const SparseRows turned = transpose(rows);
  const SparseRows again = transpose(turned);

  EXPECT_EQ(turned.offset, (std::vector<int64_t>{0, 1, 2, 3, 5}));
  EXPECT_EQ(turned.column, (std::vector<int32_t>{0, 2, 2, 0, 2}));
  EXPECT_EQ(turned.value, (std::vector<float>{1, 3, 4, 2, 5}));
  EXPECT_EQ(again.offset, rows.offset);
  EXPECT_EQ(again.column, rows.column);
  EXPECT_EQ(again.value, rows.value);
}

}  // namespace
}  // namespace cfaa::test
