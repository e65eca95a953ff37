#pragma once

// A section of the configuration: named values bound to a struct, each with a line of explanation,
// a type and a range. One table serves the JSON file, the flags and `cfaa_gpu config`, so that a
// key cannot exist in one and not in the others.
//
//   OptionSet set("alignment");
//   set.add("alpha", options.alpha, "bandwidth of the soft assignment", positive());
//   set.read(json, "config.json");          // unknown key, wrong type, out of range -> Error
//   set.set("alpha", "0.2", "--alpha");     // from a flag
//
// A key with a dot, "history.max", is the key `max` of the object `history` in the file.
//
// A key of an earlier version is read as the one that replaced it, with a notice:
//
//   set.add_renamed("bandwidth", "alpha");

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cfaa {

// The known name nearest to `name` by edit distance, or "" where none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;  // low itself is out
};
inline Range positive() {
  return {0, std::numeric_limits<double>::infinity(), true};
}
inline Range at_least(double low) {
  return {low};
}
inline Range between(double low, double high) {
  return {low, high};
}

enum class OptionKind { number, whole, boolean, text, choice, wholes, choices };

struct Option {
  std::string key;      // as in the JSON: "sinkhorn_iterations"
  std::string help;     // one line
  std::string allowed;  // "> 0", "relative|absolute", ...: for help and messages
  std::function<void(const nlohmann::json&)> assign;  // throws std::string with the reason
  std::function<nlohmann::json()> current;
  OptionKind kind = OptionKind::text;
  Range range;                       // of numbers, and of each in a list
  std::vector<std::string> choices;  // of words, and of each in a list

  bool is_list() const { return kind == OptionKind::wholes || kind == OptionKind::choices; }
};

class OptionSet {
 public:
  explicit OptionSet(std::string section);

  void add(const std::string& key, double& value, const std::string& help, Range range = {});
  void add(const std::string& key, int64_t& value, const std::string& help, Range range = {});
  void add(const std::string& key, bool& value, const std::string& help);
  void add(const std::string& key, std::string& value, const std::string& help);
  // Lists: [300, 64], or "300,64", or "300 64". Every element within the range, or one of `choices`
  // and none twice.
  void add(const std::string& key, std::vector<int64_t>& value, const std::string& help,
           Range range);
  void add(const std::string& key, std::vector<std::string>& value, const std::string& help,
           const std::vector<std::string>& choices);

  template <class Enum>
  void add(const std::string& key, Enum& value, const std::string& help,
           const std::vector<std::pair<std::string, Enum>>& names) {
    std::vector<std::string> choices;
    for (const auto& [name, _] : names) choices.push_back(name);
    add_choice(
        key, help, choices, [&value, names](std::size_t i) { value = names[i].second; },
        [&value, names] {
          std::size_t i = 0;
          while (names[i].second != value) ++i;
          return i;
        });
  }

  // A choice that stands for more than one variable; by position in `choices`.
  void add_choice(const std::string& key, const std::string& help,
                  const std::vector<std::string>& choices, std::function<void(std::size_t)> assign,
                  std::function<std::size_t()> current);

  // Called whenever the key added last is assigned.
  void when_assigned(std::function<void()> then);

  // A key of an earlier version: what is given for it goes to `keys` of `section`. It is neither
  // listed nor written.
  void add_renamed(const std::string& old_key, const OptionSet& section,
                   const std::vector<std::string>& keys);
  void add_renamed(const std::string& old_key, const std::string& key) {
    add_renamed(old_key, *this, {key});
  }

  const std::string& section() const { return section_; }
  const std::vector<Option>& options() const { return options_; }

  // Assigns every key of a JSON object. `origin` names the file in messages; keys in `ignored` are
  // passed over.
  void read(const nlohmann::json& object, const std::string& origin,
            const std::vector<std::string>& ignored = {});

  // Assigns one key from text, as a flag gives it; `origin` names the flag in messages.
  void set(const std::string& key, const std::string& text, const std::string& origin);

  nlohmann::json current() const;

 private:
  struct Renamed {
    std::string key;    // the old one
    std::string place;  // "train.embedding_rate"
    std::vector<Option> now;
  };

  void describe_last(OptionKind kind, Range range = {}, std::vector<std::string> choices = {});
  void read_object(const nlohmann::json& object, const std::string& prefix,
                   const std::string& origin, const std::vector<std::string>& ignored,
                   std::vector<std::string>& notices);
  bool is_group(const std::string& key) const;
  const Option& find(const std::string& key, const std::string& origin) const;
  const Renamed* find_renamed(const std::string& key) const;
  void assign(const std::string& key, const nlohmann::json& value, const std::string& origin,
              std::vector<std::string>& notices);

  std::string section_;
  std::vector<Option> options_;
  std::vector<Renamed> renamed_;
};

}  // namespace cfaa
