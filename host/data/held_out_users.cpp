#include "host/data/held_out_users.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/data/steps.h"
#include "host/io/mapped_file.h"
#include "host/io/output_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAskedHeader = "user_id\titem_id\n";

fs::path asked_path(const fs::path& directory) {
  return directory / "newcomers" / "asked.tsv";
}

}  // namespace

fs::path held_out_reviews_path(const fs::path& directory) {
  return directory / "newcomers" / "reviews.jsonl";
}

HeldOutUsers take_held_out_users(Interactions& domain, std::vector<Split>& splits,
                                 const HeldOutUsersDraw& draw) {
  std::vector<char> taken(domain.users.size());
  for (std::size_t u = 0; u < taken.size(); ++u) taken[u] = draw(domain.users[u]);
  HeldOutUsers held_out;
  std::size_t kept = 0;
  for (std::size_t r = 0; r < domain.rows.size(); ++r) {
    if (taken[domain.rows[r].user] != 0) {
      held_out.rows.push_back(domain.rows[r]);
      held_out.splits.push_back(splits[r]);
    } else {
      domain.rows[kept] = domain.rows[r];
      splits[kept++] = splits[r];
    }
  }
  domain.rows.resize(kept);
  splits.resize(kept);
  return held_out;
}

void write_held_out_users(const fs::path& directory, const Interactions& domain,
                          const HeldOutUsers& held_out, double positive) {
  fs::create_directory(directory / "newcomers");
  OutputFile reviews(held_out_reviews_path(directory)), asked(asked_path(directory));
  asked.write(kAskedHeader);
  for (std::size_t r = 0; r < held_out.rows.size(); ++r) {
    const Interaction& row = held_out.rows[r];
    if (held_out.splits[r] == Split::train) {
      nlohmann::ordered_json line = {{"user", domain.users[row.user]},
                                     {"item", domain.items[row.item]},
                                     {"rating", row.rating},
                                     {"text", row.review()}};
      if (row.time != 0) line["timestamp"] = static_cast<double>(row.time) / 1000;
      reviews.write(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else if (is_positive(row.rating, positive)) {
      asked.write(fmt::format("{}\t{}\n", domain.users[row.user], domain.items[row.item]));
    }
  }
  for (OutputFile* file : {&reviews, &asked}) file->finish();
  for (OutputFile* file : {&reviews, &asked}) file->close();
}

std::vector<std::pair<std::string, std::string>> read_asked_items(const fs::path& directory) {
  const fs::path path = asked_path(directory);
  if (!fs::exists(path)) {
    throw Error(fmt::format("{}: no users were held out; prepare with --hold-out-users SHARE",
                            directory.string()));
  }
  const MappedFile file(path.string());
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const auto fail = [&](const char* why) {
    throw Error(fmt::format("{}: {}; run prepare again", path.string(), why));
  };
  if (!rest.starts_with(kAskedHeader)) fail("the header is not 'user_id item_id'");
  rest.remove_prefix(kAskedHeader.size());
  std::vector<std::pair<std::string, std::string>> asked;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n'), tab = rest.find('\t');
    if (end == std::string_view::npos || tab > end) fail("a line is not a user and an item");
    asked.emplace_back(rest.substr(0, tab), rest.substr(tab + 1, end - tab - 1));
    rest.remove_prefix(end + 1);
  }
  return asked;
}

}  // namespace cfaa
