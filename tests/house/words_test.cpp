// What the repository says of itself is true and can be read: paths that exist, lines that fit.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/house/sources.h"
#include "tests/paths.h"

namespace {

namespace fs = std::filesystem;
using namespace cfaa::test;

std::string at(const SourceFile& file, std::size_t line) {
  return file.path + ":" + std::to_string(line + 1);
}

// "a.{h,cpp}" -> "a.h", "a.cpp".
std::vector<std::string> expand_braces(const std::string& path) {
  const std::size_t open = path.find('{'), close = path.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {path};
  std::vector<std::string> paths;
  std::size_t from = open + 1;
  while (from <= close) {
    const std::size_t to = std::min(path.find(',', from), close);
    for (const std::string& rest : expand_braces(path.substr(close + 1))) {
      paths.push_back(path.substr(0, open) + path.substr(from, to - from) + rest);
    }
    from = to + 1;
  }
  return paths;
}

// Whether something has this path; a '*' in its last part stands for any text.
bool exists(const std::string& path) {
  const fs::path whole = source_path(path);
  const std::string pattern = whole.filename().string();
  if (pattern.find('*') == std::string::npos) return fs::exists(whole);
  const std::string escaped = std::regex_replace(pattern, std::regex(R"([.+^$|()\[\]])"), R"(\$&)");
  const std::regex matches(std::regex_replace(escaped, std::regex(R"(\*)"), ".*"));
  if (!fs::is_directory(whole.parent_path())) return false;
  for (const auto& entry : fs::recursive_directory_iterator(whole.parent_path())) {
    if (std::regex_match(entry.path().filename().string(), matches)) return true;
  }
  return false;
}

// Paths from the top of the repository that a line names. A part in capitals is a placeholder,
// unless it is a README.
std::vector<std::string> paths_named_in(const std::string& line) {
  static const std::regex path(
      R"((^|[^A-Za-z0-9_/.$}>-])((?:host|cuda|kernels|tools|tests|bench|configs|docs)/[A-Za-z0-9_./*{},-]+))");
  static const std::regex placeholder(R"((^|/)[A-Z]+(\.|/|$))");
  std::vector<std::string> paths;
  if (line.find('/') == std::string::npos) return paths;  // regular expressions are slow
  for (std::sregex_iterator match(line.begin(), line.end(), path), end; match != end; ++match) {
    std::string named = (*match)[2];
    if (named.find('}') == std::string::npos) named = named.substr(0, named.find_first_of("{,"));
    while (!named.empty() && (named.back() == '.' || named.back() == ',' || named.back() == '-')) {
      named.pop_back();
    }
    if (!named.ends_with("README.md") && std::regex_search(named, placeholder)) continue;
    for (const std::string& one : expand_braces(named)) paths.push_back(one);
  }
  return paths;
}

TEST(House, EveryPathThatIsNamedExists) {
  std::size_t checked = 0;
  std::map<std::string, bool> known;
  for (const SourceFile& file : source_files()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& path : paths_named_in(file.lines[i])) {
        const auto found = known.try_emplace(path).first;
        if (!found->second) found->second = exists(path);
        ++checked;

        EXPECT_TRUE(found->second) << at(file, i) << " names " << path << ", which does not exist";
      }
    }
  }

  EXPECT_GT(checked, 1000u) << "the paths were not found";
}

TEST(House, APathIsFoundWhereItStands) {
  using Paths = std::vector<std::string>;

  EXPECT_EQ(paths_named_in("// see host/ops/sum.h."), Paths{"host/ops/sum.h"});
  EXPECT_EQ(paths_named_in("`host/ops/sum.{h,cpp}`"),
            (Paths{"host/ops/sum.h", "host/ops/sum.cpp"}));
  EXPECT_EQ(paths_named_in("tests/fuzz/corpus/TARGET and build/cpu/tools/x"), Paths{});
  EXPECT_TRUE(exists("host/ops/*.h"));
  EXPECT_FALSE(exists("host/ops/*.there_is_no_such_file"));
}

TEST(House, NothingOutsideOfTheRepositoryIsNamed) {
  for (const SourceFile& file : source_files()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_EQ(file.lines[i].find("../shared"), std::string::npos)
          << at(file, i) << ": golden data is found by CFAA_FIXTURES, which .ci/run sets";
    }
  }
}

TEST(House, DocsFitAHundredColumns) {
  std::size_t docs = 0;
  for (const SourceFile& file : source_files()) {
    if (!is_doc(file)) continue;
    ++docs;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_LE(columns(file.lines[i]), 100u) << at(file, i);
    }
  }

  EXPECT_GT(docs, 10u);
}

// Whether the phrase, in lower case, stands in the line between things that are not letters.
bool says(const std::string& line, const std::string& phrase) {
  const auto is_same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  };
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  auto from = line.begin();
  while (true) {
    const auto found = std::search(from, line.end(), phrase.begin(), phrase.end(), is_same);
    if (found == line.end()) return false;
    const auto end = found + static_cast<std::ptrdiff_t>(phrase.size());
    const bool begins = found == line.begin() || !is_letter(found[-1]);
    if (begins && (end == line.end() || !is_letter(*end))) return true;
    from = found + 1;
  }
}

struct Word {
  const char* banned;
  const char* instead;
};

// The field's words, not our own; and no diary.
constexpr std::array kWords = {
    Word{"made-up", "synthetic"},
    Word{"mend", "fix"},
    Word{"mends", "fixes"},
    Word{"mended", "fixed"},
    Word{"go on from", "resume from"},
    Word{"go on where", "resume where"},
    Word{"goes on from", "resumes from"},
    Word{"goes on where", "resumes where"},
    Word{"going on from", "resuming from"},
    Word{"going on behind", "resuming after"},
    Word{"paper's letter", "as in the paper"},
    Word{"letter of the paper", "as in the paper"},
    Word{"one sitting", "how it was measured"},
    Word{"what was tried", "what is"},
    Word{"left alone", "what is"},
};
constexpr std::array kWordsOfDocs = {
    Word{"table_rate", "embedding_rate"},
    Word{"table_decay", "embedding_decay"},
};

TEST(House, WordsAreThoseOfTheField) {
  for (const SourceFile& file : source_files()) {
    std::vector<Word> words(kWords.begin(), kWords.end());
    if (is_doc(file)) words.insert(words.end(), kWordsOfDocs.begin(), kWordsOfDocs.end());
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const Word& word : words) {
        EXPECT_FALSE(says(file.lines[i], word.banned))
            << at(file, i) << " says '" << word.banned << "'; say '" << word.instead << "'";
      }
    }
  }
}

TEST(House, AWordIsFoundAsAWhole) {
  EXPECT_TRUE(says("// Mend it.", "mend"));
  EXPECT_FALSE(says("recommend it", "mend"));
  EXPECT_TRUE(says("recommend, then mend", "mend"));
}

// A file for every op makes its three folders long; everywhere else a crowd asks for another room.
TEST(House, NoFolderIsCrowded) {
  constexpr int kMost = 32;
  std::map<std::string, int> files;
  for (const SourceFile& file : source_files()) {
    ++files[fs::path(file.path).parent_path().generic_string()];
  }
  for (const auto& [folder, count] : files) {
    if (folder == "host/ops" || folder == "host/cpu" || folder == "kernels") continue;

    EXPECT_LE(count, kMost) << folder << " holds " << count << " files";
  }
}

}  // namespace
