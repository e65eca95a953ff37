#pragma once

// A sparse matrix by rows, in host memory: who liked what, terms of items, neighbours of items.

#include <cstdint>
#include <span>
#include <vector>

namespace cfaa {

struct SparseRows {
  int64_t columns = 0;
  std::vector<int64_t> offset = {0};  // (rows + 1)
  std::vector<int32_t> column;        // of row r: offset[r] ... offset[r + 1] - 1, ascending
  std::vector<float> value;           // beside `column`

  int64_t rows() const { return static_cast<int64_t>(offset.size()) - 1; }
  int64_t entries() const { return static_cast<int64_t>(column.size()); }

  std::span<const int32_t> columns_of(int64_t row) const { return part(column, row); }
  std::span<const float> values_of(int64_t row) const { return part(value, row); }

 private:
  template <class T>
  std::span<const T> part(const std::vector<T>& all, int64_t row) const {
    const auto r = static_cast<std::size_t>(row);
    return std::span(all).subspan(static_cast<std::size_t>(offset[r]),
                                  static_cast<std::size_t>(offset[r + 1] - offset[r]));
  }
};

// One entry of a row under construction.
struct SparseEntry {
  int32_t column;
  float value;
};

// The rows one after the other; the entries of each are in ascending order of their columns.
SparseRows join_rows(int64_t columns, const std::vector<std::vector<SparseEntry>>& rows);

SparseRows transpose(const SparseRows& matrix);

}  // namespace cfaa
