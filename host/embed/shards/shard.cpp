#include "host/embed/shards/shard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "host/core/error.h"
#include "host/core/version.h"
#include "host/io/content_hash.h"
#include "host/io/json_file.h"

namespace cfaa {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int64_t kMost = 99999;  // shards, so that their names are in order

// What a shard need not share with the others: its part of the input, and the windows' size, which
// follows from the machine and decides about no bit on a CPU.
Fields shared_settings(Fields settings) {
  for (const char* own : {"shard", "input", "window", "rows", "row_texts"}) settings.erase(own);
  return settings;
}

[[noreturn]] void make_again(const fs::path& file, const Shard& shard, const std::string& why) {
  throw Error(fmt::format("{}: {}; make that shard again with --shard {} --fresh", file.string(),
                          why, shard.text()));
}

std::vector<std::string> texts_of(const std::vector<Shard>& shards) {
  constexpr std::size_t kShown = 20;
  std::vector<std::string> texts;
  for (const Shard& shard : shards) {
    if (texts.size() == kShown) {
      texts.push_back("...");
      break;
    }
    texts.push_back(shard.text());
  }
  return texts;
}

// Of a shard that is there whole, by its .json.
ShardDescription read_shard(const fs::path& folder, const Shard& shard) {
  const fs::path path = folder / (shard.name() + ".json");
  const json object = read_json_object(path);
  const std::optional<Fields> settings = fields_of(object.value("settings", json())),
                              counts = fields_of(object.value("counts", json()));
  const json files = object.value("files", json());
  if (object.value("format", json()) != 1 || !settings || !counts || !files.is_object()) {
    make_again(path, shard, "is not what embed writes");
  }
  ShardDescription description{.shard = shard,
                               .settings = *settings,
                               .bytes = field<uint64_t>(object, "bytes", 0, path),
                               .rows = field<int64_t>(object, "rows", 0, path),
                               .width = field<int64_t>(object, "width", 0, path),
                               .counts = EmbedCounts::of(*counts),
                               .files = {}};
  for (const auto& [end, file] : files.items()) {
    if (!file.is_object()) make_again(path, shard, "is not what embed writes");
    description.files.push_back({end, field<uint64_t>(file, "bytes", 0, path),
                                 field<std::string>(file, "xxh3_128", "", path)});
  }
  return description;
}

}  // namespace

uint64_t Shard::border(int64_t at, uint64_t all) const {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(all) * static_cast<uint64_t>(at) /
                               static_cast<uint64_t>(count));
}

std::string Shard::text() const {
  return fmt::format("{}/{}", index, count);
}

std::string Shard::name() const {
  return fmt::format("{:05}-of-{:05}", index, count);
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  const bool slash = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  const auto count = slash ? std::from_chars(index.ptr + 1, end, shard.count) : index;
  if (!slash || count.ec != std::errc() || count.ptr != end || shard.count < 1 ||
      shard.count > kMost || shard.index < 0 || shard.index >= shard.count) {
    throw Error(fmt::format(
        "--shard {}: write it as 0/8, 1/8 and so on up to 7/8 for eight shards; at most {} shards",
        text, kMost));
  }
  return shard;
}

ShardDescription describe_shard(const Shard& shard, const Fields& settings, uint64_t bytes,
                                const EmbedReport& report, const ResumableFiles& files,
                                const std::vector<std::string>& ends) {
  ShardDescription description{.shard = shard,
                               .settings = settings,
                               .bytes = bytes,
                               .rows = report.rows,
                               .width = report.width,
                               .counts = report.counts,
                               .files = {}};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (files.size(i) == 0) continue;
    description.files.push_back(
        {ends[i], files.size(i), content_hash(MappedFile(files.partial(i)))});
  }
  return description;
}

std::string to_text(const ShardDescription& description) {
  json files = json::object();
  for (const ShardDescription::File& file : description.files) {
    files[file.end] = {{"bytes", file.bytes}, {"xxh3_128", file.xxh3_128}};
  }
  const json object = {{"format", 1},
                       {"program", std::string("cfaa_gpu ") + version()},
                       {"settings", to_json(description.settings)},
                       {"bytes", description.bytes},
                       {"rows", description.rows},
                       {"width", description.width},
                       {"counts", to_json(description.counts.fields())},
                       {"files", files}};
  return object.dump(2) + "\n";
}

bool shard_is_there(const fs::path& folder, const Shard& shard, const Fields& settings,
                    EmbedReport& report) {
  if (fs::exists(folder / (shard.name() + ".journal")) ||
      !fs::exists(folder / (shard.name() + ".json"))) {
    return false;
  }
  const ShardDescription there = read_shard(folder, shard);
  if (const std::string what = setting_difference(there.settings, settings); !what.empty()) {
    throw Error(fmt::format("{}: the shard there has {}; --fresh replaces it",
                            (folder / (shard.name() + ".json")).string(), what));
  }
  for (const ShardDescription::File& file : there.files) {
    std::error_code none;
    if (fs::file_size(folder / (shard.name() + file.end), none) != file.bytes) return false;
  }
  report.counts = there.counts;
  report.rows = there.rows;
  report.width = there.width;
  report.was_there = true;
  return true;
}

std::vector<ShardDescription> read_shards(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(fmt::format("{}: there are no shards to join; --shard 0/8 and so on make them",
                            folder.string()));
  }
  std::set<int64_t> counts;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::size_t of = name.find("-of-");
    if (!name.ends_with(".json") || of == std::string::npos) continue;
    int64_t count = 0;
    std::from_chars(name.data() + of + 4, name.data() + name.size(), count);
    if (count >= 1 && count <= kMost) counts.insert(count);
  }
  if (counts.size() > 1) {
    throw Error(fmt::format("{}: holds shards of {} and of {}; remove those that do not count",
                            folder.string(), *counts.begin(), *counts.rbegin()));
  }
  if (counts.empty()) throw Error(folder.string() + ": holds no shard that is done");

  std::vector<ShardDescription> shards;
  std::vector<Shard> missing, interrupted;
  for (Shard shard{0, *counts.begin()}; shard.index < shard.count; ++shard.index) {
    if (fs::exists(folder / (shard.name() + ".journal"))) {
      interrupted.push_back(shard);
    } else if (!fs::exists(folder / (shard.name() + ".json"))) {
      missing.push_back(shard);
    } else {
      shards.push_back(read_shard(folder, shard));
    }
  }
  if (!missing.empty() || !interrupted.empty()) {
    std::string what;
    if (!missing.empty()) what = fmt::format(" missing: {}", fmt::join(texts_of(missing), ", "));
    if (!interrupted.empty()) {
      what += fmt::format("{} under way or interrupted: {}", what.empty() ? "" : ";",
                          fmt::join(texts_of(interrupted), ", "));
    }
    throw Error(fmt::format("{}: {} of {} shards are not done;{}; run embed with these --shard",
                            folder.string(), missing.size() + interrupted.size(), *counts.begin(),
                            what));
  }
  const ShardDescription& first = shards.front();
  for (const ShardDescription& shard : shards) {
    std::string what =
        setting_difference(shared_settings(first.settings), shared_settings(shard.settings));
    if (what.empty() && (shard.bytes != first.bytes || shard.width != first.width)) {
      what = fmt::format("{} bytes of texts, this one has {}", first.bytes, shard.bytes);
    }
    if (what.empty()) continue;
    throw Error(fmt::format(
        "{}: does not belong to {}, which has {}; make one of them again "
        "with --fresh",
        (folder / (shard.shard.name() + ".json")).string(), first.shard.name() + ".json", what));
  }
  return shards;
}

EmbedReport total_of(const std::vector<ShardDescription>& shards) {
  EmbedReport report;
  report.width = shards.front().width;
  Fields counts;
  for (const ShardDescription& shard : shards) {
    report.rows += shard.rows;
    for (const auto& [name, value] : shard.counts.fields()) {
      counts[name] = whole_field(counts, name) + std::get<int64_t>(value);
    }
  }
  report.counts = EmbedCounts::of(counts);
  return report;
}

void add_to_numbers(std::string_view lines, const std::vector<int64_t>& columns, std::string& out) {
  while (!lines.empty()) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      int64_t number = 0;
      const auto read = std::from_chars(lines.data(), lines.data() + lines.size(), number);
      lines.remove_prefix(static_cast<std::size_t>(read.ptr - lines.data()));
      if (c > 0) out += '\t';
      out += std::to_string(number + columns[c]);
      if (c + 1 < columns.size() && lines.starts_with('\t')) lines.remove_prefix(1);
    }
    const std::size_t length = std::min(lines.find('\n'), lines.size() - 1) + 1;
    out += lines.substr(0, length);
    lines.remove_prefix(length);
  }
}

ShardFile::ShardFile(const fs::path& folder, const ShardDescription& shard,
                     const std::string& end) {
  const auto described =
      std::find_if(shard.files.begin(), shard.files.end(),
                   [&](const ShardDescription::File& file) { return file.end == end; });
  if (described == shard.files.end()) return;
  const fs::path path = folder / (shard.shard.name() + end);
  if (!fs::exists(path)) make_again(path, shard.shard, "is missing");
  file_ = MappedFile(path.string());
  if (file_.bytes().size() != described->bytes || content_hash(file_) != described->xxh3_128) {
    make_again(path, shard.shard, "is not what the shard's .json tells of: it was changed or cut");
  }
}

}  // namespace cfaa
