#include "host/run/review_words.h"

#include "tests/run/small_runs.h"

namespace cfaa::test {
namespace {

class ReviewWordsOf : public SmallRuns {
 protected:
  // What is shown of the first review of user 0, where that is `text`.
  std::string shown(const std::string& text) const {
    const Domain domain = load_domain(path("data"), "target");
    std::vector<std::string_view> texts(static_cast<std::size_t>(domain.train.size()), "other");
    texts[0] = text;
    std::filesystem::remove(domain.text_path(Split::train));
    OutputFile file(domain.text_path(Split::train));
    write_review_text(file, texts.size(), [&](std::size_t i) { return texts[i]; });
    file.close();
    return ReviewWords(domain).of(domain.train.user[0], domain.train.item[0]);
  }
};

TEST_F(ReviewWordsOf, AReviewIsItsFirstSentence) {
  EXPECT_EQ(shown("A fine record. Would buy again."), "A fine record.");
  EXPECT_EQ(shown(""), "");
}

TEST_F(ReviewWordsOf, AChineseReviewIsCutAtItsOwnPunctuation) {
  EXPECT_EQ(shown("音质很好。值得买！"), "音质很好。");
  EXPECT_EQ(shown("真的吗？CD 很好"), "真的吗？");
  EXPECT_EQ(shown("太棒了！！再来一张"), "太棒了！！");
  EXPECT_EQ(shown("About 音质. Dr. Lee likes it."), "About 音质.");
}

TEST_F(ReviewWordsOf, AReviewHasNoControlCharacters) {
  EXPECT_EQ(shown("\x1b[31mred\tand\x07 \xc2\x9bloud"), "[31mred and loud");
}

TEST_F(ReviewWordsOf, ALongReviewIsCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "é";
  const std::string line = shown(text);

  EXPECT_EQ(line.size(), 2u * kMostCharacters + 3);
  EXPECT_TRUE(line.ends_with("é…")) << line;
  const std::string before_the_space(kMostCharacters - 1, 'a');
  EXPECT_EQ(shown(before_the_space + " and more"), before_the_space + " …");
}

TEST_F(ReviewWordsOf, AnItemIsThatOfAReviewWithText) {
  const Domain domain = load_domain(path("data"), "target");

  EXPECT_EQ(ReviewWords(domain).of_item(domain.train.item[0]), "strings maker1");
  EXPECT_EQ(ReviewWords(domain).of(0, 15), "") << "not the user's item";
}

}  // namespace
}  // namespace cfaa::test
