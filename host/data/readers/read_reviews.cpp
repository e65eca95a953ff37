#include "host/data/readers/read_reviews.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>

#include "host/core/error.h"
#include "host/core/terminal/printable.h"
#include "host/data/id_table.h"
#include "host/data/item_titles.h"
#include "host/data/readers/record_chunks.h"

namespace cfaa {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;  // stays in the L2 cache while parsed
constexpr double kMillisecondsFrom = 1e11;                   // 1973 in ms, the year 5138 in s
constexpr double kEarliest = -5364662400e3;                  // the year 1800 in ms

// What one thread gathers over all files.
struct Gathered {
  IdTable users, items;
  ByteArena texts;
  std::vector<std::vector<Interaction>> blocks;  // user and item: numbers of this thread's tables
  std::vector<std::string_view> titles;          // of this thread's items; the last may lack
  int64_t without_text = 0, without_time = 0;

  // Of several titles the first in byte order counts, so that no order of files or threads shows.
  void add_title(uint32_t item, std::string_view title) {
    if (title.empty()) return;
    if (titles.size() <= item) titles.resize(item + 1);
    if (titles[item].empty() || title < titles[item]) titles[item] = texts.store(title);
  }

  void add(const Interaction& row) {
    constexpr std::size_t kBlockRows = 1 << 16;
    if (blocks.empty() || blocks.back().size() == kBlockRows) {
      blocks.emplace_back();
      blocks.back().reserve(kBlockRows);
    }
    blocks.back().push_back(row);
  }
};

struct ChunkBadLine {
  int64_t chunk, line;
  std::string reason;
};

struct ValueRules {
  RatingScale scale;
  TimeUnit unit;
  double latest;  // milliseconds
};

// Checks a review's values and keeps it. One per thread.
class Keeper : public RawReviewSink {
 public:
  // `input` may be null.
  Keeper(Gathered& gathered, const ValueRules& rules, const NeedsText& needs_text,
         const MappedInput* input)
      : gathered_(gathered), rules_(rules), needs_text_(needs_text), input_(input) {}

  Chunk chunk;  // in work
  int64_t kept = 0;
  std::vector<ChunkBadLine> bad;

  void accept(const RawReview& review, int64_t line) override {
    Interaction row;
    if (std::string reason = check(review, row); !reason.empty()) {
      reject(line, std::move(reason));
      return;
    }
    row.user = gathered_.users.intern(review.user);
    row.item = gathered_.items.intern(review.item);
    gathered_.add_title(row.item, review.title);
    gathered_.without_text += review.text.empty();
    if (!needs_text_ || needs_text_(review)) {
      const std::string_view text = keep(review.text);
      row.text = text.data();
      row.text_bytes = static_cast<uint32_t>(text.size());
    }
    gathered_.without_time += row.time == 0;
    gathered_.add(row);
    ++kept;
  }

  void reject(int64_t line, std::string reason) override {
    bad.push_back({chunk.index, line, std::move(reason)});
  }

 private:
  // A text that stands in the mapped file as it is stays there. Copying it would cost more than
  // parsing it: fresh pages are cleared, and first fetched from the host in a virtual machine.
  std::string_view keep(std::string_view text) {
    if (input_) {
      const std::optional<uint64_t> offset = chunk.offset_of(text);
      if (offset && *offset + text.size() <= input_->bytes().size()) {
        return input_->bytes().substr(*offset, text.size());
      }
    }
    return gathered_.texts.store(text);
  }

  static std::string check_id(std::string_view id, const char* what) {
    if (id.empty()) return fmt::format("the {} id is empty or absent", what);
    if (id.size() > kLongestId) {
      return fmt::format("the {} id is longer than {} bytes", what, kLongestId);
    }
    bool refused = false, ascii = true;
    for (const char c : id) {
      refused |= (static_cast<unsigned char>(c) < 0x20) | (c == 0x7F) | (c == '"');
      ascii &= static_cast<unsigned char>(c) < 0x80;
    }
    if (!refused && (ascii || !has_control(id))) return "";
    return fmt::format(
        "the {} id holds a control character or a quote, which no .inter file can carry", what);
  }

  std::string check(const RawReview& review, Interaction& row) const {
    if (std::string reason = check_id(review.user, "user"); !reason.empty()) return reason;
    if (std::string reason = check_id(review.item, "item"); !reason.empty()) return reason;
    if (std::isnan(review.rating)) return "the rating is absent";
    if (!(review.rating >= rules_.scale.low && review.rating <= rules_.scale.high)) {
      return fmt::format("the rating {} lies outside {} to {} (--rating-scale)", review.rating,
                         rules_.scale.low, rules_.scale.high);
    }
    row.rating = static_cast<float>(review.rating) + 0.0f;  // -0 is 0, which is how it is written
    if (!std::isnan(review.time)) {
      const bool in_ms =
          rules_.unit == TimeUnit::milliseconds ||
          (rules_.unit == TimeUnit::automatic && std::abs(review.time) >= kMillisecondsFrom);
      const double time = in_ms ? review.time : review.time * 1000;
      if (!(time <= rules_.latest)) {
        return fmt::format("the time {} lies in the future (--time-unit s|ms?)", review.time);
      }
      if (!(time >= kEarliest)) {
        return fmt::format("the time {} lies before the year 1800 (--time-unit s|ms?)",
                           review.time);
      }
      row.time = std::llround(time);
    }
    if (review.text.size() > UINT32_MAX) return "the review text is longer than 4 GiB";
    return "";
  }

  Gathered& gathered_;
  ValueRules rules_;
  const NeedsText& needs_text_;
  const MappedInput* input_;
};

struct FileResult {
  FileReport report;
  std::vector<BadLine> bad;  // in file order
  std::shared_ptr<const MappedInput> input;
};

FileResult read_file(const std::string& path, const ReadRequest& request,
                     const PrepareOptions& options, const ValueRules& rules, int64_t tolerated,
                     ThreadPool& pool, std::vector<Gathered>& gathered, uint64_t& bytes_so_far) {
  InputStream stream(path);
  RecordChunks chunks(stream, kChunkBytes);
  const ReviewFormat format = detect_format(chunks.head(), request.columns, options.quotes, path);
  chunks.set_rule(format.rule);
  chunks.skip(format.header_bytes);
  FileResult result;
  result.input = stream.map();

  std::mutex mutex;
  std::vector<int64_t> lines_of;  // per chunk
  std::vector<ChunkBadLine> bad;
  int64_t kept = 0;
  uint64_t bytes = 0;
  bool stop = false;
  pool.parallel_for(pool.threads(), 1, [&](int64_t, int64_t, int worker) {
    Keeper keeper(gathered[static_cast<std::size_t>(worker)], rules, request.needs_text,
                  result.input.get());
    Chunk& chunk = keeper.chunk;
    ReviewParser parser(format, options.invalid_utf8);
    for (;;) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        kept += std::exchange(keeper.kept, 0);
        for (ChunkBadLine& line : keeper.bad) bad.push_back(std::move(line));
        keeper.bad.clear();
        // Chunks are handed out in order: all those before a bad one are, or were, in work, so the
        // first bad lines of the file are known whichever thread meets its own first.
        if (static_cast<int64_t>(bad.size()) > tolerated) stop = true;
        if (stop) return;
        try {
          if (!chunks.next(chunk)) stop = true;
        } catch (...) {
          stop = true;
          throw;
        }
        if (stop) return;
        lines_of.push_back(0);
        bytes += chunk.size;
        if (request.progress) request.progress(bytes_so_far + bytes);
      }
      const int64_t lines = parser.parse(chunk, keeper);
      const std::lock_guard<std::mutex> lock(mutex);
      lines_of[static_cast<std::size_t>(chunk.index)] = lines;
    }
  });

  bytes_so_far += bytes;
  std::vector<int64_t> first_line(lines_of.size() + 1, format.header_lines);
  for (std::size_t i = 0; i < lines_of.size(); ++i) first_line[i + 1] = first_line[i] + lines_of[i];
  std::sort(bad.begin(), bad.end(), [](const ChunkBadLine& a, const ChunkBadLine& b) {
    return std::pair(a.chunk, a.line) < std::pair(b.chunk, b.line);
  });
  for (ChunkBadLine& line : bad) {
    result.bad.push_back({path, first_line[static_cast<std::size_t>(line.chunk)] + line.line + 1,
                          std::move(line.reason)});
  }
  result.report = {stream.identity(), format.name, format.said, first_line.back(), kept, bytes};
  return result;
}

// Sorts the union of all threads' ids by bytes, and gives each thread the rank of its ids.
std::vector<std::string_view> rank_ids(const std::vector<Gathered>& gathered,
                                       IdTable Gathered::*table,
                                       std::vector<std::vector<uint32_t>>& rank_of) {
  IdTable all;
  std::vector<std::vector<uint32_t>> number_of(gathered.size());
  for (std::size_t t = 0; t < gathered.size(); ++t) {
    for (const std::string_view id : (gathered[t].*table).ids()) {
      number_of[t].push_back(all.intern(id));
    }
  }
  std::vector<uint32_t> order(all.ids().size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return all.ids()[a] < all.ids()[b]; });
  std::vector<uint32_t> rank(order.size());
  for (uint32_t r = 0; r < order.size(); ++r) rank[order[r]] = r;
  std::vector<std::string_view> sorted(order.size());
  rank_of.assign(gathered.size(), {});
  for (std::size_t t = 0; t < gathered.size(); ++t) {
    for (std::size_t i = 0; i < number_of[t].size(); ++i) {
      const uint32_t r = rank[number_of[t][i]];
      rank_of[t].push_back(r);
      sorted[r] = (gathered[t].*table).ids()[i];  // `all` goes, the threads' tables stay
    }
  }
  return sorted;
}

// The titles of all threads' items, by the items' ranks.
void take_titles(const std::vector<Gathered>& gathered,
                 const std::vector<std::vector<uint32_t>>& item_rank, Interactions& result) {
  for (std::size_t t = 0; t < gathered.size(); ++t) {
    for (std::size_t i = 0; i < gathered[t].titles.size(); ++i) {
      std::string title = clean_title(gathered[t].titles[i]);
      if (title.empty()) continue;
      if (result.titles.empty()) result.titles.resize(result.items.size());
      std::string& kept = result.titles[item_rank[t][i]];
      if (kept.empty() || title < kept) kept = std::move(title);
    }
  }
}

}  // namespace

void refuse_bad_line(const std::vector<BadLine>& bad, int64_t tolerated) {
  if (static_cast<int64_t>(bad.size()) <= tolerated) return;
  const BadLine& line = bad[static_cast<std::size_t>(tolerated)];
  throw Error(fmt::format(
      "{}:{}: {}{}", line.file, line.line, line.reason,
      tolerated > 0 ? fmt::format(" ({} bad line{} before it {} left out)", tolerated,
                                  tolerated == 1 ? "" : "s", tolerated == 1 ? "was" : "were")
                    : "; fix it, or leave bad lines out with --skip-bad N"));
}

Interactions read_reviews(const ReadRequest& request, const PrepareOptions& options,
                          ThreadPool& pool, ReadReport& report) {
  const std::vector<std::string>& paths = request.paths;
  const std::chrono::duration<double, std::milli> now =
      std::chrono::system_clock::now().time_since_epoch();
  constexpr double kDay = 86400e3;  // clocks and time zones differ
  const ValueRules rules{parse_rating_scale(options.rating_scale), options.time_unit,
                         now.count() + kDay};
  auto gathered = std::make_shared<std::vector<Gathered>>(pool.threads());
  Interactions result;
  uint64_t bytes = 0;
  for (const std::string& path : paths) {
    const int64_t left = request.tolerated - static_cast<int64_t>(report.bad.size());
    FileResult file = read_file(path, request, options, rules, left, pool, *gathered, bytes);
    report.bad.insert(report.bad.end(), file.bad.begin(), file.bad.end());
    refuse_bad_line(report.bad, request.tolerated);
    if (file.input) result.inputs.push_back(std::move(file.input));
    report.files.push_back(std::move(file.report));
  }

  std::vector<std::vector<uint32_t>> user_rank, item_rank;
  pool.parallel_for(2, 1, [&](int64_t side, int64_t, int) {
    if (side == 0) {
      result.users = rank_ids(*gathered, &Gathered::users, user_rank);
    } else {
      result.items = rank_ids(*gathered, &Gathered::items, item_rank);
    }
  });
  std::size_t rows = 0;
  for (const Gathered& part : *gathered) {
    for (const auto& block : part.blocks) rows += block.size();
    report.without_text += part.without_text;
    report.without_time += part.without_time;
  }
  if (rows == 0) throw Error(fmt::format("{}: holds no reviews", paths.front()));
  if (rows > INT32_MAX) throw Error(fmt::format("{}: more than 2^31 reviews", paths.front()));
  // Grouped by user, in any order within: one counting pass.
  std::vector<uint32_t> next(result.users.size() + 1, 0);
  for (std::size_t t = 0; t < gathered->size(); ++t) {
    for (auto& block : (*gathered)[t].blocks) {
      for (Interaction& row : block) {
        row.user = user_rank[t][row.user];
        row.item = item_rank[t][row.item];
        ++next[row.user + 1];
      }
    }
  }
  for (std::size_t u = 1; u < next.size(); ++u) next[u] += next[u - 1];
  const std::vector<uint32_t> first = next;
  result.rows.resize(rows);
  for (Gathered& part : *gathered) {
    for (auto& block : part.blocks) {
      for (const Interaction& row : block) result.rows[next[row.user]++] = row;
      block = {};
    }
  }
  // Within a user by item; equal pairs by content, so that no order of files or threads shows.
  pool.parallel_for(
      static_cast<int64_t>(result.users.size()), 1024, [&](int64_t begin, int64_t end, int) {
        for (int64_t u = begin; u < end; ++u) {
          std::sort(result.rows.begin() + first[u], result.rows.begin() + first[u + 1],
                    [](const Interaction& a, const Interaction& b) {
                      if (a.item != b.item) return a.item < b.item;
                      if (a.time != b.time) return a.when() < b.when();
                      if (a.rating != b.rating) return a.rating < b.rating;
                      return a.review() < b.review();
                    });
        }
      });
  take_titles(*gathered, item_rank, result);
  result.memory.push_back(std::move(gathered));
  return result;
}

}  // namespace cfaa
