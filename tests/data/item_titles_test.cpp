#include "host/data/item_titles.h"

#include <gtest/gtest.h>

#include "host/core/error.h"
#include "tests/data/raw_reviews.h"
#include "tests/refusal.h"

namespace cfaa::test {
namespace {

// Four users who reviewed the same items, in any of two domains.
std::string reviews(const std::string& prefix, const std::vector<std::string>& titles) {
  std::string out = "user,item,rating,title\n";
  for (int user = 0; user < 4; ++user) {
    for (std::size_t item = 0; item < titles.size(); ++item) {
      out += fmt::format("{0}u{1},{0}i{2},5,{3}\n", prefix, user, item, quoted(titles[item]));
    }
  }
  return out;
}

class PreparedTitles : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& content) {
    write_text(folder_.path(name), content);
    return folder_.path(name);
  }
  Dataset prepared(PrepareRequest request) {
    request.out = folder_.path("out" + std::to_string(next_++));
    request.options.source_core = request.options.target_core = "1,1";
    ThreadPool pool(2);
    prepare(request, pool, {});
    return load_dataset(request.out);
  }

  TemporaryFolder folder_;
  int next_ = 0;
};

TEST_F(PreparedTitles, ComeFromTheReviewsAndLeaveTheDatasetsHashAsItWas) {
  const std::vector<std::string> titles = {"Kind of Blue", "", "A\ttab and\na line"};
  PrepareRequest with, without;
  with.source = without.source = {put("s.csv", reviews("s", {"", "", ""}))};
  with.target = {put("t.csv", reviews("t", titles))};
  without.target = {put("u.csv", reviews("t", {"", "", ""}))};

  const Dataset titled = prepared(with), untitled = prepared(without);
  const ItemTitles target(titled.target), source(titled.source);

  EXPECT_EQ(target.count(), 2);
  EXPECT_EQ(target[0], "Kind of Blue");
  EXPECT_EQ(target[1], "");
  EXPECT_EQ(target[2], "A tab and a line");
  EXPECT_EQ(source.count(), 0);
  EXPECT_FALSE(std::filesystem::exists(titled.source.path / kItemTitlesName));
  EXPECT_EQ(titled.hash, untitled.hash);
}

TEST_F(PreparedTitles, ComeFromAFileAboutItemsBeforeThoseOfTheReviews) {
  PrepareRequest request;
  request.source = {put("s.csv", reviews("s", {"", "own", ""}))};
  request.target = {put("t.csv", reviews("t", {"", "", ""}))};
  request.source_titles = {put("meta.json",
                               "{\"asin\": \"si0\", \"title\": \"Zero\", \"related\": {}}\n"
                               "{\"asin\": \"elsewhere\", \"title\": \"Nobody's\"}\n"
                               "{\"asin\": \"si1\", \"title\": null}\n"
                               "{\"asin\": \"si2\", \"title\": \"Two\"}\n")};
  request.target_titles = {put("meta.py", "{'asin': 'ti0', 'title': \"It's zero\"}\n"),
                           put("movies.csv", "itemId,title,genres\nti1,\"One, two\",Drama\n")};

  const Dataset data = prepared(request);
  const ItemTitles source(data.source), target(data.target);

  EXPECT_EQ(source[0], "Zero");
  EXPECT_EQ(source[1], "own");
  EXPECT_EQ(source[2], "Two");
  EXPECT_EQ(target[0], "It's zero");
  EXPECT_EQ(target[1], "One, two");
  EXPECT_EQ(target[2], "");
}

TEST_F(PreparedTitles, AreNotTheHeadlinesOfAmazonsReviews) {
  const auto reviews = random_reviews(200, 5, 5, 1, "s");
  PrepareRequest request;
  request.source = {put("s.json", as_json_2023(reviews))};
  request.target = {
      put("t.csv", "rating,title,parent_asin,user_id\n5,five stars,a,u\n5,nice,b,u\n")};

  const Dataset data = prepared(request);

  EXPECT_EQ(ItemTitles(data.source).count(), 0);
  EXPECT_EQ(ItemTitles(data.target).count(), 0);
}

TEST_F(PreparedTitles, AreRefusedWithTheLineWhereTheFileDoesNotRead) {
  PrepareRequest request;
  request.source = {put("s.csv", reviews("s", {"one"}))};
  request.target = {put("t.csv", reviews("t", {"one"}))};
  const Dataset data = prepared(request);
  write_text((data.target.path / kItemTitlesName).string(), "item_id\ttitle\nti0 without a tab\n");
  request.source_titles = {put("no.csv", "sku,price\n1,2\n")};

  EXPECT_NE(error_of([&] { ItemTitles titles(data.target); }).find("item_titles.tsv:2: "),
            std::string::npos);
  EXPECT_NE(error_of([&] { prepared(request); }).find("a file of titles names its columns"),
            std::string::npos);
}

TEST(Title, LosesControlCharactersAndWhatIsTooLong) {
  EXPECT_EQ(clean_title("  a\x1b[31m\tb\xC2\x9B"
                        "c \n"),
            "a [31m b c");
  EXPECT_EQ(clean_title(std::string(499, 'x') + "é"), std::string(499, 'x'));
  EXPECT_EQ(clean_title("\x01\x02"), "");
}

}  // namespace
}  // namespace cfaa::test
