#include "host/embed/resumable_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "host/core/error.h"
#include "host/io/json_file.h"
#include "host/io/mapped_file.h"

namespace cfaa {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// A line of the journal: the hash of its JSON, a space, the JSON. A line cut off by a full disk or
// a lost page does not match its hash, and ends what counts.
std::string journal_line(const std::string& text) {
  return fmt::format("{:016x} {}\n", XXH3_64bits(text.data(), text.size()), text);
}

std::optional<json> parse_line(std::string_view line) {
  if (line.size() < 18 || line[16] != ' ') return std::nullopt;
  uint64_t hash = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + 16, hash, 16);
  const std::string_view text = line.substr(17);
  if (failure != std::errc() || end != line.data() + 16 ||
      hash != XXH3_64bits(text.data(), text.size())) {
    return std::nullopt;
  }
  return parse_json(text);
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void sync_folder(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace

ResumableFiles::ResumableFiles(Plan plan) : plan_(std::move(plan)) {
  for (const std::string& file : plan_.files) paths_.push_back(file + ".partial");
  paths_.push_back(fs::path(plan_.journal).replace_extension(".window").string());
  sizes_.assign(paths_.size(), 0);
  try {
    open_journal();
    if (!plan_.fresh) read_journal();
    if (!complete_) open_files();
  } catch (...) {
    // The destructor does not run: nothing on disk is touched.
    for (const int descriptor : descriptors_) ::close(descriptor);
    if (journal_ >= 0) ::close(journal_);
    throw;
  }
}

ResumableFiles::~ResumableFiles() {
  const bool useful = plan_.resumable && !state_.empty();
  if (!placed_ && !useful) remove_all();
  for (const int descriptor : descriptors_) ::close(descriptor);
  if (journal_ >= 0) ::close(journal_);
}

void ResumableFiles::remove_all() {
  for (const std::string& path : paths_) ::unlink(path.c_str());
  ::unlink(plan_.journal.c_str());
}

void ResumableFiles::fail(const std::string& path, const char* what) const {
  const int reason = errno;
  const bool full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  throw Error(fmt::format(
      "{}: {}: {}{}", path, what, std::strerror(reason),
      !full ? ""
      : plan_.resumable
          ? "; free some room and run the same command again: it resumes where it stopped"
          : "; free some room and run the command again"));
}

// The journal is also the lock: one process at a time writes these files.
void ResumableFiles::open_journal() {
  for (;;) {
    journal_ = ::open(plan_.journal.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (journal_ < 0) fail(plan_.journal, "cannot be written");
    if (::flock(journal_, LOCK_EX | LOCK_NB) != 0) {
      throw Error(fmt::format("{}: another run is writing these files; wait for it, or end it",
                              plan_.journal));
    }
    // The run that held the lock may have removed the file since it was opened here.
    struct stat held {
    }, named{};
    if (::fstat(journal_, &held) == 0 && ::stat(plan_.journal.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
      return;
    }
    ::close(std::exchange(journal_, -1));
  }
}

void ResumableFiles::read_journal() {
  const MappedFile file(plan_.journal);
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  std::optional<Fields> settings;
  json last;
  while (true) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    const std::optional<json> line = parse_line(rest.substr(0, end));
    if (!line || !line->is_object()) break;
    rest.remove_prefix(end + 1);
    journal_size_ += end + 1;
    if (!settings) {
      settings = fields_of(*line);
      if (!settings) break;
    } else {
      last = *line;
    }
  }
  if (last.is_null()) {  // nothing was done yet
    journal_size_ = 0;
    return;
  }
  if (const std::string what = setting_difference(*settings, plan_.settings); !what.empty()) {
    throw Error(
        fmt::format("{}: the interrupted run had {}; resume with the same input, model and "
                    "settings, or start over with --fresh",
                    plan_.journal, what));
  }
  const auto sizes = field<std::vector<uint64_t>>(last, "sizes", {}, plan_.journal);
  // Version 0.1.0 kept nothing of the window under way.
  if (sizes.size() != sizes_.size() && sizes.size() != plan_.files.size()) {
    throw Error(plan_.journal + ": is not what embed writes; start over with --fresh");
  }
  state_ = fields_of(last.value("state", json())).value_or(Fields());
  complete_ = field<bool>(last, "complete", false, plan_.journal);
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

void ResumableFiles::open_files() {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const std::string& path = paths_[i];
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) fail(path, "cannot be written");
    descriptors_.push_back(descriptor);
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) fail(path, "cannot be read");
    const bool short_of = static_cast<uint64_t>(status.st_size) < sizes_[i];
    if (short_of && i == plan_.files.size()) {
      drop_window();  // it is encoded again
    } else if (short_of) {
      throw Error(
          fmt::format("{}: is shorter than {} says; start over with --fresh", path, plan_.journal));
    }
    if (::ftruncate(descriptor, static_cast<off_t>(sizes_[i])) != 0) fail(path, "cannot be cut");
  }
  if (::ftruncate(journal_, static_cast<off_t>(journal_size_)) != 0) {
    fail(plan_.journal, "cannot be cut");
  }
  if (journal_size_ == 0 && plan_.resumable) write_line(to_json(plan_.settings).dump());
  sync_folder(plan_.journal);
}

void ResumableFiles::put(int descriptor, const std::string& path, uint64_t offset,
                         std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done =
        ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(path, "cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
}

void ResumableFiles::append(std::size_t file, const void* bytes, std::size_t count) {
  put(descriptors_[file], partial(file), sizes_[file], {static_cast<const char*>(bytes), count});
  sizes_[file] += count;
}

void ResumableFiles::overwrite(std::size_t file, uint64_t offset, std::string_view bytes) {
  CFAA_ASSERT(offset + bytes.size() <= sizes_[file]);
  put(descriptors_[file], partial(file), offset, bytes);
}

void ResumableFiles::write_line(const std::string& json) {
  const std::string text = journal_line(json);
  put(journal_, plan_.journal, journal_size_, text);
  if (::fdatasync(journal_) != 0) fail(plan_.journal, "cannot be flushed to the disk");
  journal_size_ += text.size();
}

void ResumableFiles::sync() {
  for (std::size_t i = 0; i < descriptors_.size(); ++i) {
    if (::fdatasync(descriptors_[i]) != 0) fail(partial(i), "cannot be flushed to the disk");
  }
}

std::vector<std::byte> ResumableFiles::window() const {
  const MappedFile file(paths_.back());
  const auto bytes = file.bytes().first(sizes_.back());
  return {bytes.begin(), bytes.end()};
}

void ResumableFiles::end_window(const Fields& state) {
  // The line says that nothing is kept of the next window, whose bytes then overwrite the old ones.
  drop_window();
  save_window(state);
}

void ResumableFiles::save_window(const Fields& state) {
  if (!plan_.resumable) return;
  sync();
  write_line(json({{"sizes", sizes_}, {"state", to_json(state)}}).dump());
  state_ = state;
}

void ResumableFiles::end(const Fields& state) {
  sync();
  if (plan_.resumable) {
    write_line(json({{"sizes", sizes_}, {"state", to_json(state)}, {"complete", true}}).dump());
  }
  state_ = state;
  complete_ = true;
}

void ResumableFiles::put_in_place() {
  CFAA_ASSERT(complete_);
  const std::size_t last = plan_.files.size() - 1;
  const auto exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  if (last > 0 && exists(partial(last))) {
    ::unlink(plan_.files[last].c_str());
    sync_folder(plan_.journal);
  }
  for (std::size_t i = 0; i < plan_.files.size(); ++i) {
    const std::string from = partial(i);
    if (!exists(from)) continue;  // moved by the run that was killed here
    if (sizes_[i] == 0) {
      ::unlink(plan_.files[i].c_str());
      ::unlink(from.c_str());
    } else if (::rename(from.c_str(), plan_.files[i].c_str()) != 0) {
      fail(plan_.files[i], "cannot be put in place");
    }
  }
  sync_folder(plan_.journal);
  ::unlink(paths_.back().c_str());
  ::unlink(plan_.journal.c_str());
  placed_ = true;
}

}  // namespace cfaa
