#include "host/io/owned_output.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "host/core/error.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Stamp {
  int64_t bytes, changed;
  bool operator==(const Stamp&) const = default;
};

std::optional<Stamp> stamp_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Stamp{status.st_size, status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec};
}

// Whether nothing that anybody could miss is at `path`. Error where it is a directory.
bool is_free(const fs::path& path) {
  if (is_stream(path)) return true;
  if (fs::is_directory(path)) {
    throw Error(path.string() + ": is a directory; choose another name for the output");
  }
  const std::optional<Stamp> stamp = stamp_of(path);
  return !stamp || stamp->bytes == 0;
}

[[noreturn]] void refuse(const fs::path& path) {
  throw Error(
      fmt::format("{}: is there already and was not written by this command, or was changed "
                  "since; choose another name, or replace it with --force",
                  path.string()));
}

}  // namespace

void check_output(const fs::path& path, std::string_view beginning, bool force) {
  if (is_free(path) || force) return;
  std::string found(beginning.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(found.data(), static_cast<std::streamsize>(found.size()));
  if (beginning.empty() || !file || found != beginning) refuse(path);
}

OutputRecord::OutputRecord(fs::path path, std::string command)
    : path_(std::move(path)), command_(std::move(command)) {}

std::string OutputRecord::name_of(const fs::path& file) const {
  return fs::absolute(file).lexically_relative(fs::absolute(path_).parent_path()).string();
}

void OutputRecord::read(bool force) {
  entries_.clear();
  if (is_free(path_)) return;
  try {
    const json record = read_json_object(path_);
    if (record.at("written_by") != command_) throw Error("another command's");
    for (const auto& [name, fields] : record.at("files").items()) {
      Entry entry{name};
      entry.written = !fields.is_null();
      if (entry.written) {
        entry.bytes = fields.at("bytes");
        entry.changed = fields.at("changed");
      }
      entries_.push_back(entry);
    }
  } catch (const std::exception&) {  // no record of ours, so a file like any other
    entries_.clear();
    if (!force) refuse(path_);
  }
}

bool OutputRecord::owns(const fs::path& file) const {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& e) { return e.name == name_of(file); });
  if (entry == entries_.end()) return false;
  return !entry->written || stamp_of(file) == Stamp{entry->bytes, entry->changed};
}

void OutputRecord::check(const std::vector<fs::path>& files, bool force) {
  read(force);
  for (const fs::path& file : files) {
    if (!is_free(file) && !force && !owns(file)) refuse(file);
  }
}

void OutputRecord::claim(const std::vector<fs::path>& files, bool force) {
  check(files, force);
  for (const fs::path& file : files) {
    if (is_stream(file)) continue;
    std::erase_if(entries_, [&](const Entry& entry) { return entry.name == name_of(file); });
    entries_.push_back({name_of(file)});
  }
  if (!entries_.empty()) write();
}

void OutputRecord::complete() {
  if (entries_.empty()) return;
  std::vector<Entry> present;
  for (Entry& entry : entries_) {
    const std::optional<Stamp> stamp = stamp_of(path_.parent_path() / entry.name);
    if (!stamp) continue;
    if (!entry.written) entry = {entry.name, true, stamp->bytes, stamp->changed};
    present.push_back(entry);
  }
  entries_ = std::move(present);
  write();
}

void OutputRecord::write() const {
  json files = json::object();
  for (const Entry& entry : entries_) {
    files[entry.name] =
        entry.written ? json{{"bytes", entry.bytes}, {"changed", entry.changed}} : json();
  }
  write_file(path_.string(), json{{"written_by", command_}, {"files", files}}.dump(2) + "\n");
}

}  // namespace cfaa
