#include "host/data/readers/read_reviews.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "host/core/error.h"
#include "host/core/terminal/printable.h"
#include "host/data/id_table.h"
#include "host/data/item_titles.h"
#include "host/data/readers/parquet_reviews.h"
#include "host/data/readers/record_chunks.h"
#include "host/data/readers/row_order.h"

namespace cfaa {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;  // stays in the L2 cache while parsed
constexpr double kMillisecondsFrom = 1e11;                   // 1973 in ms, the year 5138 in s
constexpr double kEarliest = -5364662400e3;                  // the year 1800 in ms

// The ids of all threads, by number, and the titles that came with the reviews.
struct AllIds {
  CompactIdTable users, items;
  std::vector<std::string_view> titles;  // of items; the last may lack
  ByteArena title_memory;
  std::mutex user_mutex, item_mutex;

  // Of several titles the first in byte order counts, so that no order of files or threads shows.
  void add_title(uint32_t item, std::string_view title) {
    if (title.empty()) return;
    if (titles.size() <= item) titles.resize(item + 1);
    if (titles[item].empty() || title < titles[item]) titles[item] = title_memory.store(title);
  }
};

// What one thread gathers over all files. Its tables of ids are small enough to be fast; when they
// are full, their ids go to the tables of all threads and its rows take the numbers there.
class Gathered {
 public:
  explicit Gathered(const std::shared_ptr<Spool>& spool)
      : texts(spool),
        allocator_(spool),
        users_(std::make_unique<IdTable>()),
        items_(std::make_unique<IdTable>()) {}

  ByteArena texts;
  std::vector<InteractionRows> blocks;
  int64_t without_text = 0, without_time = 0;

  void add(const RawReview& review, Interaction row, AllIds& all) {
    row.user = users_->intern(review.user);
    row.item = items_->intern(review.item);
    if (!review.title.empty()) add_title(row.item, review.title);
    without_text += review.text.empty();
    without_time += row.time == 0;
    if (blocks.empty() || blocks.back().size() == blocks.back().capacity()) {
      blocks.emplace_back(allocator_);
      blocks.back().reserve(blocks.size() <= kSmallBlocks ? kBlockRows : kLargeBlockRows);
    }
    blocks.back().push_back(row);
    if (users_->ids().size() + items_->ids().size() >= kOwnIds) settle(all);
  }

  // Gives the rows since the last time their numbers in the tables of all threads.
  void settle(AllIds& all) {
    std::vector<uint32_t> user, item;
    {
      const std::lock_guard<std::mutex> lock(all.user_mutex);
      for (const std::string_view id : users_->ids()) user.push_back(all.users.intern(id));
    }
    {
      const std::lock_guard<std::mutex> lock(all.item_mutex);
      for (const std::string_view id : items_->ids()) item.push_back(all.items.intern(id));
      for (std::size_t i = 0; i < titles_.size(); ++i) all.add_title(item[i], titles_[i]);
    }
    for (; settled_block_ < blocks.size(); ++settled_block_, settled_row_ = 0) {
      InteractionRows& block = blocks[settled_block_];
      for (; settled_row_ < block.size(); ++settled_row_) {
        block[settled_row_].user = user[block[settled_row_].user];
        block[settled_row_].item = item[block[settled_row_].item];
      }
      if (block.size() < block.capacity()) break;  // more will come
      if (allocator_.spool()) allocator_.spool()->rest(block.data());
    }
    users_ = std::make_unique<IdTable>();
    items_ = std::make_unique<IdTable>();
    titles_.clear();
    title_memory_ = ByteArena();
  }

 private:
  static constexpr std::size_t kOwnIds = std::size_t{1} << 18;  // up to 64 MiB of tables
  static constexpr std::size_t kSmallBlocks = 16, kBlockRows = 1 << 16, kLargeBlockRows = 1 << 20;

  void add_title(uint32_t item, std::string_view title) {
    if (titles_.size() <= item) titles_.resize(item + 1);
    if (titles_[item].empty() || title < titles_[item]) titles_[item] = title_memory_.store(title);
  }

  SpoolAllocator<Interaction> allocator_;
  std::unique_ptr<IdTable> users_, items_;  // since settle()
  std::vector<std::string_view> titles_;    // of these items; the last may lack
  ByteArena title_memory_;
  std::size_t settled_block_ = 0, settled_row_ = 0;  // the first row with numbers of its own
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
  Keeper(Gathered& gathered, AllIds& all, const ValueRules& rules, const NeedsText& needs_text,
         const MappedInput* input)
      : gathered_(gathered), all_(all), rules_(rules), needs_text_(needs_text), input_(input) {}

  Chunk chunk;  // in work
  int64_t kept = 0;
  std::vector<ChunkBadLine> bad;

  void accept(const RawReview& review, int64_t line) override {
    Interaction row;
    if (std::string reason = check(review, row); !reason.empty()) {
      reject(line, std::move(reason));
      return;
    }
    if (!needs_text_ || needs_text_(review)) {
      const std::string_view text = keep(review.text);
      row.text = text.data();
      row.text_bytes = static_cast<uint32_t>(text.size());
    }
    gathered_.add(review, row, all_);
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
  AllIds& all_;
  ValueRules rules_;
  const NeedsText& needs_text_;
  const MappedInput* input_;
};

struct FileResult {
  FileReport report;
  std::vector<BadLine> bad;  // in file order
  std::shared_ptr<const MappedInput> input;
};

// What all files of a domain are read with.
struct Reading {
  const ReadRequest& request;
  const PrepareOptions& options;
  ValueRules rules;
  ThreadPool& pool;
  std::vector<Gathered>& gathered;
  AllIds& all;
  uint64_t bytes = 0;  // of the files before
};

// A file cut into parts that threads take in order and parse apart.
struct Parts {
  std::shared_ptr<const MappedInput> input;  // where texts may stay; may be null
  int64_t header_lines = 0;
  // Fills the chunk, or for a table only its index, and says how many bytes it is of; none at the
  // end. One call at a time.
  std::function<std::optional<uint64_t>(Chunk& chunk)> next;
  // For one thread: hands the records of the keeper's chunk to it and returns how many lines it
  // has.
  std::function<std::function<int64_t(Keeper& keeper)>()> parser;
};

FileResult read_parts(const std::string& path, const Parts& parts, int64_t tolerated,
                      Reading& reading) {
  std::mutex mutex;
  std::vector<int64_t> lines_of;  // per part
  std::vector<ChunkBadLine> bad;
  int64_t kept = 0;
  uint64_t bytes = 0;
  bool stop = false;
  reading.pool.parallel_for(reading.pool.threads(), 1, [&](int64_t, int64_t, int worker) {
    Keeper keeper(reading.gathered[static_cast<std::size_t>(worker)], reading.all, reading.rules,
                  reading.request.needs_text, parts.input.get());
    Chunk& chunk = keeper.chunk;
    const auto parse = parts.parser();
    for (;;) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        kept += std::exchange(keeper.kept, 0);
        for (ChunkBadLine& line : keeper.bad) bad.push_back(std::move(line));
        keeper.bad.clear();
        // Parts are handed out in order: all those before a bad one are, or were, in work, so the
        // first bad lines of the file are known whichever thread meets its own first.
        if (static_cast<int64_t>(bad.size()) > tolerated) stop = true;
        if (stop) return;
        std::optional<uint64_t> size;
        try {
          size = parts.next(chunk);
        } catch (...) {
          stop = true;
          throw;
        }
        stop = !size;
        if (stop) return;
        lines_of.push_back(0);
        bytes += *size;
        if (reading.request.progress) reading.request.progress(reading.bytes + bytes);
      }
      const int64_t lines = parse(keeper);
      const std::lock_guard<std::mutex> lock(mutex);
      lines_of[static_cast<std::size_t>(chunk.index)] = lines;
    }
  });

  reading.bytes += bytes;
  std::vector<int64_t> first_line(lines_of.size() + 1, parts.header_lines);
  for (std::size_t i = 0; i < lines_of.size(); ++i) first_line[i + 1] = first_line[i] + lines_of[i];
  std::sort(bad.begin(), bad.end(), [](const ChunkBadLine& a, const ChunkBadLine& b) {
    return std::pair(a.chunk, a.line) < std::pair(b.chunk, b.line);
  });
  FileResult result;
  for (ChunkBadLine& line : bad) {
    result.bad.push_back({path, first_line[static_cast<std::size_t>(line.chunk)] + line.line + 1,
                          std::move(line.reason)});
  }
  result.input = parts.input;
  result.report.lines = first_line.back();
  result.report.interactions = kept;
  result.report.bytes = bytes;
  return result;
}

FileResult read_text_file(const std::string& path, int64_t tolerated, Reading& reading) {
  const PrepareOptions& options = reading.options;
  InputStream stream(path);
  RecordChunks chunks(stream, kChunkBytes);
  const ReviewFormat format =
      detect_format(chunks.head(), reading.request.columns, options.quotes, path);
  chunks.set_rule(format.rule);
  chunks.skip(format.header_bytes);
  Parts parts{stream.map(), format.header_lines};
  parts.next = [&](Chunk& chunk) {
    return chunks.next(chunk) ? std::optional<uint64_t>(chunk.size) : std::nullopt;
  };
  parts.parser = [&] {
    return [parser = std::make_shared<ReviewParser>(format, options.invalid_utf8)](Keeper& keeper) {
      return parser->parse(keeper.chunk, keeper);
    };
  };
  FileResult result = read_parts(path, parts, tolerated, reading);
  result.report.identity = stream.identity();
  result.report.format = format.name;
  result.report.columns = format.said;
  return result;
}

FileResult read_parquet_file(const std::string& path, int64_t tolerated, Reading& reading) {
  const ParquetReviews reviews(path, reading.request.columns, reading.options);
  int64_t next_group = 0;
  Parts parts;
  parts.next = [&](Chunk& chunk) -> std::optional<uint64_t> {
    if (next_group == reviews.groups()) return std::nullopt;
    chunk.index = next_group++;
    return reviews.bytes(chunk.index);
  };
  parts.parser = [&] {
    return [&](Keeper& keeper) { return reviews.parse(keeper.chunk.index, keeper); };
  };
  FileResult result = read_parts(path, parts, tolerated, reading);
  result.input = reviews.file();
  result.report.identity = reviews.identity();
  result.report.format = "Parquet";
  result.report.columns = reviews.columns();
  return result;
}

// The ids in the order of their bytes; `rank` gets the place there of each number.
std::vector<std::string_view> in_byte_order(const std::vector<std::string_view>& ids,
                                            std::vector<uint32_t>& rank) {
  std::vector<uint32_t> order(ids.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return ids[a] < ids[b]; });
  rank.resize(order.size());
  std::vector<std::string_view> sorted(order.size());
  for (uint32_t r = 0; r < order.size(); ++r) {
    rank[order[r]] = r;
    sorted[r] = ids[order[r]];
  }
  return sorted;
}

// Titles by the items' ranks; none where no item has one.
std::vector<std::string> titles_in_order(const std::vector<std::string_view>& titles,
                                         const std::vector<uint32_t>& rank) {
  std::vector<std::string> sorted;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    std::string title = clean_title(titles[i]);
    if (title.empty()) continue;
    if (sorted.empty()) sorted.resize(rank.size());
    sorted[rank[i]] = std::move(title);
  }
  return sorted;
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
  const auto gathered = std::make_shared<std::vector<Gathered>>();
  for (int t = 0; t < pool.threads(); ++t) gathered->emplace_back(request.spool);
  const auto all = std::make_shared<AllIds>();
  Reading reading{request,
                  options,
                  {parse_rating_scale(options.rating_scale), options.time_unit, now.count() + kDay},
                  pool,
                  *gathered,
                  *all};
  Interactions result;
  for (const std::string& path : paths) {
    const int64_t left = request.tolerated - static_cast<int64_t>(report.bad.size());
    FileResult file = is_parquet(path) ? read_parquet_file(path, left, reading)
                                       : read_text_file(path, left, reading);
    report.bad.insert(report.bad.end(), file.bad.begin(), file.bad.end());
    refuse_bad_line(report.bad, request.tolerated);
    if (file.input) result.inputs.push_back(std::move(file.input));
    report.files.push_back(std::move(file.report));
  }

  std::size_t count = 0;
  std::vector<InteractionRows> blocks;
  for (Gathered& part : *gathered) {
    part.settle(*all);
    report.without_text += part.without_text;
    report.without_time += part.without_time;
    for (InteractionRows& block : part.blocks) {
      count += block.size();
      blocks.push_back(std::move(block));
    }
    part.blocks.clear();
  }
  if (count == 0) throw Error(fmt::format("{}: holds no reviews", paths.front()));
  if (count > INT32_MAX) throw Error(fmt::format("{}: more than 2^31 reviews", paths.front()));
  std::vector<uint32_t> user_rank, item_rank;
  pool.parallel_for(2, 1, [&](int64_t side, int64_t, int) {
    CompactIdTable& table = side == 0 ? all->users : all->items;
    table.close();
    (side == 0 ? result.users : result.items) =
        in_byte_order(table.ids(), side == 0 ? user_rank : item_rank);
  });
  for (InteractionRows& block : blocks) {
    for (Interaction& row : block) {
      row.user = user_rank[row.user];
      row.item = item_rank[row.item];
    }
  }
  result.rows = in_row_order(std::move(blocks), result.users.size(), pool);
  result.titles = titles_in_order(all->titles, item_rank);
  result.memory.push_back(gathered);
  result.memory.push_back(all);
  return result;
}

}  // namespace cfaa
