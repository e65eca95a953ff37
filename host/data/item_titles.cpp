#include "host/data/item_titles.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/core/error.h"
#include "host/data/readers/record_chunks.h"
#include "host/data/readers/review_format.h"
#include "host/io/mapped_file.h"
#include "host/io/utf8.h"

namespace cfaa {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLongestTitle = 500;  // bytes: Amazon's own limit is 200 characters
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::string_view kHeader = "item_id\ttitle";

// C0, DEL, C1, and the line and paragraph separators: nothing of these reaches a terminal.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029;
}

// Keeps the titles of a file about items.
class TitleKeeper : public RawReviewSink {
 public:
  explicit TitleKeeper(const Interactions& domain)
      : titles(domain.items.size()), items_(domain.items) {}

  std::vector<std::string> titles;                   // (items)
  std::vector<std::pair<int64_t, std::string>> bad;  // lines of the chunk in work, with the reason

  void accept(const RawReview& review, int64_t) override {
    const auto found = std::lower_bound(items_.begin(), items_.end(), review.item);
    if (found == items_.end() || *found != review.item) return;
    std::string title = clean_title(review.title);
    std::string& kept = titles[static_cast<std::size_t>(found - items_.begin())];
    if (!title.empty() && (kept.empty() || title < kept)) kept = std::move(title);
  }
  void reject(int64_t line, std::string reason) override {
    bad.emplace_back(line, std::move(reason));
  }

 private:
  const std::vector<std::string_view>& items_;
};

FileReport read_file(const std::string& path, const PrepareOptions& options, int64_t tolerated,
                     TitleKeeper& keeper, std::vector<BadLine>& bad) {
  InputStream stream(path);
  RecordChunks chunks(stream, kChunkBytes);
  const ReviewFormat format = detect_title_format(chunks.head(), options.quotes, path);
  chunks.set_rule(format.rule);
  chunks.skip(format.header_bytes);
  ReviewParser parser(format, options.invalid_utf8);
  int64_t lines = format.header_lines;
  uint64_t bytes = 0;
  for (Chunk chunk; chunks.next(chunk);) {
    const int64_t before = lines;
    lines += parser.parse(chunk, keeper);
    bytes += chunk.size;
    for (auto& [line, reason] : keeper.bad) {
      bad.push_back({path, before + line + 1, std::move(reason)});
      refuse_bad_line(bad, tolerated);
    }
    keeper.bad.clear();
  }
  return {stream.identity(), format.name, format.said, lines, 0, bytes};
}

}  // namespace

std::string clean_title(std::string_view title) {
  std::string clean;
  bool space = false;
  for (const char* p = title.data(); p < title.data() + title.size();) {
    const char* begin = p;
    const char32_t c = next_code_point(p);
    if (c == ' ' || is_control(c)) {
      space = true;
      continue;
    }
    const auto bytes = static_cast<std::size_t>(p - begin);
    if (clean.size() + space + bytes > kLongestTitle) break;
    if (space && !clean.empty()) clean += ' ';
    space = false;
    clean.append(begin, bytes);
  }
  return clean;
}

void read_item_titles(const std::vector<std::string>& paths, const PrepareOptions& options,
                      int64_t tolerated, Interactions& domain, ReadReport& report) {
  if (paths.empty()) return;
  TitleKeeper keeper(domain);
  for (const std::string& path : paths) {
    report.title_files.push_back(read_file(path, options, tolerated, keeper, report.bad));
  }
  domain.titles.resize(domain.items.size());
  for (std::size_t i = 0; i < domain.titles.size(); ++i) {
    if (!keeper.titles[i].empty()) domain.titles[i] = std::move(keeper.titles[i]);
  }
}

void write_item_titles(OutputFile& file, const IdList& ids,
                       const std::vector<std::string>& titles) {
  file.write(fmt::format("{}\n", kHeader));
  for (int64_t i = 0; i < ids.size(); ++i) {
    const std::string& title = titles[static_cast<std::size_t>(i)];
    if (!title.empty()) file.write(fmt::format("{}\t{}\n", ids[i], title));
  }
}

ItemTitles::ItemTitles(const Domain& domain)
    : titles_(static_cast<std::size_t>(domain.items.size())) {
  const fs::path path = domain.path / kItemTitlesName;
  if (!fs::exists(path)) return;
  const MappedFile file(path.string());
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  for (int64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view record = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t tab = record.find('\t');
    if (tab == std::string_view::npos || !is_utf8(record) || (line == 1 && record != kHeader)) {
      throw Error(fmt::format("{}:{}: is not '{}'; run prepare again, or remove the file",
                              path.string(), line,
                              line == 1 ? "item_id<tab>title" : "an item id, a tab and a title"));
    }
    const int64_t item = line == 1 ? -1 : domain.items.find(record.substr(0, tab));
    if (item < 0) continue;
    std::string& title = titles_[static_cast<std::size_t>(item)];
    count_ += title.empty();
    title = clean_title(record.substr(tab + 1));
    count_ -= title.empty();
  }
}

}  // namespace cfaa
