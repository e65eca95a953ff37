#include "host/data/dataset.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "host/core/error.h"
#include "host/core/terminal/printable.h"
#include "host/data/domain_index.h"
#include "host/data/review.h"
#include "host/data/review_text.h"
#include "host/io/content_hash.h"
#include "host/io/mapped_file.h"

namespace cfaa {
namespace fs = std::filesystem;
namespace {

std::string_view view(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The lines of one text file, with the file and line for messages.
class Lines {
 public:
  Lines(const fs::path& path, std::string_view text) : path_(path), rest_(text) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(fmt::format("{}:{}: {}; run prepare again", path_.string(), line_, why));
  }
  bool next(std::vector<std::string_view>& fields) {
    if (rest_.empty()) return false;
    ++line_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) fail("the last line is not whole");
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    fields.clear();
    for (;;) {
      const std::size_t tab = line.find('\t');
      fields.push_back(line.substr(0, tab));
      if (tab == std::string_view::npos) return true;
      line.remove_prefix(tab + 1);
    }
  }
  void expect_header(std::initializer_list<std::string_view> wanted) {
    std::vector<std::string_view> fields;
    if (!next(fields) || !std::equal(fields.begin(), fields.end(), wanted.begin(), wanted.end())) {
      line_ = 1;
      fail(fmt::format("the header is not '{}'", fmt::join(wanted, " ")));
    }
  }
  double number(std::string_view text) const {
    const double value = parse_number(text);
    if (std::isnan(value)) fail(fmt::format("'{}' is not a number", text.substr(0, 40)));
    return value;
  }

 private:
  fs::path path_;
  std::string_view rest_;
  int64_t line_ = 0;
};

IdList parse_ids(const fs::path& path, std::string_view text, std::string_view column) {
  Lines lines(path, text);
  lines.expect_header({"index", column, "training_interactions"});
  IdList ids;
  std::vector<std::string_view> fields;
  while (lines.next(fields)) {
    if (fields.size() != 3) lines.fail("three fields are needed");
    if (fields[0] != std::to_string(ids.size())) lines.fail("the indices do not count from 0");
    if (ids.size() > 0 && !(ids[ids.size() - 1] < fields[1])) lines.fail("the ids do not ascend");
    if (has_control(fields[1])) lines.fail("the id holds a control character");
    ids.append(fields[1]);
  }
  return ids;
}

SplitRows parse_rows(const fs::path& path, std::string_view text, const IdList& users,
                     const IdList& items) {
  Lines lines(path, text);
  lines.expect_header(
      {"user_id:token", "item_id:token", "rating:float", "label:float", "timestamp:float"});
  SplitRows rows;
  std::vector<std::string_view> fields;
  std::string_view user_id;
  int64_t user = -1;
  while (lines.next(fields)) {
    if (fields.size() != 5) lines.fail("five fields are needed");
    if (user < 0 || fields[0] != user_id) {
      user = users.find(fields[0]);
      user_id = fields[0];
    }
    const int64_t item = items.find(fields[1]);
    if (user < 0) lines.fail(fmt::format("the user '{}' is not in users.tsv", fields[0]));
    if (item < 0) lines.fail(fmt::format("the item '{}' is not in items.tsv", fields[1]));
    if (rows.size() > 0 && !(std::pair<int64_t, int64_t>(rows.user.back(), rows.item.back()) <
                             std::pair(user, item))) {
      lines.fail("the rows do not ascend by user and item");
    }
    rows.user.push_back(static_cast<int32_t>(user));
    rows.item.push_back(static_cast<int32_t>(item));
    rows.rating.push_back(static_cast<float>(lines.number(fields[2])));
    rows.label.push_back(static_cast<float>(lines.number(fields[3])));
    rows.time.push_back(lines.number(fields[4]));
  }
  return rows;
}

// Puts a fresh index beside the text; a directory that cannot be written to loads without one.
void store_index(const Domain& domain, const TextIdentity& identity) {
  const fs::path temporary = domain.path / fmt::format(".{}.{}", DomainIndex::kName, ::getpid());
  std::error_code ignored;
  try {
    fs::remove(temporary, ignored);
    OutputFile file(temporary);
    DomainIndex::write(file, domain, identity);
    file.close();
    fs::rename(temporary, domain.path / DomainIndex::kName);
  } catch (const std::exception&) {
    fs::remove(temporary, ignored);
  }
}

}  // namespace

int64_t IdList::find(std::string_view id) const {
  int64_t low = 0, high = size();
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if ((*this)[middle] < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < size() && (*this)[low] == id ? low : -1;
}

void IdList::append(std::string_view id) {
  bytes_.append(id);
  offsets_.push_back(bytes_.size());
}

bool is_prepared_file(const fs::path& file) {
  if (file == "prepare.json" || file == "source" || file == "target") return true;
  if (file == "newcomers" || file == "newcomers/reviews.jsonl" || file == "newcomers/asked.tsv") {
    return true;
  }
  const fs::path domain = file.parent_path();
  if (domain != "source" && domain != "target") return false;
  std::string name = file.filename().string();
  if (name == "embed.journal" || name.starts_with(fmt::format(".{}.", DomainIndex::kName))) {
    return true;
  }
  constexpr std::string_view partial = ".partial";
  if (name.ends_with(partial)) name.resize(name.size() - partial.size());
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    const std::string front = fmt::format("{}.{}", domain.string(), split_name(split));
    if (name == front + ".inter" || name == front + ".text") return true;
  }
  static const std::set<std::string_view> others = {"users.tsv",
                                                    "items.tsv",
                                                    "item_titles.tsv",
                                                    DomainIndex::kName,
                                                    "review_sums.npy",
                                                    "review_counts.npy",
                                                    "user_reviews.npy",
                                                    "item_reviews.npy",
                                                    "empty_reviews.txt",
                                                    "embed.json",
                                                    "embed.window",
                                                    "review_sentences.f32",
                                                    "user_summary_sums.npy",
                                                    "user_summary_counts.npy",
                                                    "item_summary_sums.npy",
                                                    "item_summary_counts.npy"};
  return others.contains(name);
}

const char* split_name(Split split) {
  return split == Split::train ? "train" : split == Split::valid ? "valid" : "test";
}

fs::path inter_path(const fs::path& directory, const std::string& name, Split split) {
  return directory / fmt::format("{}.{}.inter", name, split_name(split));
}

fs::path Domain::text_path(Split split) const {
  return path / fmt::format("{}.{}.text", name, split_name(split));
}

Domain load_domain(const fs::path& directory, const std::string& name) {
  Domain domain;
  domain.name = name;
  domain.path = directory / name;
  const fs::path paths[5] = {domain.path / "users.tsv", domain.path / "items.tsv",
                             inter_path(domain.path, name, Split::train),
                             inter_path(domain.path, name, Split::valid),
                             inter_path(domain.path, name, Split::test)};
  if (!fs::exists(paths[0])) {
    throw Error(fmt::format("{}: there is no {}; is this a directory that prepare made?",
                            directory.string(), (fs::path(name) / "users.tsv").string()));
  }
  MappedFile files[5];
  TextIdentity identity;
  for (std::size_t i = 0; i < 5; ++i) {
    files[i] = MappedFile(paths[i].string());
    identity.size[i] = view(files[i]).size();
    identity.hash[i] = XXH3_64bits(view(files[i]).data(), view(files[i]).size());
  }
  domain.hash = XXH3_64bits(&identity, sizeof(identity));
  const fs::path index = domain.path / DomainIndex::kName;
  if (fs::exists(index)) {
    const MappedFile bytes(index.string());
    if (DomainIndex::read(view(bytes), identity, domain)) return domain;
  }
  domain.users = parse_ids(paths[0], view(files[0]), "user_id");
  domain.items = parse_ids(paths[1], view(files[1]), "item_id");
  SplitRows* rows[3] = {&domain.train, &domain.valid, &domain.test};
  for (int s = 0; s < 3; ++s) {
    *rows[s] = parse_rows(paths[2 + s], view(files[2 + s]), domain.users, domain.items);
  }
  store_index(domain, identity);
  return domain;
}

Dataset load_dataset(const fs::path& directory) {
  Dataset data{load_domain(directory, "source"), load_domain(directory, "target"), ""};
  uint64_t parts[4] = {data.source.hash, data.target.hash, 0, 0};
  parts[2] = ReviewTextFile(data.source.text_path(Split::train)).checksum();
  parts[3] = ReviewTextFile(data.target.text_path(Split::train)).checksum();
  ContentHash hash;
  hash.add(parts, sizeof(parts));
  data.hash = hash.text();
  return data;
}

}  // namespace cfaa
