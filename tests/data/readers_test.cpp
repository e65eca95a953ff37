#include <gtest/gtest.h>

#include "host/core/error.h"
#include "host/data/readers/python_literal.h"
#include "host/data/readers/record_chunks.h"
#include "host/data/readers/review_format.h"
#include "tests/data/raw_reviews.h"
#include "tests/refusal.h"

namespace cfaa::test {
namespace {

struct Collected : RawReviewSink {
  std::vector<Review> reviews;
  std::vector<std::pair<int64_t, std::string>> rejected;

  void accept(const RawReview& r, int64_t) override {
    reviews.push_back({std::string(r.user), std::string(r.item),
                       std::isnan(r.rating) ? -1 : static_cast<int>(r.rating),
                       std::isnan(r.time) ? -1 : static_cast<int64_t>(r.time),
                       std::string(r.text)});
  }
  void reject(int64_t line, std::string reason) override { rejected.emplace_back(line, reason); }
};

// Detects the format of `text`, cuts it into chunks of `chunk_bytes` and parses them.
Collected parse(const std::string& text, InvalidUtf8 invalid = InvalidUtf8::refuse,
                const std::string& columns = "", std::size_t chunk_bytes = 1 << 16,
                bool quotes = true) {
  const TemporaryFolder folder;
  write_text(folder.path("f"), text);
  InputStream stream(folder.path("f"));
  RecordChunks chunks(stream, chunk_bytes);
  const ReviewFormat format = detect_format(chunks.head(), parse_columns(columns), quotes, "f");
  chunks.set_rule(format.rule);
  chunks.skip(format.header_bytes);
  ReviewParser parser(format, invalid);
  Collected collected;
  Chunk chunk;
  while (chunks.next(chunk)) parser.parse(chunk, collected);
  return collected;
}

std::string error_of(const std::string& text, const std::string& columns = "") {
  return test::error_of([&] { parse(text, InvalidUtf8::refuse, columns); });
}

TEST(JsonLines, OfKeysThatOccurTwiceTheLastCounts) {
  const Collected got =
      parse(R"({"reviewerID": "a", "asin": "b", "overall": 1, "reviewerID": "c", "overall": 4})");

  ASSERT_EQ(got.reviews.size(), 1u);
  EXPECT_EQ(got.reviews[0].user, "c");
  EXPECT_EQ(got.reviews[0].rating, 4);
}

TEST(JsonLines, ALineWithAFaultInAFieldNobodyReadsIsRefused) {
  const Collected got = parse(
      "{\"reviewerID\": \"a\", \"asin\": \"b\", \"overall\": 1}\n"
      "{\"reviewerID\": \"a\", \"asin\": \"b\", \"overall\": 1, \"x\": tru}\n");

  ASSERT_EQ(got.rejected.size(), 1u);
  EXPECT_EQ(got.rejected[0].first, 1);
}

TEST(JsonLines, HalfASurrogatePairIsRefusedOrReplacedAsAsked) {
  const std::string line =
      R"({"reviewerID": "a", "asin": "b", "overall": 1, "reviewText": "x\ud83dy \ud83d\ude00"})";

  const Collected refused = parse(line), replaced = parse(line, InvalidUtf8::replace);

  ASSERT_EQ(refused.rejected.size(), 1u);
  EXPECT_NE(refused.rejected[0].second.find("surrogate"), std::string::npos);
  ASSERT_EQ(replaced.reviews.size(), 1u);
  EXPECT_EQ(replaced.reviews[0].text, "x\uFFFDy 😀");
}

TEST(JsonLines, InvalidUtf8IsRefusedOrReplacedAsAsked) {
  const std::string line =
      "{\"reviewerID\": \"a\", \"asin\": \"b\", \"overall\": 1, \"reviewText\": "
      "\"x\xE2\x82y\xFF\"}";

  const Collected refused = parse(line), replaced = parse(line, InvalidUtf8::replace);

  ASSERT_EQ(refused.rejected.size(), 1u);
  EXPECT_NE(refused.rejected[0].second.find("UTF-8"), std::string::npos);
  ASSERT_EQ(replaced.reviews.size(), 1u);
  EXPECT_EQ(replaced.reviews[0].text, "x\uFFFDy\uFFFD");
}

TEST(Chunk, KnowsWhereInTheFileItsOwnViewsStand) {
  const TemporaryFolder folder;
  const std::string text = "head\none\ntwo\nthree\n", elsewhere = "two";
  write_text(folder.path("f"), text);
  InputStream stream(folder.path("f"));
  RecordChunks chunks(stream, 8);
  chunks.head();
  chunks.skip(5);

  std::string found;
  Chunk chunk;
  while (chunks.next(chunk)) {
    const std::optional<uint64_t> at = chunk.offset_of(chunk.text());
    ASSERT_TRUE(at.has_value());
    EXPECT_EQ(chunk.text(), std::string_view(text).substr(*at, chunk.size));
    EXPECT_EQ(chunk.offset_of(elsewhere), std::nullopt);
    found += chunk.text();
  }

  EXPECT_EQ(found, text.substr(5));
}

TEST(JsonLines, ATextWithoutEscapesIsAViewOfTheChunkAndOneWithThemIsNot) {
  struct Views : RawReviewSink {
    const Chunk* chunk = nullptr;
    std::vector<std::pair<std::string, bool>> texts;  // and whether it stands in the chunk
    void accept(const RawReview& r, int64_t) override {
      texts.emplace_back(r.text, chunk->offset_of(r.text).has_value());
    }
    void reject(int64_t, std::string reason) override { FAIL() << reason; }
  } views;
  const std::string before = R"({"reviewerID": "a", "asin": "b", "overall": 1, )";
  const std::string lines = before +
                            R"("reviewText" : "plain"})"
                            "\n" +  //
                            before +
                            R"("reviewText": "two\nlines"})"
                            "\n" +  //
                            before +
                            R"("x": "reviewText", "reviewText": "y"})"
                            "\n" +  //
                            before +
                            R"("reviewText": "old", "reviewText": "new"})"
                            "\n";
  Chunk chunk;
  chunk.size = lines.size();
  chunk.buffer.assign(lines.begin(), lines.end());
  chunk.buffer.resize(lines.size() + kChunkPadding);
  views.chunk = &chunk;

  JsonLines({"reviewerID", "asin", "", "overall", "reviewText", ""}, InvalidUtf8::refuse)
      .parse(chunk.text(), views);

  const std::vector<std::pair<std::string, bool>> expected = {
      {"plain", true}, {"two\nlines", false}, {"y", false}, {"new", false}};
  EXPECT_EQ(views.texts, expected);
}

TEST(JsonLines, IdsMayBeWholeNumbersAndRatingsText) {
  const Collected got = parse(R"({"user": 17, "item": -3, "stars": "4", "ts": null})");

  ASSERT_EQ(got.reviews.size(), 1u);
  EXPECT_EQ(got.reviews[0].user, "17");
  EXPECT_EQ(got.reviews[0].item, "-3");
  EXPECT_EQ(got.reviews[0].rating, 4);
  EXPECT_EQ(got.reviews[0].time, -1);
}

TEST(JsonLines, TheParentItemStandsBeforeTheVariantAndIsReplacedByItWhereAbsent) {
  const Collected got = parse(
      "{\"user_id\": \"u\", \"parent_asin\": \"p\", \"asin\": \"a\", \"rating\": 5}\n"
      "{\"user_id\": \"u\", \"asin\": \"a\", \"rating\": 5}\n");

  ASSERT_EQ(got.reviews.size(), 2u);
  EXPECT_EQ(got.reviews[0].item, "p");
  EXPECT_EQ(got.reviews[1].item, "a");
}

TEST(PythonLiteral, ReadsWhatReprWrites) {
  PythonValue v;

  const std::string reason = parse_python_literal(
      R"({'a': u'\u00e9\xe9\351\n\'"', "b": (1,), 'c': [True, None, -2.5e3, ('x')], 7: {}})", v);

  ASSERT_EQ(reason, "");
  ASSERT_EQ(v.elements.size(), 8u);
  EXPECT_EQ(v.elements[1].text, "ééé\n'\"");
  EXPECT_EQ(v.elements[3].kind, PythonValue::Kind::tuple);
  EXPECT_EQ(v.elements[5].elements[2].text, "-2.5e3");
  EXPECT_EQ(v.elements[5].elements[3].text, "x");
}

TEST(PythonLiteral, AnEmptyKeyIsNoPartOfAReview) {
  const Collected got = parse("{'reviewerID': 'u', '': 'x', 'overall': 5}\n");

  ASSERT_EQ(got.reviews.size(), 1u);
  EXPECT_EQ(got.reviews[0].item, "");
}

TEST(PythonLiteral, RefusesWhatIsNoLiteralOrOutOfItsScope) {
  for (const char* text : {"",
                           "{",
                           "{'a'}",
                           "{'a': }",
                           "{'a': 1 'b': 2}",
                           "{,}",
                           "[,]",
                           "[1,,2]",
                           "__import__('os')",
                           "{'a': open('x')}",
                           "1 + 1",
                           "'abc",
                           "'a\\",
                           "b'x'",
                           "r'x'",
                           "'a' 'b'",
                           "'''a'''",
                           "0x10",
                           "1_000",
                           "007",
                           "1j",
                           "{'a': 1} x",
                           "'\\N{DASH}'",
                           "'\\x4'",
                           "'\\U00110000'",
                           "{[]: 1}",
                           "nan",
                           "true",
                           "1.e",
                           "-",
                           "--",
                           "1..2",
                           "# 1"}) {
    PythonValue v;
    EXPECT_NE(parse_python_literal(text, v), "") << text;
  }
}

TEST(PythonLiteral, DeepNestingAndZeroBytesAreRefused) {
  PythonValue v;

  EXPECT_NE(parse_python_literal(std::string("'a\0b'", 5), v), "");
  EXPECT_NE(parse_python_literal(std::string(1000000, '['), v), "");
  EXPECT_EQ(parse_python_literal(std::string(50, '[') + std::string(50, ']'), v), "");
}

TEST(Delimited, QuotedFieldsHoldDelimitersNewlinesAndQuotes) {
  const Collected got =
      parse("user,item,rating,text\nu,i,3,\"a,b\nc \"\"d\"\"\"\n\"v\",j,4,5\" x\n");

  ASSERT_EQ(got.reviews.size(), 2u);
  EXPECT_EQ(got.reviews[0].text, "a,b\nc \"d\"");
  EXPECT_EQ(got.reviews[1].user, "v");
  EXPECT_EQ(got.reviews[1].text, "5\" x");
}

TEST(Delimited, EveryChunkSizeGivesTheSameRecords) {
  const auto reviews = random_reviews(300, 20, 20, 1, "x");
  const std::string text = as_delimited(reviews, ',');

  for (const std::size_t bytes : {16u, 61u, 250u, 4096u, 1u << 20}) {
    const Collected got = parse(text, InvalidUtf8::refuse, "", std::max<std::size_t>(bytes, 64));
    ASSERT_EQ(got.reviews.size(), reviews.size()) << bytes;
    EXPECT_TRUE(got.rejected.empty());
    for (std::size_t i = 0; i < reviews.size(); ++i)
      EXPECT_EQ(got.reviews[i].text, reviews[i].text);
  }
}

TEST(Delimited, ARecordWithTheWrongNumberOfFieldsNamesItsLine) {
  const Collected got = parse("user,item,rating\nu,\"i\ni\",3\nu,i\n\nu,i,4\n");

  ASSERT_EQ(got.rejected.size(), 1u);
  EXPECT_EQ(got.rejected[0].first, 2);
  EXPECT_EQ(got.rejected[0].second, "2 fields where the header has 3");
  EXPECT_EQ(got.reviews.size(), 2u);
}

TEST(Delimited, QuotesCanBeSwitchedOff) {
  const Collected got = parse("user\titem\trating\ttext\nu\ti\t3\t\"open\nv\ti\t3\t\n",
                              InvalidUtf8::refuse, "", 1 << 16, false);

  ASSERT_EQ(got.reviews.size(), 2u);
  EXPECT_EQ(got.reviews[0].text, "\"open");
}

TEST(Delimited, SemicolonsSeparateWhereTheHeaderHasMoreOfThem) {
  const Collected got = parse("user;item;rating;text\nu;i;4;one, two, three, four\n");

  ASSERT_EQ(got.reviews.size(), 1u);
  EXPECT_EQ(got.reviews[0].text, "one, two, three, four");
}

TEST(Delimited, AFileWithoutAHeaderIsReadByColumnNumbers) {
  const Collected got = parse("i,u,4.0,1300000000\nj,v,5.0,1300000001\n", InvalidUtf8::refuse,
                              "user=2,item=1,rating=3,time=4");

  ASSERT_EQ(got.reviews.size(), 2u);
  EXPECT_EQ(got.reviews[0].user, "u");
  EXPECT_EQ(got.reviews[1].time, 1300000001);
}

const std::string kOtherSchema = R"({"user_id": "u", "item_id": "i", "stars": 4, "text": "t"})";

TEST(ReviewFormat, AFirstRecordLongerThanAChunkIsKnown) {
  const std::string text(1 << 20, 'x');
  const std::string long_record =
      R"({"text": ")" + text + R"(", "user_id": "u", "item_id": "i", "stars": 4})";

  const Collected got =
      parse(long_record + "\n" + kOtherSchema + "\n", InvalidUtf8::refuse, "", 1 << 16);

  ASSERT_EQ(got.reviews.size(), 2u);
  EXPECT_EQ(got.reviews[0].text, text);
}

TEST(ReviewFormat, HalfASurrogatePairInTheFirstLineDoesNotHideTheFormat) {
  const std::string first = R"({"user_id": "u", "item_id": "i", "stars": 4, "text": "\ud83d"})";

  const Collected replaced = parse(first + "\n" + kOtherSchema + "\n", InvalidUtf8::replace);
  const Collected refused = parse(first + "\n" + kOtherSchema + "\n");

  EXPECT_EQ(replaced.reviews.size(), 2u);
  ASSERT_EQ(refused.rejected.size(), 1u);
  EXPECT_NE(refused.rejected[0].second.find("surrogate"), std::string::npos);
  EXPECT_EQ(refused.reviews.size(), 1u);
}

TEST(ReviewFormat, AFirstLineThatIsNoJsonDoesNotHideTheFormat) {
  const Collected got = parse("{broken\n" + kOtherSchema + "\n");

  ASSERT_EQ(got.rejected.size(), 1u);
  EXPECT_NE(got.rejected[0].second.find("not JSON"), std::string::npos);
  EXPECT_EQ(got.reviews.size(), 1u);
}

TEST(ReviewFormat, BlankLinesBeforeTheFirstRecordAreNoContent) {
  const std::string blank(2 << 20, '\n');

  EXPECT_EQ(parse(blank + kOtherSchema + "\n").reviews.size(), 1u);
  EXPECT_EQ(parse(blank + "user,item,rating\nu,i,5\n").reviews.size(), 1u);
}

TEST(ReviewFormat, AColumnThatCannotBeTakenIsNamed) {
  EXPECT_NE(error_of("a,b,c\n1,2,3\n").find("--columns user=NAME"), std::string::npos);
  EXPECT_NE(error_of("A1,B2,5.0,Nice\n").find("--columns user=1,item=2,rating=3,text=4,time=5"),
            std::string::npos);
  EXPECT_NE(error_of("user,item,rating\n", "rating=stars").find("there is no such column"),
            std::string::npos);
  EXPECT_NE(error_of("x", "rating").find("user=NAME"), std::string::npos);
  EXPECT_NE(error_of("[{\"a\": 1}]").find("JSON array"), std::string::npos);
  EXPECT_NE(error_of(" \n \n").find("no reviews"), std::string::npos);
}

std::string read_error(const std::string& bytes, std::size_t block_bytes = 1 << 20) {
  const TemporaryFolder folder;
  write_text(folder.path("f"), bytes);
  return test::error_of([&] {
    InputStream stream(folder.path("f"), false, block_bytes);
    std::vector<char> buffer(1000);
    while (stream.read(buffer.data(), buffer.size()) == buffer.size()) {
    }
  });
}

TEST(InputStream, ATruncatedFileNamesTheByte) {
  const std::string text = as_json_2014(random_reviews(200, 9, 9, 2, "x"));
  for (const std::string& packed : {gzip_member(text), zstd_frames(text)}) {
    for (const std::size_t cut : {packed.size() - 1, packed.size() - 5, packed.size() / 2}) {
      const std::string error = read_error(packed.substr(0, cut));
      EXPECT_NE(error.find("truncated"), std::string::npos) << error << " at " << cut;
      EXPECT_NE(error.find("byte " + std::to_string(cut)), std::string::npos) << error;
    }
    EXPECT_EQ(read_error(packed), "");
  }
}

TEST(InputStream, ADamagedFileIsRefused) {
  const std::string text = as_json_2014(random_reviews(200, 9, 9, 2, "x"));
  std::string gzip = gzip_member(text), trailing = gzip + "garbage";
  gzip[gzip.size() / 2] ^= 1;

  EXPECT_NE(read_error(gzip).find("checksum"), std::string::npos);
  EXPECT_NE(read_error(trailing).find("is not gzip"), std::string::npos);
}

// A header with all that RFC 1952 allows before the data, in blocks that end anywhere in it.
TEST(InputStream, AGzipHeaderWithNameAndCommentIsReadInBlocksOfAnySize) {
  std::string packed = gzip_member(as_json_2014(random_reviews(20, 9, 9, 2, "x")));
  ASSERT_EQ(packed[3], 0) << "no optional field yet";
  packed[3] = 2 + 4 + 8 + 16;
  packed.insert(10, std::string("\x03\0abc", 5) + std::string("name\0comment\0", 13) + "xx");
  std::string unknown = packed;
  unknown[3] |= 0x40;

  for (std::size_t block = 8; block <= 48; ++block) {
    EXPECT_EQ(read_error(packed, block), "") << block;
    EXPECT_NE(read_error(unknown, block).find("damaged"), std::string::npos) << block;
    EXPECT_NE(read_error(packed.substr(0, 20), block).find("truncated"), std::string::npos);
  }
}

TEST(InputStream, AFileThatSwellsBeyondAllMeasureIsRefused) {
  const std::string line = as_json_2014({{"u", "i", 5, 1300000000, "the same every time"}});
  std::string text;
  while (text.size() < std::size_t{80} << 20) text += line;

  for (const std::string& packed : {gzip_member(text), zstd_frames(text)}) {
    const std::string error = read_error(packed);
    const bool swells = packed.size() < text.size() / 200;
    EXPECT_EQ(error.find("decompress it") != std::string::npos, swells) << error;
  }
  EXPECT_EQ(read_error(zstd_frames(text.substr(0, 10 << 20))), "");
}

TEST(InputStream, OtherFormatsAreNamed) {
  EXPECT_NE(read_error("BZh91AY&SY").find("bzip2"), std::string::npos);
  EXPECT_NE(read_error("PK\x03\x04 ....").find("zip"), std::string::npos);
  EXPECT_NE(read_error("").find("is empty"), std::string::npos);
  EXPECT_NE(read_error("\xFF\xFEx\0y\0").find("UTF-16"), std::string::npos);
}

}  // namespace
}  // namespace cfaa::test
