#include "host/text/tokenizer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "host/core/error.h"
#include "host/io/utf8.h"
#include "host/text/byte_bpe.h"
#include "tests/golden.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

using test::read_json_lines;
using test::TemporaryFolder;
using test::write_text;
using Ids = std::vector<std::int32_t>;

Ids encode(const Tokenizer& tokenizer, const std::string& text,
           std::size_t max_length = Tokenizer::kNoLimit, Encoding* encoding = nullptr) {
  TokenizerScratch scratch(tokenizer);
  Ids ids;
  const Encoding result = tokenizer.encode(text, max_length, scratch, ids);
  if (encoding != nullptr) *encoding = result;
  return ids;
}

std::string tokens(const Tokenizer& tokenizer, const std::string& text) {
  std::string joined;
  for (const std::int32_t id : encode(tokenizer, text)) {
    joined += (joined.empty() ? "" : " ") + tokenizer.token(id);
  }
  return joined;
}

// A BERT directory with these words; the ids of the special tokens are 0 to 4.
std::unique_ptr<Tokenizer> bert_of(const std::string& words, const std::string& config = "",
                                   SpecialLiterals literals = SpecialLiterals::kPlain) {
  TemporaryFolder folder;
  write_text(folder.path("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + words);
  if (!config.empty()) write_text(folder.path("tokenizer_config.json"), config);
  return load_tokenizer(folder.path(), {literals, {}});
}

TEST(WordPiece, TakesTheLongestTokensFromLeftToRight) {
  const auto tokenizer = bert_of("un\nunaff\naff\n##aff\n##able\n##a\n##b\n");

  EXPECT_EQ(tokens(*tokenizer, "unaffable"), "[CLS] unaff ##able [SEP]");
  EXPECT_EQ(tokens(*tokenizer, "unable"), "[CLS] un ##able [SEP]");
  EXPECT_EQ(tokens(*tokenizer, "unablex"), "[CLS] [UNK] [SEP]");
}

TEST(WordPiece, WordsBeyondAHundredCodePointsAreUnknown) {
  const auto tokenizer = bert_of("a\n##a\né\n##é\n", R"({"strip_accents": false})");
  std::string hundred, accents;
  for (int i = 0; i < 100; ++i) hundred += "a", accents += "é";

  EXPECT_EQ(encode(*tokenizer, hundred).size(), 102u);
  EXPECT_EQ(encode(*tokenizer, accents).size(), 102u);
  EXPECT_EQ(tokens(*tokenizer, hundred + "a"), "[CLS] [UNK] [SEP]");
  EXPECT_EQ(tokens(*tokenizer, accents + "é"), "[CLS] [UNK] [SEP]");
}

TEST(WordPiece, ConfigurationDecidesCaseAccentsAndChinese) {
  const std::string words = "cafe\ncafé\nCafé\nCafe\n中文\n中\n文\n";

  EXPECT_EQ(tokens(*bert_of(words), "Café 中文"), "[CLS] cafe 中 文 [SEP]");
  EXPECT_EQ(tokens(*bert_of(words, R"({"do_lower_case": false})"), "Café"), "[CLS] Café [SEP]");
  EXPECT_EQ(tokens(*bert_of(words, R"({"do_lower_case": false, "strip_accents": true})"), "Café"),
            "[CLS] Cafe [SEP]");
  EXPECT_EQ(tokens(*bert_of(words, R"({"strip_accents": false})"), "Café"), "[CLS] café [SEP]");
  EXPECT_EQ(tokens(*bert_of(words, R"({"tokenize_chinese_chars": false})"), "中文"),
            "[CLS] 中文 [SEP]");
}

TEST(WordPiece, MarksThatSurviveStrippingAreInCanonicalOrder) {
  // U+1D16D has class 226, U+1D165 class 216: decomposition puts the second one first.
  const auto tokenizer = bert_of("a\n##\U0001D165\n##\U0001D16D\n");

  EXPECT_EQ(encode(*tokenizer, "a\U0001D16D\U0001D165"), (Ids{2, 5, 6, 7, 3}));
  EXPECT_EQ(encode(*tokenizer, "a\U0001D16D\u034F\U0001D165"), (Ids{2, 5, 7, 6, 3}))
      << "a dropped mark of class 0 lies between";
}

TEST(Tokenizer, TruncationKeepsTheClosingToken) {
  const auto tokenizer = bert_of("a\nb\nc\n");
  Encoding encoding;

  EXPECT_EQ(encode(*tokenizer, "a b c", 4, &encoding), (Ids{2, 5, 6, 3}));
  EXPECT_TRUE(encoding.truncated);
  EXPECT_EQ(encode(*tokenizer, "a b c", 5, &encoding), (Ids{2, 5, 6, 7, 3}));
  EXPECT_FALSE(encoding.truncated);
  EXPECT_EQ(encode(*tokenizer, "a b c", 2), (Ids{2, 3}));
  EXPECT_THROW(encode(*tokenizer, "a", 1), Error);
}

TEST(Tokenizer, SpecialLiteralsArePlainTextUnlessAskedFor) {
  const std::string words = "a\n[\n]\nsep\n";

  EXPECT_EQ(tokens(*bert_of(words), "a [SEP] a"), "[CLS] a [ sep ] a [SEP]");
  EXPECT_EQ(encode(*bert_of(words, "", SpecialLiterals::kParity), "a[SEP]a [sep]"),
            (Ids{2, 5, 3, 5, 6, 8, 7, 3}));
}

TEST(Tokenizer, IllFormedBytesAreReplacedAndCounted) {
  const auto tokenizer = bert_of("a\nb\nab\n");
  Encoding encoding;

  const Ids ids = encode(*tokenizer,
                         "a\xFF"
                         "b \xE2\x82",
                         Tokenizer::kNoLimit, &encoding);

  EXPECT_EQ(ids, (Ids{2, 7, 3})) << "BERT drops U+FFFD";
  EXPECT_EQ(encoding.replaced, 2u);
}

TEST(Tokenizer, ModelMaxLengthIsReadAndAHugeOneMeansNone) {
  EXPECT_EQ(bert_of("a\n")->model_max_length(), Tokenizer::kNoLimit);
  EXPECT_EQ(bert_of("a\n", R"({"model_max_length": 128})")->model_max_length(), 128u);
  EXPECT_EQ(bert_of("a\n", R"({"model_max_length": 1e30})")->model_max_length(),
            Tokenizer::kNoLimit);
}

TEST(ByteBpe, CutsContractionsLettersNumbersAndSpaces) {
  const auto tokenizer = load_tokenizer(test::text_data("roberta"));

  EXPECT_EQ(tokens(*tokenizer, "   a"), "<s> Ġ Ġ Ġa </s>");
  EXPECT_EQ(tokens(*tokenizer, "a  "), "<s> a Ġ Ġ </s>");
  EXPECT_EQ(tokens(*tokenizer, "it's"), "<s> it 's </s>");
  EXPECT_EQ(tokens(*tokenizer, "it'LL"), "<s> it ' L L </s>");
}

// The bytes of all tokens together are the text: nothing is lost, whatever the bytes.
TEST(ByteBpe, TokensSpellTheText) {
  const auto tokenizer = load_tokenizer(test::text_data("roberta"));
  std::map<char32_t, char> byte_of;
  for (int b = 0; b < 256; ++b) {
    byte_of[byte_character(static_cast<unsigned char>(b))] = static_cast<char>(b);
  }
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes)
      c = static_cast<char>(random() % 3 ? "the sound .'s\n"[random() % 14] : random());
    std::string storage;
    std::size_t replaced = 0;
    const std::string text(well_formed(bytes, storage, replaced));

    const Ids ids = encode(*tokenizer, bytes);

    std::string spelled;
    for (std::size_t i = 1; i + 1 < ids.size(); ++i) {
      const std::string& token = tokenizer->token(ids[i]);
      for (const char* p = token.data(); p < token.data() + token.size();) {
        spelled.push_back(byte_of.at(next_code_point(p)));
      }
    }
    ASSERT_EQ(spelled, text);
  }
}

// Merging as the definition has it: the lowest rank anywhere, the leftmost of equals.
TEST(ByteBpe, LongPiecesMergeAsTheDefinitionSays) {
  const auto folder = test::text_data("roberta");
  const auto tokenizer = load_tokenizer(folder);
  std::map<std::pair<std::string, std::string>, int> rank;
  std::ifstream merges(folder + "/merges.txt");
  for (std::string line; std::getline(merges, line);) {
    if (line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ');
    rank.emplace(std::pair(line.substr(0, space), line.substr(space + 1)),
                 static_cast<int>(rank.size()));
  }
  std::mt19937 random(12);
  for (int round = 0; round < 300; ++round) {
    std::string word;
    for (std::size_t n = 1 + random() % 150; n > 0; --n) word += "aeinorsth"[random() % 9];
    std::vector<std::string> symbols;
    for (const char c : word) symbols.emplace_back(1, c);
    while (true) {
      int best = 1 << 30;
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto found = rank.find({symbols[i], symbols[i + 1]});
        if (found != rank.end() && found->second < best) best = found->second, at = i;
      }
      if (best == 1 << 30) break;
      symbols[at] += symbols[at + 1];
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }

    const Ids ids = encode(*tokenizer, word);

    ASSERT_EQ(ids.size(), symbols.size() + 2) << word;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      ASSERT_EQ(tokenizer->token(ids[i + 1]), symbols[i]) << word;
    }
  }
}

// A quadratic merge would take hours here.
TEST(ByteBpe, AMegabyteWithoutSpaceTakesNearLinearTime) {
  const auto tokenizer = load_tokenizer(test::text_data("roberta"));
  std::mt19937 random(13);
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "aeinorsth"[random() % 9];

  EXPECT_GT(encode(*tokenizer, text).size(), 100'000u);
}

void expect_golden(const Tokenizer& tokenizer, const std::string& path, const char* key) {
  TokenizerScratch scratch(tokenizer);
  Ids ids;
  for (const auto& row : read_json_lines(path)) {
    tokenizer.encode(row["text"].get<std::string>(), row.value("max_length", Tokenizer::kNoLimit),
                     scratch, ids);

    EXPECT_EQ(ids, row[key].get<Ids>()) << row["text"];
  }
}

TEST(Tokenizer, SmallGoldenLinesHaveHuggingFacesIds) {
  for (const std::string kind : {"bert", "roberta"}) {
    for (const std::string& folder : {kind, kind + "_json"}) {
      const std::string golden = test::text_data("tokens." + kind + ".jsonl");
      SCOPED_TRACE(folder);
      expect_golden(*load_tokenizer(test::text_data(folder), {SpecialLiterals::kParity, {}}),
                    golden, "ids");
      expect_golden(*load_tokenizer(test::text_data(folder)), golden, "ids_plain");
    }
  }
}

TEST(Tokenizer, AllGoldenLinesHaveHuggingFacesIds) {
  CFAA_SKIP_WITHOUT_GOLDEN("fixtures/text/sentences.en.jsonl");
  for (const std::string model : {"bert-base-uncased", "bert-base-chinese", "roberta-base"}) {
    SCOPED_TRACE(model);
    const std::string folder = test::golden_path("tokenizers/" + model);
    const std::string golden = test::golden_path("fixtures/text/" + model);
    std::optional<bool> lower;
    if (model == "bert-base-chinese") lower = false;
    const auto parity = load_tokenizer(folder, {SpecialLiterals::kParity, lower});
    const auto plain = load_tokenizer(folder, {SpecialLiterals::kPlain, lower});

    expect_golden(*parity, golden + ".jsonl", "ids");
    expect_golden(*parity, golden + ".truncated16.jsonl", "ids");
    expect_golden(*parity, golden + ".special_literals.jsonl", "ids");
    expect_golden(*plain, golden + ".special_literals.jsonl", "ids_plain");
  }
  expect_golden(*load_tokenizer(test::golden_path("tokenizers/bert-base-chinese"),
                                {SpecialLiterals::kParity, {}}),
                test::golden_path("fixtures/text/bert-base-chinese.lowercase.jsonl"), "ids");
}

TEST(Tokenizer, ThreadsShareATokenizer) {
  const auto tokenizer = load_tokenizer(test::text_data("roberta"));
  const auto rows = read_json_lines(test::text_data("tokens.roberta.jsonl"));
  std::vector<std::size_t> wrong(4, 0);
  std::vector<std::thread> threads;

  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      TokenizerScratch scratch(*tokenizer);
      Ids ids;
      for (const auto& row : rows) {
        tokenizer->encode(row["text"].get<std::string>(), Tokenizer::kNoLimit, scratch, ids);
        wrong[t] += ids != row["ids_plain"].get<Ids>();
      }
    });
  }
  for (auto& thread : threads) thread.join();

  EXPECT_EQ(wrong, std::vector<std::size_t>(4, 0));
}

// Every early id list of the full encoding is what truncation gives, for any bytes.
TEST(Tokenizer, RandomBytesEncodeAndTruncateConsistently) {
  std::mt19937 random(14);
  for (const std::string folder : {"bert", "roberta"}) {
    const auto tokenizer = load_tokenizer(test::text_data(folder), {SpecialLiterals::kParity, {}});
    for (int round = 0; round < 2000; ++round) {
      std::string bytes(random() % 120, '\0');
      for (char& c : bytes)
        c = static_cast<char>(random() % 2 ? "a [SEP]<mask>"[random() % 13] : random());
      const std::size_t limit = 2 + random() % 20;

      const Ids full = encode(*tokenizer, bytes);
      const Ids cut = encode(*tokenizer, bytes, limit);

      ASSERT_EQ(cut.size(), std::min(limit, full.size()));
      Ids expected(full.begin(), full.begin() + static_cast<std::ptrdiff_t>(cut.size()) - 1);
      expected.push_back(full.back());
      ASSERT_EQ(cut, expected);
      for (const std::int32_t id : full) {
        ASSERT_LT(static_cast<std::size_t>(id), tokenizer->vocabulary_size());
      }
    }
  }
}

// The message of the error that loading a folder with these files gives.
std::string load_error(const std::map<std::string, std::string>& files) {
  TemporaryFolder folder;
  for (const auto& [name, content] : files) write_text(folder.path(name), content);
  try {
    load_tokenizer(folder.path());
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string with_post_processor(const std::string& processor) {
  return R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
             "pre_tokenizer": {"type": "ByteLevel"}, "post_processor": )" +
         processor + "}";
}

std::string nested_sequences(int depth) {
  std::string opening, closing;
  for (int i = 0; i < depth; ++i) {
    opening += R"({"type": "Sequence", "processors": [)";
    closing += "]}";
  }
  return opening + closing;
}

TEST(LoadTokenizer, EveryProblemIsNamed) {
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  const std::string vocab = R"({"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4})";
  const struct {
    std::map<std::string, std::string> files;
    std::string expected;
  } cases[] = {
      {{}, "has no vocabulary"},
      {{{"vocab.txt", ""}}, "vocab.txt is empty"},
      {{{"vocab.txt", "a\nb\n"}}, "has no token '[CLS]'"},
      {{{"vocab.txt", "a\n\xFF\n"}}, "vocab.txt line 2 is not UTF-8"},
      {{{"vocab.json", vocab}}, "has vocab.json but no merges.txt"},
      {{{"merges.txt", "a b\n"}}, "has merges.txt but no vocab.json"},
      {{{"vocab.json", vocab}, {"merges.txt", "#version: 0.2\na b\na c\n"}},
       "merges.txt line 3: the token 'c' is not in the vocabulary"},
      {{{"vocab.json", vocab}, {"merges.txt", "a b c\n"}}, "merges.txt line 1 is not two tokens"},
      {{{"vocab.json", "{\"a\": 0"}, {"merges.txt", ""}}, "vocab.json: line 1: is not valid JSON"},
      {{{"vocab.json", R"({"a": -4})"}, {"merges.txt", ""}}, "the id of token 'a' is not usable"},
      {{{"vocab.txt", words}, {"tokenizer_config.json", R"({"do_lower_case": "yes"})"}},
       "the field 'do_lower_case' has the wrong type"},
      {{{"vocab.txt", words}, {"tokenizer_config.json", R"({"tokenizer_class": "EsmTokenizer"})"}},
       "tokenizer_class 'EsmTokenizer' is not supported"},
      {{{"vocab.txt", words}, {"added_tokens.json", R"({"guitar": 6})"}},
       "the added token 'guitar'"},
      {{{"sentencepiece.bpe.model", "x"}}, "is a SentencePiece model"},
      {{{"tokenizer.json", R"({"model": {"type": "Unigram", "vocab": []}})"}},
       "the model is of type 'Unigram'"},
      {{{"tokenizer.json", "[]"}}, "it describes no model"},
      {{{"tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}},
                               "pre_tokenizer": {"type": "Metaspace"}})"}},
       "the pre_tokenizer 'Metaspace' does not go with BPE"},
      {{{"tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
                               "pre_tokenizer": {"type": "ByteLevel"},
                               "added_tokens": [{"id": 1, "content": "x", "special": false}]})"}},
       "the added token 'x' is not a plain special token"},
      {{{"tokenizer.json", with_post_processor(R"({"type": "BertProcessing",
                               "cls": ["a", 1099511627776], "sep": ["a", 0]})")}},
       "the post_processor's id 1099511627776 is outside the vocabulary"},
      {{{"tokenizer.json", with_post_processor(R"({"type": "TemplateProcessing",
                               "single": [{"SpecialToken": {"id": "a"}}, {"Sequence": {}}],
                               "special_tokens": {"a": {"ids": [1099511627776]}}})")}},
       "the post_processor's id 1099511627776 is outside the vocabulary"},
      {{{"tokenizer.json", with_post_processor(R"({"type": ["Sequence"]})")}},
       "the post_processor is of type ''"},
      {{{"tokenizer.json", with_post_processor(nested_sequences(20'000))}}, "is nested deeper"},
  };
  for (const auto& c : cases) {
    EXPECT_NE(load_error(c.files).find(c.expected), std::string::npos)
        << "expected: " << c.expected << "\ngot: " << load_error(c.files);
  }
  EXPECT_THROW(load_tokenizer("/no/such/folder"), Error);
}

}  // namespace
}  // namespace cfaa
