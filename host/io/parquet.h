#pragma once

// Parquet files, by Arrow, where the build has it (-DCFAA_ARROW=ON). Arrow's headers are seen by
// parquet.cpp alone; in a build without, opening or writing one is an Error that says so.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cfaa {

bool has_parquet();  // whether this build reads and writes them
// Error that names `path` and says what to do where it does not.
void require_parquet(const std::string& path);

// By its first bytes; false of what is no regular file, such as a pipe.
bool is_parquet(const std::string& path);

// Some rows of a file, in columns.
class ParquetRows {
 public:
  virtual ~ParquetRows() = default;
  virtual int64_t count() const = 0;
  // A string as it stands, a whole number as its decimal text, "" where there is none. The view
  // lives as long as the rows and `storage`.
  virtual std::string_view text(std::size_t column, int64_t row, std::string& storage) const = 0;
  // A number, also of a string that spells one; of a timestamp or a date the seconds since 1970;
  // NaN where there is none.
  virtual double number(std::size_t column, int64_t row) const = 0;
};

class ParquetReader {
 public:
  // Error that names the file where it does not read.
  explicit ParquetReader(const std::string& path);
  ~ParquetReader();
  ParquetReader(ParquetReader&&) noexcept;

  std::vector<std::string> columns() const;           // those that hold text, numbers or times
  bool holds_times(const std::string& column) const;  // timestamps or dates, which know their unit
  int64_t groups() const;                             // parts that are read apart
  int64_t rows() const;
  uint64_t bytes(int64_t group) const;  // as they are in the file

  // Hands out the rows of a group, a part at a time, with the columns that are named, in that
  // order; "" is a column that is always empty. Any thread.
  void read(int64_t group, const std::vector<std::string>& columns,
            const std::function<void(const ParquetRows&)>& take) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One column of a table: ids, or rows of `width` numbers.
struct ParquetColumn {
  std::string name;
  std::function<std::string_view(int64_t row)> text;  // of a column of strings
  const float* vectors = nullptr;                     // (rows, width), of a column of vectors
  int64_t width = 0;
};

// A whole file at once, that appears whole or not at all.
void write_parquet(const std::string& path, int64_t rows, const std::vector<ParquetColumn>& table);

}  // namespace cfaa
