#include "host/signals/sparse_rows.h"

namespace cfaa {

SparseRows join_rows(int64_t columns, const std::vector<std::vector<SparseEntry>>& rows) {
  SparseRows joined;
  joined.columns = columns;
  joined.offset.reserve(rows.size() + 1);
  std::size_t entries = 0;
  for (const auto& row : rows) {
    entries += row.size();
    joined.offset.push_back(static_cast<int64_t>(entries));
  }
  joined.column.reserve(entries);
  joined.value.reserve(entries);
  for (const auto& row : rows) {
    for (const SparseEntry& entry : row) {
      joined.column.push_back(entry.column);
      joined.value.push_back(entry.value);
    }
  }
  return joined;
}

SparseRows transpose(const SparseRows& matrix) {
  SparseRows turned;
  turned.columns = matrix.rows();
  turned.offset.assign(static_cast<std::size_t>(matrix.columns) + 1, 0);
  for (const int32_t column : matrix.column) ++turned.offset[static_cast<std::size_t>(column) + 1];
  for (std::size_t c = 1; c < turned.offset.size(); ++c) turned.offset[c] += turned.offset[c - 1];
  turned.column.resize(matrix.column.size());
  turned.value.resize(matrix.value.size());
  std::vector<int64_t> next(turned.offset.begin(), turned.offset.end() - 1);
  for (int64_t row = 0; row < matrix.rows(); ++row) {
    const auto columns = matrix.columns_of(row);
    const auto values = matrix.values_of(row);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(columns[e])]++);
      turned.column[at] = static_cast<int32_t>(row);
      turned.value[at] = values[e];
    }
  }
  return turned;
}

}  // namespace cfaa
