#include "host/core/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "host/core/error.h"
#include "host/core/log.h"

namespace cfaa {
namespace {

using nlohmann::json;

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

constexpr double kLargestWhole = 1e9;
constexpr std::size_t kLongestQuote = 80;

// A number above 1e18 bounds the type rather than the value, and is not worth telling.
std::string describe(const Range& range, const std::string& kind) {
  const bool low = std::isfinite(range.low), high = range.high < 1e18;
  if (low && high) return fmt::format("{} from {} to {}", kind, range.low, range.high);
  if (low) return fmt::format("{} {} {}", kind, range.low_open ? ">" : ">=", range.low);
  return kind;
}

bool inside(const Range& range, double value) {
  return std::isfinite(value) && value <= range.high &&
         (range.low_open ? value > range.low : value >= range.low);
}

std::string join(const std::vector<std::string>& words, const std::string& between) {
  return fmt::format("{}", fmt::join(words, between));
}

// One line for all old keys of one place, and not too long a line.
void tell(std::vector<std::string> notices, const std::string& origin) {
  constexpr std::size_t kNamed = 3;
  if (notices.empty()) return;
  if (notices.size() > kNamed + 1) {
    const std::string more =
        fmt::format("and {} more keys have new names", notices.size() - kNamed);
    notices.resize(kNamed);
    notices.push_back(more);
  }
  log_once(fmt::format("{}: {}", origin, join(notices, ", ")));
}

// "300, 64" -> [300, 64], "id history" -> ["id", "history"]; whatever is no text stays what it is.
json list_of(const json& given) {
  if (!given.is_string()) return given;
  json list = json::array();
  std::string text = given.get<std::string>();
  std::replace(text.begin(), text.end(), ',', ' ');
  std::stringstream words(text);
  for (std::string word; words >> word;) {
    const bool number = word.find_first_not_of("0123456789-") == std::string::npos;
    const json parsed = number ? json::parse(word, nullptr, false) : json(word);
    list.push_back(parsed.is_discarded() ? json(word) : parsed);
  }
  return list;
}

}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(3, name.size() / 2 + 1);
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

OptionSet::OptionSet(std::string section) : section_(std::move(section)) {}

void OptionSet::add(const std::string& key, double& value, const std::string& help, Range range) {
  const std::string allowed = describe(range, "a number");
  options_.push_back({key, help, allowed,
                      [&value, range, allowed](const json& given) {
                        if (!given.is_number()) throw std::string(allowed);
                        const double number = given.get<double>();
                        if (!inside(range, number)) throw std::string(allowed);
                        value = number;
                      },
                      [&value] { return json(value); }});
  describe_last(OptionKind::number, range);
}

void OptionSet::add(const std::string& key, int64_t& value, const std::string& help, Range range) {
  if (std::isinf(range.high)) range.high = kLargestWhole;
  const std::string allowed = describe(range, "a whole number");
  options_.push_back({key, help, allowed,
                      [&value, range, allowed](const json& given) {
                        if (!given.is_number_integer()) throw std::string(allowed);
                        if (given.is_number_unsigned() &&
                            given.get<uint64_t>() > uint64_t{INT64_MAX}) {
                          throw std::string(allowed);
                        }
                        const int64_t number = given.get<int64_t>();
                        if (!inside(range, static_cast<double>(number))) throw std::string(allowed);
                        value = number;
                      },
                      [&value] { return json(value); }});
  describe_last(OptionKind::whole, range);
}

void OptionSet::add(const std::string& key, bool& value, const std::string& help) {
  options_.push_back({key, help, "true or false",
                      [&value](const json& given) {
                        if (!given.is_boolean()) throw std::string("true or false");
                        value = given.get<bool>();
                      },
                      [&value] { return json(value); }});
  describe_last(OptionKind::boolean);
}

void OptionSet::add(const std::string& key, std::string& value, const std::string& help) {
  options_.push_back({key, help, "text",
                      [&value](const json& given) {
                        if (!given.is_string()) throw std::string("text");
                        value = given.get<std::string>();
                      },
                      [&value] { return json(value); }});
  describe_last(OptionKind::text);
}

void OptionSet::add(const std::string& key, std::vector<int64_t>& value, const std::string& help,
                    Range range) {
  const std::string allowed = describe(range, "a list of whole numbers, each");
  options_.push_back({key, help, allowed,
                      [&value, range, allowed](const json& given) {
                        if (!given.is_array()) throw std::string(allowed);
                        std::vector<int64_t> list;
                        for (const json& element : given) {
                          if (!element.is_number_integer() ||
                              !inside(range, element.get<double>())) {
                            throw std::string(allowed);
                          }
                          list.push_back(element.get<int64_t>());
                        }
                        value = list;
                      },
                      [&value] { return json(value); }});
  describe_last(OptionKind::wholes, range);
}

void OptionSet::add(const std::string& key, std::vector<std::string>& value,
                    const std::string& help, const std::vector<std::string>& choices) {
  const std::string allowed = "a list of " + join(choices, ", ") + ", none twice";
  options_.push_back({key, help, allowed,
                      [&value, choices, allowed](const json& given) {
                        if (!given.is_array()) throw std::string(allowed);
                        std::vector<std::string> list;
                        for (const json& element : given) {
                          if (!element.is_string()) throw std::string(allowed);
                          const std::string word = element.get<std::string>();
                          if (std::find(choices.begin(), choices.end(), word) == choices.end() ||
                              std::find(list.begin(), list.end(), word) != list.end()) {
                            throw std::string(allowed);
                          }
                          list.push_back(word);
                        }
                        value = list;
                      },
                      [&value] { return json(value); }});
  describe_last(OptionKind::choices, {}, choices);
}

void OptionSet::add_choice(const std::string& key, const std::string& help,
                           const std::vector<std::string>& choices,
                           std::function<void(std::size_t)> assign,
                           std::function<std::size_t()> current) {
  options_.push_back({key, help, join(choices, "|"),
                      [choices, assign](const json& given) {
                        const auto found = given.is_string()
                                               ? std::find(choices.begin(), choices.end(),
                                                           given.get<std::string>())
                                               : choices.end();
                        if (found == choices.end()) throw join(choices, " or ");
                        assign(static_cast<std::size_t>(found - choices.begin()));
                      },
                      [choices, current] { return json(choices[current()]); }});
  describe_last(OptionKind::choice, {}, choices);
}

void OptionSet::describe_last(OptionKind kind, Range range, std::vector<std::string> choices) {
  options_.back().kind = kind;
  options_.back().range = range;
  options_.back().choices = std::move(choices);
}

void OptionSet::when_assigned(std::function<void()> then) {
  auto& assign = options_.back().assign;
  assign = [before = std::move(assign), then = std::move(then)](const json& given) {
    before(given);
    then();
  };
}

void OptionSet::add_renamed(const std::string& old_key, const OptionSet& section,
                            const std::vector<std::string>& keys) {
  Renamed renamed{old_key, "", {}};
  for (const std::string& key : keys) {
    renamed.now.push_back(section.find(key, old_key));
    renamed.place += (renamed.place.empty() ? "" : " and ") + section.section() + "." + key;
  }
  renamed_.push_back(std::move(renamed));
}

const OptionSet::Renamed* OptionSet::find_renamed(const std::string& key) const {
  const auto found = std::find_if(renamed_.begin(), renamed_.end(),
                                  [&](const Renamed& renamed) { return renamed.key == key; });
  return found == renamed_.end() ? nullptr : &*found;
}

bool OptionSet::is_group(const std::string& key) const {
  const auto inside = [&](const auto& option) { return option.key.starts_with(key + "."); };
  return std::any_of(options_.begin(), options_.end(), inside) ||
         std::any_of(renamed_.begin(), renamed_.end(), inside);
}

const Option& OptionSet::find(const std::string& key, const std::string& origin) const {
  std::vector<std::string> known;
  for (const Option& option : options_) {
    if (option.key == key) return option;
    known.push_back(option.key);
  }
  const std::string near = nearest_name(key, known);
  throw Error(fmt::format("{}: '{}' is not a key of '{}'{}", origin, key, section_,
                          near.empty() ? fmt::format("; the keys are {}", join(known, ", "))
                                       : fmt::format("; did you mean '{}'?", near)));
}

void OptionSet::assign(const std::string& key, const json& value, const std::string& origin,
                       std::vector<std::string>& notices) {
  const Renamed* renamed = find_renamed(key);
  if (renamed != nullptr) {
    notices.push_back(fmt::format("{}.{} is now {}", section_, key, renamed->place));
  }
  const std::vector<Option> options =
      renamed != nullptr ? renamed->now : std::vector<Option>{find(key, origin)};
  try {
    for (const Option& option : options) {
      option.assign(option.is_list() ? list_of(value) : value);
    }
  } catch (const std::string& allowed) {
    std::string given = value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (given.size() > kLongestQuote) given = given.substr(0, kLongestQuote) + "...";
    const std::string now =
        renamed != nullptr ? fmt::format("is now {}, which ", renamed->place) : "";
    throw Error(fmt::format("{}: {}.{} {}must be {}, and not {}", origin, section_, key, now,
                            allowed, given));
  }
}

void OptionSet::read(const json& object, const std::string& origin,
                     const std::vector<std::string>& ignored) {
  if (!object.is_object()) {
    throw Error(fmt::format("{}: '{}' must be an object of keys and values", origin, section_));
  }
  std::vector<std::string> notices;
  read_object(object, "", origin, ignored, notices);
  tell(notices, origin);
}

void OptionSet::read_object(const json& object, const std::string& prefix,
                            const std::string& origin, const std::vector<std::string>& ignored,
                            std::vector<std::string>& notices) {
  for (const auto& [name, value] : object.items()) {
    const std::string key = prefix + name;
    if (std::find(ignored.begin(), ignored.end(), key) != ignored.end()) continue;
    if (is_group(key) && value.is_object()) {
      read_object(value, key + ".", origin, ignored, notices);
    } else {
      assign(key, value, origin, notices);
    }
  }
}

void OptionSet::set(const std::string& key, const std::string& text, const std::string& origin) {
  const Renamed* renamed = find_renamed(key);
  const Option& option = renamed != nullptr ? renamed->now.front() : find(key, origin);
  // A flag's text is JSON where it reads as JSON (numbers, true, a flat list), and plain text
  // otherwise.
  const auto opened =
      std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; });
  json value = text;
  if (opened <= 1 && !option.current().is_string()) {
    const json parsed = json::parse(text, nullptr, false);
    if (!parsed.is_discarded() && (!option.is_list() || parsed.is_array())) value = parsed;
  }
  std::vector<std::string> notices;
  assign(key, value, origin, notices);
  tell(notices, origin);
}

json OptionSet::current() const {
  json object = json::object();
  for (const Option& option : options_) {
    std::string pointer = "/" + option.key;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    object[json::json_pointer(pointer)] = option.current();
  }
  return object;
}

}  // namespace cfaa
