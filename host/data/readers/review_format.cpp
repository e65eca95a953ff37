#include "host/data/readers/review_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "host/core/error.h"
#include "host/core/options.h"
#include "host/data/readers/python_literal.h"

namespace cfaa {
namespace {

struct Role {
  const char* name;
  std::string ColumnChoice::*choice;
  std::vector<std::string> guesses;  // lower case, best first
};

const std::array<Role, 6>& roles() {
  static const std::array<Role, 6> all = {{
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
      {"title",
       &ColumnChoice::title,
       {"item_title", "product_title", "movie_title", "book_title", "item_name", "product_name",
        "title", "name"}},
  }};
  return all;
}

// A header has names; a number, or a text of many words, is a value.
bool looks_like_data(const std::vector<std::string>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const std::string& field) {
    return !std::isnan(parse_number(field)) || std::count(field.begin(), field.end(), ' ') > 3;
  });
}

// The fields of a first line, for a message.
std::string shown_fields(const std::vector<std::string>& fields) {
  constexpr std::size_t kMost = 20, kLongest = 40;
  std::string shown;
  for (std::size_t i = 0; i < std::min(fields.size(), kMost); ++i) {
    const std::string& field = fields[i];
    shown += (i == 0 ? "" : ", ") +
             (field.size() > kLongest ? field.substr(0, kLongest) + "..." : field);
  }
  return fields.size() > kMost ? shown + ", ..." : shown;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// What is looked for in a file.
struct Wanted {
  ColumnChoice choice;
  bool quotes = true;
  std::string path;
  bool titles_only = false;  // a file about items: ids and titles, no reviews

  bool reads(const Role& role) const {
    return !titles_only || role.choice == &ColumnChoice::item || is_title(role);
  }
  bool needs(const Role& role) const {
    return titles_only ? reads(role)
                       : role.choice == &ColumnChoice::user || role.choice == &ColumnChoice::item ||
                             role.choice == &ColumnChoice::rating;
  }
  // Beside reviews a "name" is a person's, and Amazon's "title" of 2023 is the review's.
  bool may_guess(const Role& role, const std::string& guess, bool amazon_2023) const {
    if (titles_only || !is_title(role)) return true;
    return guess != "name" && !(guess == "title" && amazon_2023);
  }
  bool nothing_asked() const {
    return std::all_of(roles().begin(), roles().end(),
                       [&](const Role& role) { return (choice.*role.choice).empty(); });
  }

 private:
  static bool is_title(const Role& role) { return role.choice == &ColumnChoice::title; }
};

// The name among `names` for each role: the user's, or the best guess; "" where there is none.
ColumnChoice choose(const std::vector<std::string>& names, const Wanted& wanted) {
  ColumnChoice chosen;
  const std::string &path = wanted.path, &flag = wanted.choice.flag;
  const bool amazon_2023 = std::find(names.begin(), names.end(), "parent_asin") != names.end();
  for (const Role& role : roles()) {
    if (!wanted.reads(role)) continue;
    const std::string& asked = wanted.choice.*role.choice;
    if (!asked.empty()) {
      if (std::find(names.begin(), names.end(), asked) == names.end()) {
        throw Error(fmt::format("{}: {} {}={}: there is no such column; there are {}", path, flag,
                                role.name, asked, fmt::join(names, ", ")));
      }
      chosen.*role.choice = asked;
      continue;
    }
    for (const std::string& guess : role.guesses) {
      if (!wanted.may_guess(role, guess, amazon_2023)) continue;
      const auto found = std::find_if(names.begin(), names.end(),
                                      [&](const std::string& n) { return lower(n) == guess; });
      if (found == names.end()) continue;
      chosen.*role.choice = *found;
      break;
    }
  }
  for (const Role& role : roles()) {
    if (!wanted.needs(role) || !(chosen.*role.choice).empty()) continue;
    if (wanted.titles_only) {
      throw Error(
          fmt::format("{}: no column looks like the {}; a file of titles names its columns, such "
                      "as item_id (or asin) and title (there are {})",
                      path, role.name, shown_fields(names)));
    }
    if (looks_like_data(names)) {
      throw Error(fmt::format(
          "{}: the first line looks like data and not like a header; say which column is which by "
          "number, as in {} user=1,item=2,rating=3,text=4,time=5 (its fields: {})",
          path, flag, shown_fields(names)));
    }
    throw Error(
        fmt::format("{}: no column looks like the {}; name it with {} {}=NAME (there are {})", path,
                    role.name, flag, role.name, shown_fields(names)));
  }
  return chosen;
}

std::string say(const ColumnChoice& chosen, const Wanted& wanted) {
  std::string said;
  for (const Role& role : roles()) {
    if (!wanted.reads(role)) continue;
    const std::string& name = chosen.*role.choice;
    if (name.empty() && role.choice == &ColumnChoice::title) continue;
    said +=
        fmt::format("{}{} = {}", said.empty() ? "" : ", ", role.name, name.empty() ? "none" : name);
  }
  return said;
}

// The first line that is not blank; `head` then begins behind it.
std::string_view take_line(std::string_view& head) {
  for (;;) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos || head.empty()) return line;
  }
}

std::string_view first_line(std::string_view head) {
  return take_line(head);
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

void detect_object_lines(std::string_view head, const Wanted& wanted, ReviewFormat& format) {
  const std::string_view line = first_line(head);
  // repr() writes keys in single quotes or as u'...'; JSON knows double quotes only.
  const std::size_t key = line.find_first_not_of(" \t", line.find('{') + 1);
  const bool python =
      key != std::string_view::npos && (line[key] == '\'' || line[key] == 'u' || line[key] == 'U');
  format.kind = python ? FormatKind::python_lines : FormatKind::json_lines;
  format.name = python ? "Python literals" : "JSON lines";
  // A line that cannot be read is met again, with its number, by the parser.
  std::vector<std::string> names;
  constexpr int kLinesTried = 100;
  for (int i = 0; i < kLinesTried && names.empty() && !head.empty(); ++i) {
    const std::string_view next = take_line(head);
    names = python ? python_keys(next) : json_keys(next);
  }
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const bool guess_release = !wanted.titles_only && wanted.nothing_asked();
  if (guess_release && (has("reviewerID") || names.empty())) {
    format.name += " (Amazon 2014 / 2018)";
    format.keys = {"reviewerID", "asin", "", "overall", "reviewText", "unixReviewTime", ""};
  } else if (guess_release && has("user_id") && (has("parent_asin") || has("asin")) &&
             has("rating")) {
    format.name += " (Amazon 2023)";
    format.keys = {"user_id", "parent_asin", "asin", "rating", "text", "timestamp", ""};
  } else {
    const ColumnChoice c = names.empty() ? wanted.choice : choose(names, wanted);
    format.keys = {c.user, c.item, "", c.rating, c.text, c.time, c.title};
  }
  const ObjectKeys& keys = format.keys;
  format.said = say({keys.user, keys.item, keys.rating, keys.text, keys.time, keys.title}, wanted);
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

// A tab wherever there is one; else what the header has more of. Spreadsheets of countries that
// write 4,5 for four and a half separate by semicolons.
char delimiter_of(std::string_view header) {
  if (header.find('\t') != std::string_view::npos) return '\t';
  const auto times = [&](char c) { return std::count(header.begin(), header.end(), c); };
  return times(';') > times(',') ? ';' : ',';
}

void detect_delimited(std::string_view head, const Wanted& wanted, ReviewFormat& format) {
  const ColumnChoice& choice = wanted.choice;
  const std::string& path = wanted.path;
  format.kind = FormatKind::delimited;
  const std::string_view line = first_line(head);
  format.rule.delimiter = delimiter_of(line);
  format.rule.quoted = wanted.quotes;
  const std::string kind = format.rule.delimiter == '\t'  ? "TSV"
                           : format.rule.delimiter == ';' ? "CSV separated by ';'"
                                                          : "CSV";
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
    format.name = kind + " without a header";
    const auto place = [&](const std::string& text, const char* role) {
      if (text.empty()) return -1;
      const int column = is_number(text) && text.size() < 7 ? std::stoi(text) : 0;
      if (column < 1 || column > format.columns.count) {
        throw Error(fmt::format("{}: {} {}={} must be a column from 1 to {}", path, choice.flag,
                                role, text, format.columns.count));
      }
      return column - 1;
    };
    format.columns.user = place(choice.user, "user");
    format.columns.item = place(choice.item, "item");
    format.columns.rating = place(choice.rating, "rating");
    format.columns.text = place(choice.text, "text");
    format.columns.time = place(choice.time, "time");
    format.columns.title = place(choice.title, "title");
    format.said = say(choice, wanted);
    return;
  }
  format.name = kind;
  if (std::all_of(names.begin(), names.end(), [](const auto& n) { return recbole_name(n); })) {
    // RecBole knows no quotes in its atomic files, and its names carry their type.
    format.name = wanted.titles_only ? "RecBole .item" : "RecBole .inter";
    format.rule.quoted = false;
    for (std::string& name : names) name = *recbole_name(name);
  }
  const ColumnChoice chosen = choose(names, wanted);
  format.columns.user = position(names, chosen.user);
  format.columns.item = position(names, chosen.item);
  format.columns.rating = position(names, chosen.rating);
  format.columns.text = position(names, chosen.text);
  format.columns.time = position(names, chosen.time);
  format.columns.title = position(names, chosen.title);
  format.said = say(chosen, wanted);
  const std::string_view all = head.substr(0, blank + header);
  format.header_lines = std::count(all.begin(), all.end(), '\n');
  format.header_bytes = blank + header;
}

ReviewFormat detect(std::string_view head, const Wanted& wanted) {
  ReviewFormat format;
  std::size_t mark = 0;
  if (head.starts_with("\xEF\xBB\xBF")) mark = 3;
  head.remove_prefix(mark);
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) {
    throw Error(
        fmt::format("{}: holds no {}", wanted.path, wanted.titles_only ? "titles" : "reviews"));
  }
  if (head[start] == '[') {
    throw Error(
        fmt::format("{}: is one JSON array; write one object a line (jq -c '.[]')", wanted.path));
  }
  if (head[start] == '{') {
    detect_object_lines(head, wanted, format);
  } else {
    detect_delimited(head, wanted, format);
  }
  format.header_bytes += mark;
  return format;
}

}  // namespace

ColumnChoice parse_columns(const std::string& text, const std::string& flag) {
  ColumnChoice choice;
  choice.flag = flag;
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
          fmt::format("{}: '{}' is not of the form user=NAME (user, item, rating, text, time, "
                      "title), separated by commas",
                      flag, pair));
    }
    choice.*found->choice = std::string(pair.substr(equals + 1));
  }
  return choice;
}

ColumnChoice columns_of(const PrepareOptions& options, const std::string& domain) {
  const bool source = domain == "source";
  const std::string& own = source ? options.source_columns : options.target_columns;
  ColumnChoice both = parse_columns(options.columns, "--columns");
  if (own.empty()) return both;
  ColumnChoice choice = parse_columns(own, source ? "--source-columns" : "--target-columns");
  for (const Role& role : roles()) {
    if ((choice.*role.choice).empty()) choice.*role.choice = both.*role.choice;
  }
  return choice;
}

ChosenColumns choose_columns(const std::vector<std::string>& names, const ColumnChoice& choice,
                             const std::string& path) {
  const Wanted wanted{choice, false, path, false};
  const ColumnChoice columns = choose(names, wanted);
  return {columns, say(columns, wanted)};
}

ReviewFormat detect_format(std::string_view head, const ColumnChoice& choice, bool quotes,
                           const std::string& path) {
  return detect(head, {choice, quotes, path, false});
}

ReviewFormat detect_title_format(std::string_view head, bool quotes, const std::string& path) {
  return detect(head, {{}, quotes, path, true});
}

ReviewParser::ReviewParser(const ReviewFormat& format, InvalidUtf8 invalid)
    : format_(format), invalid_(invalid) {
  if (format.kind == FormatKind::json_lines) {
    json_ = std::make_unique<JsonLines>(format.keys, invalid);
  }
}

int64_t ReviewParser::parse(const Chunk& chunk, RawReviewSink& sink) {
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
