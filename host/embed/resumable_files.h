#pragma once

// Files that grow together, window by window, and can be taken up again after a kill.
//
// While a run is under way, NAME.partial stands for each file and a journal tells how far they are.
// A window is done when its bytes are on disk in every file and then its line is in the journal, in
// this order; whatever lies behind the last line is cut off and made again. What there is of the
// window under way can be kept too, in a file of its own beside the journal. At the end the files
// are moved to their names and the journal goes. Killed at any moment, the next run resumes; the
// journal knows the settings of the run and refuses others.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/fields.h"

namespace cfaa {

class ResumableFiles {
 public:
  struct Plan {
    std::string journal;  // its path
    // Where the files go in the end. The last is the one that says that the set is whole: an old
    // one is removed before any other file is replaced. Empty files are not kept.
    std::vector<std::string> files;
    Fields settings;        // what must be equal to resume
    bool resumable = true;  // false: standard input, which cannot be read a second time
    bool fresh = false;     // drop what an earlier run has left
  };

  // Error naming the first setting that differs from the interrupted run's, a file that was taken
  // away, or another process that writes the same.
  explicit ResumableFiles(Plan plan);
  // What the next run can use is left; what it cannot is removed.
  ~ResumableFiles();
  ResumableFiles(const ResumableFiles&) = delete;
  ResumableFiles& operator=(const ResumableFiles&) = delete;

  // What was given to the interrupted run's last end_window() or save_window(); empty where there
  // is none.
  const Fields& state() const { return state_; }
  // The interrupted run had written everything: put_in_place() is all that is left.
  bool complete() const { return complete_; }

  const std::string& partial(std::size_t file) const { return paths_[file]; }
  uint64_t size(std::size_t file) const { return sizes_[file]; }
  void append(std::size_t file, const void* bytes, std::size_t count);
  void append(std::size_t file, std::string_view text) { append(file, text.data(), text.size()); }
  // A file that only served to make the others goes at the end.
  void drop(std::size_t file) { sizes_[file] = 0; }
  void overwrite(std::size_t file, uint64_t offset, std::string_view bytes);

  // Everything appended so far stays, whatever happens, and the next window begins.
  void end_window(const Fields& state);

  // Bytes of the window under way that the next run can use.
  void append_window(const void* bytes, std::size_t count) {
    append(plan_.files.size(), bytes, count);
  }
  std::vector<std::byte> window() const;  // all that were kept
  void drop_window() { sizes_.back() = 0; }
  // They stay, whatever happens.
  void save_window(const Fields& state);
  // Likewise, and nothing is to be added any more.
  void end(const Fields& state);
  // Moves the files to their names. After end(), or where complete().
  void put_in_place();

 private:
  void open_journal();
  void read_journal();
  void open_files();
  void write_line(const std::string& json);
  void put(int descriptor, const std::string& path, uint64_t offset, std::string_view bytes);
  void sync();
  void remove_all();
  [[noreturn]] void fail(const std::string& path, const char* what) const;

  Plan plan_;
  Fields state_;
  bool complete_ = false, placed_ = false;
  int journal_ = -1;
  uint64_t journal_size_ = 0;
  // Of the files and, last, of the window under way.
  std::vector<std::string> paths_;
  std::vector<int> descriptors_;
  std::vector<uint64_t> sizes_;
};

}  // namespace cfaa
