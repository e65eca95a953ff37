#include "host/data/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "host/data/review_text.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr Split kSplits[] = {Split::train, Split::valid, Split::test};

SplitStatistics count_split(const Domain& domain, Split split, const std::vector<char>& known_users,
                            const std::vector<char>& known_items) {
  const SplitRows& rows = domain.rows(split);
  SplitStatistics result;
  std::vector<char> user(known_users.size(), 0), item(known_items.size(), 0);
  for (int64_t i = 0; i < rows.size(); ++i) {
    user[rows.user[i]] = 1;
    item[rows.item[i]] = 1;
    result.positives += rows.label[i] > 0;
  }
  result.interactions = rows.size();
  for (std::size_t u = 0; u < user.size(); ++u) {
    result.users += user[u];
    result.cold_users += user[u] && !known_users[u];
  }
  for (std::size_t i = 0; i < item.size(); ++i) {
    result.items += item[i];
    result.cold_items += item[i] && !known_items[i];
  }
  return result;
}

void measure_texts(const Domain& domain, DomainStatistics& result) {
  const ReviewTextFile texts(domain.text_path(Split::train));
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < texts.count(); ++i) {
    const auto length = static_cast<int64_t>(texts.text(i).size());
    if (length > 0) lengths.push_back(length);
  }
  result.reviews_with_text = static_cast<int64_t>(lengths.size());
  if (lengths.empty()) return;
  std::sort(lengths.begin(), lengths.end());
  result.review_bytes_mean =
      std::accumulate(lengths.begin(), lengths.end(), 0.0) / static_cast<double>(lengths.size());
  result.review_bytes_median = lengths[lengths.size() / 2];
  result.review_bytes_longest = lengths.back();
}

DomainStatistics measure(const Domain& domain) {
  DomainStatistics result;
  result.name = domain.name;
  result.users = domain.users.size();
  result.items = domain.items.size();
  std::vector<char> known_users(static_cast<std::size_t>(result.users), 0);
  std::vector<char> known_items(static_cast<std::size_t>(result.items), 0);
  for (const int32_t u : domain.train.user) known_users[u] = 1;
  for (const int32_t i : domain.train.item) known_items[i] = 1;
  result.item_interactions.assign(static_cast<std::size_t>(result.items), 0);
  for (const Split split : kSplits) {
    SplitStatistics& part = result.splits[static_cast<std::size_t>(split)];
    part = count_split(domain, split, known_users, known_items);
    result.interactions += part.interactions;
    result.positives += part.positives;
    for (const int32_t i : domain.rows(split).item) ++result.item_interactions[i];
  }
  if (result.users > 0 && result.items > 0) {
    result.density = static_cast<double>(result.interactions) /
                     (static_cast<double>(result.users) * static_cast<double>(result.items));
  }
  auto& tail = result.item_interactions;
  std::sort(tail.rbegin(), tail.rend());
  if (result.interactions > 0) {
    const auto all = static_cast<double>(result.interactions);
    const std::size_t tenth = std::max<std::size_t>(1, tail.size() / 10);
    result.top_item_share = static_cast<double>(tail.front()) / all;
    result.top_tenth_share =
        std::accumulate(tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(tenth), 0.0) / all;
  }
  measure_texts(domain, result);
  return result;
}

int64_t common_ids(const IdList& a, const IdList& b) {
  int64_t common = 0;
  for (int64_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int order = a[i].compare(b[j]);
    common += order == 0;
    i += order <= 0;
    j += order >= 0;
  }
  return common;
}

json to_json(const DomainStatistics& d) {
  json splits;
  for (const Split split : kSplits) {
    const SplitStatistics& s = d.splits[static_cast<std::size_t>(split)];
    splits[split_name(split)] = {{"interactions", s.interactions},
                                 {"positives", s.positives},
                                 {"users", s.users},
                                 {"items", s.items},
                                 {"cold_users", s.cold_users},
                                 {"cold_items", s.cold_items}};
  }
  return {{"users", d.users},
          {"items", d.items},
          {"interactions", d.interactions},
          {"density", d.density},
          {"positives", d.positives},
          {"splits", std::move(splits)},
          {"training_reviews_with_text", d.reviews_with_text},
          {"review_bytes",
           {{"mean", d.review_bytes_mean},
            {"median", d.review_bytes_median},
            {"longest", d.review_bytes_longest}}},
          {"top_item_share", d.top_item_share},
          {"top_tenth_share", d.top_tenth_share}};
}

}  // namespace

Statistics compute_statistics(const Dataset& data) {
  return {measure(data.source), measure(data.target),
          common_ids(data.source.users, data.target.users),
          common_ids(data.source.items, data.target.items)};
}

json to_json(const Statistics& statistics) {
  return {{"source", to_json(statistics.source)},
          {"target", to_json(statistics.target)},
          {"overlap", {{"users", statistics.common_users}, {"items", statistics.common_items}}}};
}

std::vector<std::string> long_tail_plot(const std::vector<int64_t>& values, int width, int height) {
  std::vector<std::string> lines;
  if (values.empty() || values.front() <= 0) return lines;
  const double most = std::log10(static_cast<double>(values.front()) + 1);
  const auto count = static_cast<double>(values.size());
  for (int row = height; row >= 1; --row) {
    const double above = most * (row - 1) / height, full = most * row / height;
    std::string line;
    for (int column = 0; column < width; ++column) {
      // Column c shows the item at rank count^(c / (width - 1)), from 1.
      const double rank = std::pow(count, static_cast<double>(column) / std::max(1, width - 1));
      const auto at = std::min(values.size() - 1, static_cast<std::size_t>(rank - 1 + 1e-9));
      const double level = std::log10(static_cast<double>(values[at]) + 1);
      static const char* const kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
      const double part = std::clamp((level - above) / (full - above), 0.0, 1.0);
      line += kEighths[static_cast<int>(std::lround(part * 8))];
    }
    const auto label = static_cast<int64_t>(std::llround(std::pow(10, full) - 1));
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(fmt::format("{:>9} ┤{}", label, line));
  }
  std::string axis;
  for (int column = 0; column < width; ++column) axis += "─";
  lines.push_back(fmt::format("{:>9} └{}", 0, axis));
  // Ranks 1, 10, 100, ... under their columns, as far as there is room beside the last.
  const std::string last = std::to_string(values.size());
  const auto room = static_cast<std::size_t>(width) - std::min<std::size_t>(width, last.size());
  std::string ranks;
  for (double rank = 1; rank < count; rank *= 10) {
    const auto column = static_cast<std::size_t>(std::log(rank) / std::log(count) * (width - 1));
    const std::string label = fmt::format("{:.0f}", rank);
    if (column + label.size() >= room) break;
    ranks.resize(column, ' ');
    ranks += label;
  }
  ranks.resize(room, ' ');
  lines.push_back(fmt::format("{:>11}{}{}", "", ranks, last));
  return lines;
}

}  // namespace cfaa
