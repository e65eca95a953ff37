#include "host/data/write_domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "host/core/error.h"
#include "host/data/dataset.h"
#include "host/data/domain_index.h"
#include "host/data/item_titles.h"
#include "host/data/review_text.h"
#include "host/data/steps.h"
#include "host/io/output_file.h"

namespace cfaa {
namespace fs = std::filesystem;
namespace {

constexpr uint32_t kAbsent = 0xFFFFFFFF;

// The index of each number that has rows: its rank among them.
std::vector<uint32_t> compact(const Interactions& domain, uint32_t Interaction::*side,
                              const std::vector<std::string_view>& ids, IdList& kept) {
  std::vector<uint32_t> index(ids.size(), kAbsent);
  for (const Interaction& row : domain.rows) index[row.*side] = 0;
  uint32_t next = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (index[i] == kAbsent) continue;
    index[i] = next++;
    kept.append(ids[i]);
  }
  return index;
}

// Lines of a table, made in place: a file has millions, and general formatting would cost more than
// all else here.
class Lines {
 public:
  explicit Lines(OutputFile& file) : file_(file) {}

  Lines& text(std::string_view text) {
    line_.append(text);
    return *this;
  }
  Lines& whole(int64_t number) {
    char digits[24];
    line_.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
    return *this;
  }
  Lines& rating(float rating) {
    if (rating >= 0 && rating <= 9 && rating == std::floor(rating)) {
      line_.push_back(static_cast<char>('0' + static_cast<int>(rating)));
    } else {
      fmt::format_to(std::back_inserter(line_), "{}", rating);
    }
    return *this;
  }
  Lines& seconds(int64_t milliseconds) {
    if (milliseconds < 0) line_.push_back('-');
    milliseconds = std::abs(milliseconds);
    whole(milliseconds / 1000);
    int rest = static_cast<int>(milliseconds % 1000);
    if (rest > 0) line_.push_back('.');
    for (int unit = 100; rest > 0; rest %= unit, unit /= 10) {
      line_.push_back(static_cast<char>('0' + rest / unit));
    }
    return *this;
  }
  void end() {
    line_.push_back('\n');
    file_.write(line_);
    line_.clear();
  }

 private:
  OutputFile& file_;
  std::string line_;
};

using FilePointer = std::unique_ptr<OutputFile>;

class DomainWriter {
 public:
  DomainWriter(const fs::path& directory, const PreparedDomain& prepared) : prepared_(prepared) {
    domain_.name = prepared.name;
    domain_.path = directory / prepared.name;
    fs::create_directory(domain_.path);
    const Interactions& all = prepared.interactions;
    const auto user = compact(all, &Interaction::user, all.users, domain_.users);
    const auto item = compact(all, &Interaction::item, all.items, domain_.items);
    for (std::size_t i = 0; i < all.titles.size(); ++i) {
      if (item[i] != kAbsent) titles_.push_back(all.titles[i]);
    }
    SplitRows* parts[3] = {&domain_.train, &domain_.valid, &domain_.test};
    for (std::size_t s = 0; s < 3; ++s) {
      const auto count = static_cast<std::size_t>(
          std::count(prepared.splits.begin(), prepared.splits.end(), static_cast<Split>(s)));
      parts[s]->user.reserve(count);
      parts[s]->item.reserve(count);
      parts[s]->rating.reserve(count);
      parts[s]->label.reserve(count);
      parts[s]->time.reserve(count);
      rows_[s].reserve(count);
    }
    for (std::size_t r = 0; r < all.rows.size(); ++r) {
      const Interaction& row = all.rows[r];
      const auto s = static_cast<std::size_t>(prepared.splits[r]);
      SplitRows& part = *parts[s];
      part.user.push_back(static_cast<int32_t>(user[row.user]));
      part.item.push_back(static_cast<int32_t>(item[row.item]));
      const bool labelled = prepared.labelled.empty() || prepared.labelled[r] != 0;
      const bool positive = is_positive(row.rating, prepared.positive);
      part.rating.push_back(labelled ? row.rating : 0.0f);  // a rating would tell the label
      part.label.push_back(!labelled ? kNoLabel : positive ? 1.0f : 0.0f);
      part.time.push_back(static_cast<double>(row.time) / 1000);
      rows_[s].push_back(static_cast<uint32_t>(r));
    }
  }

  // Each writes a file of the domain and returns it, to be closed.
  FilePointer write_ids(bool users) {
    const IdList& ids = users ? domain_.users : domain_.items;
    std::vector<int64_t> training(static_cast<std::size_t>(ids.size()), 0);
    const auto& own = users ? domain_.train.user : domain_.train.item;
    for (std::size_t r = 0; r < own.size(); ++r) training[own[r]] += domain_.train.has_label(r);
    auto file = make(domain_.path / (users ? "users.tsv" : "items.tsv"));
    file->start_hash();
    file->write(users ? "index\tuser_id\ttraining_interactions\n"
                      : "index\titem_id\ttraining_interactions\n");
    Lines lines(*file);
    for (int64_t i = 0; i < ids.size(); ++i) {
      lines.whole(i).text("\t").text(ids[i]).text("\t").whole(training[i]).end();
    }
    identify(*file, users ? 0 : 1);
    return file;
  }

  bool has_titles() const {
    return std::any_of(titles_.begin(), titles_.end(), [](const auto& t) { return !t.empty(); });
  }
  FilePointer write_titles() {
    auto file = make(domain_.path / kItemTitlesName);
    write_item_titles(*file, domain_.items, titles_);
    return file;
  }

  FilePointer write_rows(Split split) {
    const SplitRows& part = domain_.rows(split);
    const auto& rows = rows_[static_cast<std::size_t>(split)];
    const InteractionRows& all = prepared_.interactions.rows;
    auto file = make(inter_path(domain_.path, domain_.name, split));
    file->start_hash();
    file->write("user_id:token\titem_id:token\trating:float\tlabel:float\ttimestamp:float\n");
    Lines lines(*file);
    for (int64_t i = 0; i < part.size(); ++i) {
      lines.text(domain_.users[part.user[i]]).text("\t").text(domain_.items[part.item[i]]);
      lines.text("\t").rating(part.rating[i]).text("\t");
      lines.whole(static_cast<int64_t>(part.label[i])).text("\t");
      lines.seconds(all[rows[i]].time).end();
    }
    identify(*file, 2 + static_cast<int>(split));
    return file;
  }

  FilePointer write_text(Split split) {
    const auto& rows = rows_[static_cast<std::size_t>(split)];
    auto file = make(domain_.text_path(split));
    write_review_text(*file, rows.size(), [&](std::size_t i) {
      const bool kept = domain_.rows(split).has_label(i) || prepared_.keep_reviews;
      return kept ? prepared_.interactions.rows[rows[i]].review() : std::string_view();
    });
    return file;
  }

  // After all others: it names their hashes.
  FilePointer write_index() {
    auto file = make(domain_.path / DomainIndex::kName);
    DomainIndex::write(*file, domain_, identity_);
    return file;
  }

 private:
  static FilePointer make(const fs::path& path) { return std::make_unique<OutputFile>(path); }

  void identify(OutputFile& file, int i) {
    identity_.hash[i] = file.hash();
    identity_.size[i] = file.size();
  }

  const PreparedDomain& prepared_;
  Domain domain_;
  std::vector<std::string> titles_;  // of each item, "" for none; empty: of no item
  std::vector<uint32_t> rows_[3];    // of each split: places among the prepared rows
  TextIdentity identity_;
};

}  // namespace

void write_domains(const fs::path& directory, const std::vector<const PreparedDomain*>& domains,
                   bool heldout_text, ThreadPool& pool) {
  std::vector<std::unique_ptr<DomainWriter>> writers(domains.size());
  pool.parallel_for(static_cast<int64_t>(domains.size()), 1, [&](int64_t d, int64_t, int) {
    writers[d] = std::make_unique<DomainWriter>(directory, *domains[d]);
  });
  // Nobody waits for the disk before all is written.
  std::vector<FilePointer> files;
  const auto write_all = [&](const std::vector<std::function<FilePointer()>>& tasks) {
    const std::size_t before = files.size();
    files.resize(before + tasks.size());
    pool.parallel_for(static_cast<int64_t>(tasks.size()), 1, [&](int64_t i, int64_t, int) {
      FilePointer& file = files[before + static_cast<std::size_t>(i)];
      file = tasks[i]();
      file->finish();
    });
  };
  // Largest files first; the index needs the hashes of the others.
  std::vector<std::function<FilePointer()>> texts_and_rows, indices;
  for (auto& writer : writers) {
    texts_and_rows.push_back([&] { return writer->write_text(Split::train); });
    indices.push_back([&] { return writer->write_index(); });
  }
  for (auto& writer : writers) {
    texts_and_rows.push_back([&] { return writer->write_rows(Split::train); });
  }
  for (auto& writer : writers) {
    for (const Split split : {Split::valid, Split::test}) {
      texts_and_rows.push_back([&writer, split] { return writer->write_rows(split); });
      if (heldout_text) {
        texts_and_rows.push_back([&writer, split] { return writer->write_text(split); });
      }
    }
    texts_and_rows.push_back([&writer] { return writer->write_ids(true); });
    texts_and_rows.push_back([&writer] { return writer->write_ids(false); });
    if (writer->has_titles()) {
      texts_and_rows.push_back([&writer] { return writer->write_titles(); });
    }
  }
  write_all(texts_and_rows);
  write_all(indices);
  pool.parallel_for(static_cast<int64_t>(files.size()), 1,
                    [&](int64_t i, int64_t, int) { files[i]->close(); });
}

}  // namespace cfaa
