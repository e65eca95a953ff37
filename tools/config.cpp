// cfaa_gpu config: every key of the configuration with its value, what it may be and what it is
// for; as text, as a schema, as a file, or as the page of the reference.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/run/configuration.h"
#include "tools/command.h"
#include "tools/command_line/help.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  ConfigFlags config;
  bool json = false, values = false, markdown = false;
};

// As one writes it in a file, but words without their quotes.
std::string value_text(const json& value) {
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  return text.empty() ? "none" : text;
}

void print_page(const std::string& name, const std::string& text, int indent) {
  fmt::print("{}", wrapped_entry(name, text, indent, page_width()));
}

void print_text(Configuration& config) {
  for (const OptionSet& section : config.sections()) {
    fmt::print("\n{}\n", section.section());
    for (const Option& option : section.options()) {
      print_page("  " + option.key,
                 fmt::format("{} ({})", value_text(option.current()), option.allowed), 26);
      print_page("", option.help, 28);
    }
  }
}

// The key's part of a JSON schema.
json schema_of(const Option& option) {
  json schema = {{"description", option.help}, {"default", option.current()}};
  json bounds = json::object();
  if (std::isfinite(option.range.low)) {
    bounds[option.range.low_open ? "exclusiveMinimum" : "minimum"] = option.range.low;
  }
  if (std::isfinite(option.range.high)) bounds["maximum"] = option.range.high;
  if (!option.choices.empty()) bounds["enum"] = option.choices;
  switch (option.kind) {
    case OptionKind::number:
      schema["type"] = "number";
      break;
    case OptionKind::whole:
      schema["type"] = "integer";
      break;
    case OptionKind::boolean:
      schema["type"] = "boolean";
      break;
    case OptionKind::text:
    case OptionKind::choice:
      schema["type"] = "string";
      break;
    case OptionKind::wholes:
    case OptionKind::choices:
      bounds["type"] = option.kind == OptionKind::wholes ? "integer" : "string";
      schema["type"] = "array";
      schema["items"] = bounds;
      return schema;
  }
  schema.update(bounds);
  return schema;
}

json schema_of(Configuration& config) {
  json all = json::object();
  for (const OptionSet& section : config.sections()) {
    for (const Option& option : section.options()) {
      all[section.section()][option.key] = schema_of(option);
    }
  }
  return all;
}

json values_of(Configuration& config) {
  json all = json::object();
  for (const OptionSet& section : config.sections()) all[section.section()] = section.current();
  return all;
}

// Lists rather than tables: a row of a table cannot be wrapped.
void print_markdown(Configuration& config) {
  const auto paragraph = [](const std::string& text) {
    fmt::print("{}\n", fmt::join(wrap(text, kPageWidth), "\n"));
  };
  fmt::print("# Configuration\n\n");
  paragraph(
      "This page is printed by `cfaa_gpu config --markdown`. A configuration is a JSON file of "
      "sections, each an object of keys; a key with a dot, `history.max`, is the key `max` of an "
      "object `history`. What a file leaves out has its default, which follows the key here, and "
      "then what the key may be. A file may begin with the values of another, which lies beside "
      "it: `\"include\": \"amazon.json\"`. Every command that reads a configuration takes it as an "
      "argument or by `--config`, and single values by `--set section.key=value`; `cfaa_gpu config "
      "FILE` checks one.");
  for (const OptionSet& section : config.sections()) {
    fmt::print("\n## {}\n\n", section.section());
    for (const Option& option : section.options()) {
      const std::string entry =
          fmt::format("`{}`: {}; {}. {}.", option.key, '`' + value_text(option.current()) + '`',
                      option.allowed, option.help);
      bool first = true;
      for (const std::string& line : wrap(entry, kPageWidth - 2)) {
        fmt::print("{}{}\n", std::exchange(first, false) ? "- " : "  ", line);
      }
    }
  }
}

void run(const Arguments& arguments) {
  if (arguments.json + arguments.values + arguments.markdown > 1) {
    throw Error("--json, --values and --markdown are three forms of the same; give one");
  }
  Configuration config;
  arguments.config.apply_to(config);
  config.run.check();
  if (arguments.json) {
    print_json(schema_of(config));
  } else if (arguments.values) {
    print_json(values_of(config));
  } else if (arguments.markdown) {
    print_markdown(config);
  } else {
    print_text(config);
  }
}

}  // namespace

void add_config(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("config", "show every key of the configuration, and check a file");
  arguments->config.add_to(*command, "a configuration; its values are shown");
  command->add_flag("--json", arguments->json,
                    "machine output: value, type, bounds and meaning of every key");
  command->add_flag("--values", arguments->values, "the values alone, as a configuration file");
  command->add_flag("--markdown", arguments->markdown, "the page docs/configuration.md");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
