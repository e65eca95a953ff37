#include "tools/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/terminal/stop_signal.h"
#include "host/core/terminal/terminal.h"
#include "host/data/prepare_options.h"
#include "host/device/make_context.h"
#include "host/run/configuration.h"

namespace cfaa::tools {

using nlohmann::json;

namespace {

// "cuda" of "cuda:1": one of several GPUs. make_context reads the number.
std::string without_number(std::string device) {
  const bool numbered = device.starts_with("cuda:") && device.size() > 5 &&
                        device.find_first_not_of("0123456789", 5) == std::string::npos;
  return numbered ? "cuda" : device;
}

}  // namespace

void DeviceFlags::add_to(CLI::App& command) {
  command
      .add_option("--device", device,
                  "what computes; auto: a GPU where there is one; cuda:1: the second of several")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "cuda", "cpu"}, without_number));
  command.add_option("--threads", threads, "threads of the CPU; 0: one per core")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
}

std::unique_ptr<Context> DeviceFlags::make_context(uint64_t seed) const {
  return cfaa::make_context(device, {.threads = threads, .seed = seed});
}

std::function<void()> add_option_flags(CLI::App& command, const OptionSet& set,
                                       const std::vector<std::string>& except) {
  struct Given {
    OptionSet set;
    std::vector<std::pair<std::string, std::string>> values;  // key, text
  };
  auto given = std::make_shared<Given>(Given{set, {}});
  for (const Option& option : set.options()) {
    if (std::find(except.begin(), except.end(), option.key) != except.end()) continue;
    std::string flag = "--" + option.key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const std::string key = option.key;
    const json current = option.current();
    const bool choice = option.kind == OptionKind::choice;
    const std::string value = current.is_string() ? current.get<std::string>() : current.dump();
    const std::string help =
        fmt::format("{} ({}default: {})", option.help,
                    choice || option.kind == OptionKind::boolean ? "" : option.allowed + "; ",
                    value.empty() ? "none" : value);
    if (option.kind == OptionKind::boolean) {
      command.add_flag_function(
          flag,
          [given, key](int64_t count) {
            given->values.emplace_back(key, count > 0 ? "true" : "false");
          },
          help);
    } else if (option.is_list()) {
      command
          .add_option_function<std::vector<std::string>>(
              flag,
              [given, key](const std::vector<std::string>& words) {
                given->values.emplace_back(key, fmt::format("{}", fmt::join(words, ",")));
              },
              help)
          ->type_name("VALUE");
    } else {
      // Choices in braces, where the help and the shell's completion look for them.
      command
          .add_option_function<std::string>(
              flag,
              [given, key](const std::string& text) { given->values.emplace_back(key, text); },
              help)
          ->type_name(choice ? fmt::format("{{{}}}", fmt::join(option.choices, ",")) : "VALUE");
    }
  }
  return [given] {
    for (const auto& [key, text] : given->values) {
      std::string flag = "--" + key;
      std::replace(flag.begin(), flag.end(), '_', '-');
      given->set.set(key, text, flag);
    }
  };
}

void ConfigFlags::add_to(CLI::App& command, const std::string& help) {
  command.add_option("config,--config", path, help);
  command.add_option("--set", assignments, "section.key=value, over the configuration");
}

void ConfigFlags::apply_to(Configuration& configuration) const {
  if (!path.empty()) configuration.read(path);
  for (const std::string& assignment : assignments) configuration.set(assignment);
}

void leave(const StopSignal& stop, const std::string& what) {
  log_warning(fmt::format("stopped by {}; {}", stop.name(), what));
  throw CLI::RuntimeError(stop.exit_code());
}

void add_comparison_flags(CLI::App& command, std::vector<std::string>& runs,
                          std::vector<std::string>& metrics, std::string& domain) {
  command
      .add_option("runs", runs,
                  "what train or 'baseline --out' wrote; seed-* folders in one count as one row")
      ->required();
  command.add_option("--metrics", metrics, "columns, such as NDCG@10,HR@5")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--domain", domain, "target or source")
      ->capture_default_str()
      ->check(CLI::IsMember({"target", "source"}));
}

void print_line(const std::string& line, std::FILE* to) {
  const Terminal& errors = Terminal::standard_error();
  const int columns = to == stdout ? output_columns() : (errors.is_terminal() ? errors.width() : 0);
  fmt::print(to, "{}\n", wrapped(line, columns));
}

void print_json(const json& value) {
  // dump() escapes C0 alone; DEL and C1, which begins escape sequences too, occur in strings only.
  const std::string text = value.dump(2, ' ', false, json::error_handler_t::replace);
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (byte == 0x7F) {
      shown += "\\u007f";
    } else if (byte == 0xC2 && next < 0xA0) {
      shown += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      shown.push_back(text[i]);
    }
  }
  std::cout << shown << '\n';
}

}  // namespace cfaa::tools
