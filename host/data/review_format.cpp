#include "host/data/review_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "host/core/error.h"
#include "host/core/options.h"
#include "host/data/python_literal.h"

namespace cfaa {
namespace {

struct Role {
  const char* name;
  std::string ColumnChoice::*choice;
  std::vector<std::string> guesses;  // lower case, best first
};

const std::array<Role, 5>& roles() {
  static const std::array<Role, 5> all = {{
      {"user",
       &ColumnChoice::user,
       {"user_id", "reviewerid", "user", "userid", "reviewer_id", "customer_id", "uid"}},
      {"item",
       &ColumnChoice::item,
       {"parent_asin", "asin", "item_id", "item", "itemid", "product_id", "productid", "iid",
        "movie_id", "movieid", "business_id", "book_id"}},
      {"rating",
       &ColumnChoice::rating,
       {"rating", "overall", "stars", "star_rating", "score", "label"}},
      {"text",
       &ColumnChoice::text,
       {"text", "reviewtext", "review_text", "review", "review_body", "body", "content",
        "comment"}},
      {"time",
       &ColumnChoice::time,
       {"timestamp", "unixreviewtime", "unix_review_time", "time", "review_time", "ts"}},
  }};
  return all;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// The name among `names` for each role: the user's, or the best guess; "" where there is none.
ColumnChoice choose(const std::vector<std::string>& names, const ColumnChoice& choice,
                    const std::string& path) {
  ColumnChoice chosen;
  for (const Role& role : roles()) {
    const std::string& asked = choice.*role.choice;
    if (!asked.empty()) {
      if (std::find(names.begin(), names.end(), asked) == names.end()) {
        throw Error(fmt::format("{}: --columns {}={}: there is no such column; there are {}", path,
                                role.name, asked, fmt::join(names, ", ")));
      }
      chosen.*role.choice = asked;
      continue;
    }
    for (const std::string& guess : role.guesses) {
      const auto found = std::find_if(names.begin(), names.end(),
                                      [&](const std::string& n) { return lower(n) == guess; });
      if (found == names.end()) continue;
      chosen.*role.choice = *found;
      break;
    }
  }
  for (const Role& role : {roles()[0], roles()[1], roles()[2]}) {
    if ((chosen.*role.choice).empty()) {
      throw Error(
          fmt::format("{}: no column looks like the {}; name it with --columns {}=NAME (there "
                      "are {})",
                      path, role.name, role.name, fmt::join(names, ", ")));
    }
  }
  return chosen;
}

std::string say(const ColumnChoice& chosen) {
  std::string said;
  for (const Role& role : roles()) {
    const std::string& name = chosen.*role.choice;
    said +=
        fmt::format("{}{} = {}", said.empty() ? "" : ", ", role.name, name.empty() ? "none" : name);
  }
  return said;
}

std::string_view first_line(std::string_view head) {
  for (;;) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, end);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos || end == head.size()) {
      return line;
    }
    head.remove_prefix(end + 1);
  }
}

std::vector<std::string> python_keys(std::string_view line) {
  PythonValue dict;
  std::vector<std::string> keys;
  if (!parse_python_literal(line, dict).empty() || dict.kind != PythonValue::Kind::dict) {
    return keys;
  }
  for (std::size_t i = 0; i < dict.elements.size(); i += 2) keys.push_back(dict.elements[i].text);
  return keys;
}

void detect_object_lines(std::string_view head, const ColumnChoice& choice, const std::string& path,
                         ReviewFormat& format) {
  const std::string_view line = first_line(head);
  // repr() writes keys in single quotes or as u'...'; JSON knows double quotes only.
  const std::size_t key = line.find_first_not_of(" \t", line.find('{') + 1);
  const bool python =
      key != std::string_view::npos && (line[key] == '\'' || line[key] == 'u' || line[key] == 'U');
  format.kind = python ? FormatKind::python_lines : FormatKind::json_lines;
  format.name = python ? "Python literals" : "JSON lines";
  std::vector<std::string> names = python ? python_keys(line) : json_keys(line);
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const bool unasked = choice.user.empty() && choice.item.empty() && choice.rating.empty() &&
                       choice.text.empty() && choice.time.empty();
  if (unasked && (has("reviewerID") || names.empty())) {
    // A first line that cannot be read is met again, with its number, by the parser.
    format.name += " (Amazon 2014 / 2018)";
    format.keys = {"reviewerID", "asin", "", "overall", "reviewText", "unixReviewTime"};
  } else if (unasked && has("user_id") && (has("parent_asin") || has("asin")) && has("rating")) {
    format.name += " (Amazon 2023)";
    format.keys = {"user_id", "parent_asin", "asin", "rating", "text", "timestamp"};
  } else {
    const ColumnChoice chosen = choose(names, choice, path);
    format.keys = {chosen.user, chosen.item, "", chosen.rating, chosen.text, chosen.time};
  }
  format.said = say(
      {format.keys.user, format.keys.item, format.keys.rating, format.keys.text, format.keys.time});
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// RecBole's header types every column: "user_id:token".
std::optional<std::string> recbole_name(std::string_view column) {
  for (const std::string_view type : {":token", ":float", ":token_seq", ":float_seq"}) {
    if (column.ends_with(type)) return std::string(column.substr(0, column.size() - type.size()));
  }
  return std::nullopt;
}

int position(const std::vector<std::string>& names, const std::string& name) {
  if (name.empty()) return -1;
  return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
}

void detect_delimited(std::string_view head, const ColumnChoice& choice, bool quotes,
                      const std::string& path, ReviewFormat& format) {
  format.kind = FormatKind::delimited;
  const std::string_view line = first_line(head);
  format.rule.delimiter = line.find('\t') != std::string_view::npos ? '\t' : ',';
  format.rule.quoted = quotes;
  // Leading blank lines belong to the header.
  const std::size_t blank = static_cast<std::size_t>(line.data() - head.data());
  std::size_t header = record_length(head.substr(blank), format.rule);
  if (header == 0) header = head.size() - blank;
  std::string_view record = head.substr(blank, header);
  while (record.ends_with('\n') || record.ends_with('\r')) record.remove_suffix(1);
  std::vector<std::string_view> fields;
  std::string scratch;
  if (const std::string reason = split_fields(record, format.rule, fields, scratch);
      !reason.empty()) {
    throw Error(fmt::format("{}:1: {}", path, reason));
  }
  std::vector<std::string> names(fields.begin(), fields.end());
  format.columns.count = static_cast<int>(names.size());

  if (is_number(choice.user) && is_number(choice.item) && is_number(choice.rating)) {
    format.name = format.rule.delimiter == '\t' ? "TSV without a header" : "CSV without a header";
    const auto place = [&](const std::string& text, const char* role) {
      if (text.empty()) return -1;
      const int column = is_number(text) && text.size() < 7 ? std::stoi(text) : 0;
      if (column < 1 || column > format.columns.count) {
        throw Error(fmt::format("{}: --columns {}={} must be a column from 1 to {}", path, role,
                                text, format.columns.count));
      }
      return column - 1;
    };
    format.columns.user = place(choice.user, "user");
    format.columns.item = place(choice.item, "item");
    format.columns.rating = place(choice.rating, "rating");
    format.columns.text = place(choice.text, "text");
    format.columns.time = place(choice.time, "time");
    format.said = say(choice);
    return;
  }
  format.name = format.rule.delimiter == '\t' ? "TSV" : "CSV";
  if (std::all_of(names.begin(), names.end(), [](const auto& n) { return recbole_name(n); })) {
    // RecBole knows no quotes in its atomic files, and its names carry their type.
    format.name = "RecBole .inter";
    format.rule.quoted = false;
    for (std::string& name : names) name = *recbole_name(name);
  }
  const ColumnChoice chosen = choose(names, choice, path);
  format.columns.user = position(names, chosen.user);
  format.columns.item = position(names, chosen.item);
  format.columns.rating = position(names, chosen.rating);
  format.columns.text = position(names, chosen.text);
  format.columns.time = position(names, chosen.time);
  format.said = say(chosen);
  const std::string_view all = head.substr(0, blank + header);
  format.header_lines = std::count(all.begin(), all.end(), '\n');
  format.header_bytes = blank + header;
}

}  // namespace

ColumnChoice parse_columns(const std::string& text) {
  ColumnChoice choice;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view pair = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t equals = pair.find('=');
    const Role* found = nullptr;
    for (const Role& role : roles()) {
      if (pair.substr(0, equals) == role.name) found = &role;
    }
    if (equals == std::string_view::npos || equals + 1 == pair.size() || !found) {
      throw Error(
          fmt::format("--columns: '{}' is not of the form user=NAME (user, item, rating, "
                      "text, time), separated by commas",
                      pair));
    }
    choice.*found->choice = std::string(pair.substr(equals + 1));
  }
  return choice;
}

ReviewFormat detect_format(std::string_view head, const ColumnChoice& choice, bool quotes,
                           const std::string& path) {
  ReviewFormat format;
  std::size_t mark = 0;
  if (head.starts_with("\xEF\xBB\xBF")) mark = 3;
  head.remove_prefix(mark);
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) throw Error(fmt::format("{}: holds no reviews", path));
  if (head[start] == '[') {
    throw Error(fmt::format("{}: is one JSON array; write one object a line (jq -c '.[]')", path));
  }
  if (head[start] == '{') {
    detect_object_lines(head, choice, path, format);
  } else {
    detect_delimited(head, choice, quotes, path, format);
  }
  format.header_bytes += mark;
  return format;
}

ReviewParser::ReviewParser(const ReviewFormat& format, InvalidUtf8 invalid)
    : format_(format), invalid_(invalid) {
  if (format.kind == FormatKind::json_lines) {
    json_ = std::make_unique<JsonLines>(format.keys, invalid);
  }
}

int64_t ReviewParser::parse(const Chunk& chunk, ReviewSink& sink) {
  switch (format_.kind) {
    case FormatKind::json_lines:
      return json_->parse(chunk.text(), sink);
    case FormatKind::python_lines:
      return parse_python_lines(chunk.text(), format_.keys, invalid_, sink);
    case FormatKind::delimited:
      break;
  }
  return parse_delimited(chunk.text(), format_.rule, format_.columns, invalid_, sink);
}

}  // namespace cfaa
