#include "host/eval/user_metrics_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "host/core/error.h"
#include "host/io/atomic_file.h"

namespace cfaa {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t begin = 0;
  for (std::size_t tab = line.find('\t'); tab != std::string::npos; tab = line.find('\t', begin)) {
    cells.push_back(line.substr(begin, tab - begin));
    begin = tab + 1;
  }
  cells.push_back(line.substr(begin));
  return cells;
}

}  // namespace

std::string metric_key(std::size_t metric, int64_t k) {
  return fmt::format("{}@{}", kMetricNames[metric], k);
}

void write_user_metrics(const std::string& path, const UserMetrics& metrics, const IdList& users) {
  AtomicFile file(path);
  std::string line = kUserMetricsHeader;
  for (const int64_t k : metrics.ks) {
    for (std::size_t m = 0; m < kUserMetrics; ++m) line += "\t" + metric_key(m, k);
  }
  file.write(line + "\n");
  const std::size_t width = metrics.ks.size() * kUserMetrics;
  for (std::size_t u = 0; u < metrics.user.size(); ++u) {
    line = fmt::format("{}\t{}", users[metrics.user[u]], metrics.positives[u]);
    for (std::size_t i = 0; i < width; ++i) {
      line += fmt::format("\t{}", metrics.value[u * width + i]);
    }
    file.write(line + "\n");
  }
  file.commit();
}

UserTable read_user_metrics(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line)) throw Error(path + ": cannot be read, or is empty");
  UserTable table;
  table.columns = cells_of(line);
  if (table.columns.size() < 3 || table.columns[0] != "user_id" ||
      table.columns[1] != "positives") {
    throw Error(path + ": line 1: is not the header that evaluate --per-user writes");
  }
  table.columns.erase(table.columns.begin(), table.columns.begin() + 2);
  for (int64_t number = 2; std::getline(file, line); ++number) {
    const std::vector<std::string> cells = cells_of(line);
    std::vector<double> values;
    for (std::size_t i = 2; i < cells.size(); ++i) {
      double value = 0;
      const char* end = cells[i].data() + cells[i].size();
      if (std::from_chars(cells[i].data(), end, value).ptr != end || cells[i].empty()) break;
      values.push_back(value);
    }
    if (values.size() != table.columns.size()) {
      throw Error(fmt::format("{}: line {}: does not have a user, their positives and {} numbers",
                              path, number, table.columns.size()));
    }
    table.value[cells[0]] = std::move(values);
  }
  return table;
}

std::map<std::string, double> means_by_user(std::span<const UserTable> tables,
                                            const std::string& metric) {
  std::map<std::string, double> means;
  for (const UserTable& table : tables) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), metric);
    if (found == table.columns.end()) return {};
    const auto column = static_cast<std::size_t>(found - table.columns.begin());
    for (const auto& [user, value] : table.value) {
      means[user] += value[column] / static_cast<double>(tables.size());
    }
  }
  return means;
}

}  // namespace cfaa
