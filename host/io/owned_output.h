#pragma once

// One rule for every command that writes: nothing that it did not write itself is replaced without
// --force. Two ways to know one's own work again:
//
//   - a single file by how it begins (the header line of a table): check_output;
//   - files written together by a record beside them: OutputRecord.
//
// Always free to be written: what is not there yet, an empty file, and streams ("-", devices,
// FIFOs). A symbolic link counts as the file it leads to. A directory is refused even with `force`.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cfaa {

// Error where a file is at `path` that does not begin with `beginning`, unless `force`. An empty
// `beginning` knows nothing again: every file that is there is foreign.
void check_output(const std::filesystem::path& path, std::string_view beginning, bool force);

// The files that a command wrote in one go: a small JSON file that holds the command's name and,
// for each file, its name, size and time of change. A file that has another size or time now was
// changed or replaced by somebody else, and is foreign again.
//
//   OutputRecord record(out / "export.files.json", "export");
//   record.claim({out / "users.npy", out / "users.tsv"}, force);   // refuses, or goes on
//   ...                                                            // writes them
//   record.complete();
//
// Killed in between, the claim stands, and the next run of the command replaces what is there.
class OutputRecord {
 public:
  // `path`: the record's own place, in the folder of the files or above it.
  OutputRecord(std::filesystem::path path, std::string command);

  // Error, naming it, where one of `files` is there and the record does not know it as it is; or
  // where another command's file is at the record's place. Before long work.
  void check(const std::vector<std::filesystem::path>& files, bool force);

  // check(), and notes that they are about to be written. Streams need no note, and where all are
  // streams no record is made.
  void claim(const std::vector<std::filesystem::path>& files, bool force);

  // They are all written: notes their sizes and times. A claimed file that is not there is dropped.
  void complete();

 private:
  struct Entry {
    std::string name;                // relative to the record's folder
    bool written = false;            // false: claimed only, whatever is there is ours
    int64_t bytes = 0, changed = 0;  // nanoseconds since 1970
  };

  void read(bool force);
  void write() const;
  bool owns(const std::filesystem::path& file) const;
  std::string name_of(const std::filesystem::path& file) const;

  std::filesystem::path path_;
  std::string command_;
  std::vector<Entry> entries_;
};

}  // namespace cfaa
