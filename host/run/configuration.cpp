#include "host/run/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/io/config_file.h"

namespace cfaa {
namespace {

void check_section(Configuration& configuration, const std::string& name,
                   const std::string& origin) {
  std::vector<std::string> known;
  for (const OptionSet& section : configuration.sections()) known.push_back(section.section());
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string near = nearest_name(name, known);
  throw Error(fmt::format("{}: '{}' is not a section of the configuration; {}", origin, name,
                          near.empty() ? fmt::format("the sections are {}", fmt::join(known, ", "))
                                       : fmt::format("did you mean '{}'?", near)));
}

void assign(Configuration& configuration, const nlohmann::json& object, const std::string& origin) {
  for (const auto& [name, values] : object.items()) check_section(configuration, name, origin);
  if (object.contains("prepare")) {
    prepare_option_set(configuration.prepare).read(object["prepare"], origin);
  }
  if (object.contains("embed")) {
    embed_option_set(configuration.embed).read(object["embed"], origin);
  }
  configuration.run.read(object, origin);
}

nlohmann::json parse_object(const std::string& text, const std::string& origin) {
  nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    throw Error(origin +
                ": is not an object of JSON; give sections with keys, such as "
                "{\"train\": {\"epochs\": 5}}");
  }
  return object;
}

}  // namespace

std::vector<OptionSet> Configuration::sections() {
  std::vector<OptionSet> all = {prepare_option_set(prepare), embed_option_set(embed)};
  for (OptionSet& section : run.sections()) all.push_back(std::move(section));
  return all;
}

void Configuration::read(const std::string& path) {
  assign(*this, read_config_file(path), path);
}

void Configuration::read_text(const std::string& text, const std::string& origin) {
  assign(*this, parse_object(text, origin), origin);
}

void Configuration::set(const std::string& assignment) {
  const std::size_t equals = assignment.find('='), dot = assignment.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
    throw Error(
        fmt::format("--set {}: must be section.key=value, such as train.epochs=5", assignment));
  }
  const std::string origin = "--set " + assignment, name = assignment.substr(0, dot);
  const std::string key = assignment.substr(dot + 1, equals - dot - 1);
  check_section(*this, name, origin);
  if (name == "prepare") {
    prepare_option_set(prepare).set(key, assignment.substr(equals + 1), origin);
  } else if (name == "embed") {
    embed_option_set(embed).set(key, assignment.substr(equals + 1), origin);
  } else {
    run.set(assignment);
  }
}

}  // namespace cfaa
