#include "host/data/dataset.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "host/core/error.h"
#include "host/data/domain_index.h"
#include "host/data/review.h"
#include "host/data/review_text.h"

namespace cfaa {
namespace fs = std::filesystem;
namespace {

// A whole file in memory, read only.
class FileBytes {
 public:
  explicit FileBytes(const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat info {};
    ::fstat(fd, &info);
    size_ = static_cast<std::size_t>(info.st_size);
    if (size_ > 0) {
      data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
      if (data_ == MAP_FAILED) data_ = nullptr, size_ = 0;
    }
    opened_ = true;
    ::close(fd);
  }
  ~FileBytes() {
    if (data_) ::munmap(data_, size_);
  }
  FileBytes(const FileBytes&) = delete;

  bool opened() const { return opened_; }
  std::string_view view() const { return {static_cast<const char*>(data_), size_}; }

 private:
  bool opened_ = false;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

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
    if (rows.size() > 0 &&
        !(std::pair<int64_t, int64_t>(rows.user.back(), rows.item.back()) < std::pair(user, item))) {
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
  const fs::path temporary =
      domain.path / fmt::format(".{}.{}", DomainIndex::kName, ::getpid());
  std::error_code ignored;
  try {
    fs::remove(temporary, ignored);
    DomainIndex::write(temporary, domain, identity);
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
  std::vector<std::unique_ptr<FileBytes>> files;
  TextIdentity identity;
  for (std::size_t i = 0; i < 5; ++i) {
    files.push_back(std::make_unique<FileBytes>(paths[i]));
    if (!files[i]->opened()) {
      throw Error(fmt::format("{}: cannot be opened: {}; is {} a directory that prepare made?",
                              paths[i].string(), std::strerror(errno), directory.string()));
    }
    const std::string_view text = files[i]->view();
    identity.size[i] = text.size();
    identity.hash[i] = XXH3_64bits(text.data(), text.size());
  }
  domain.hash = XXH3_64bits(&identity, sizeof(identity));
  {
    const FileBytes index(domain.path / DomainIndex::kName);
    if (index.opened() && DomainIndex::read(index.view(), identity, domain)) return domain;
  }
  domain.users = parse_ids(paths[0], files[0]->view(), "user_id");
  domain.items = parse_ids(paths[1], files[1]->view(), "item_id");
  SplitRows* rows[3] = {&domain.train, &domain.valid, &domain.test};
  for (int s = 0; s < 3; ++s) {
    *rows[s] = parse_rows(paths[2 + s], files[2 + s]->view(), domain.users, domain.items);
  }
  store_index(domain, identity);
  return domain;
}

Dataset load_dataset(const fs::path& directory) {
  Dataset data{load_domain(directory, "source"), load_domain(directory, "target"), ""};
  uint64_t parts[4] = {data.source.hash, data.target.hash, 0, 0};
  parts[2] = ReviewTextFile(data.source.text_path(Split::train)).checksum();
  parts[3] = ReviewTextFile(data.target.text_path(Split::train)).checksum();
  const XXH128_hash_t hash = XXH3_128bits(parts, sizeof(parts));
  data.hash = fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  return data;
}

}  // namespace cfaa
