// cfaa_gpu tokenize --model DIR [FILE]: token ids of texts, as Hugging Face's fast tokenizers give.

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/text/tokenizer.h"
#include "tools/command_line/text_command.h"

namespace cfaa::tools {
namespace {

struct Arguments {
  TextInputFlags input;
  std::string model, special = "plain", lower_case = "model";
  std::int64_t max_length = 0;
  int time_rounds = 0;
  bool json = false;
};

void run(const Arguments& arguments) {
  TokenizerOptions options;
  if (arguments.special == "parity") options.special_literals = SpecialLiterals::kParity;
  if (arguments.lower_case != "model") options.lower_case = arguments.lower_case == "on";
  const auto tokenizer = load_tokenizer(arguments.model, options);
  const std::size_t max_length = arguments.max_length > 0
                                     ? static_cast<std::size_t>(arguments.max_length)
                                     : Tokenizer::kNoLimit;
  TokenizerScratch scratch(*tokenizer);
  std::vector<std::int32_t> ids;
  tokenizer->encode("", max_length, scratch, ids);  // refuses a length that is too small
  TextLines lines = arguments.input.open();

  if (arguments.time_rounds > 0) {
    return print_timing(std::move(lines), arguments.time_rounds, "tokens", [&](const auto& texts) {
      std::size_t count = 0;
      for (const std::string& text : texts) {
        tokenizer->encode(text, max_length, scratch, ids);
        count += ids.size();
      }
      return count;
    });
  }

  std::vector<std::string> shown(tokenizer->vocabulary_size());
  for (std::size_t id = 0; id < shown.size(); ++id) {
    const std::string& token = tokenizer->token(static_cast<std::int32_t>(id));
    if (arguments.json) {
      append_json_string(shown[id], token);
    } else {
      shown[id] = token;
    }
  }
  TextOutput output;
  std::string& out = output.buffer();
  std::size_t truncated = 0;
  for (std::string_view text; lines.next(text);) {
    truncated += tokenizer->encode(text, max_length, scratch, ids).truncated;
    const char* separator = "";
    if (arguments.json) {
      out += "{\"ids\": [";
      for (const std::int32_t id : ids) {
        out += separator;
        append_number(out, id);
        separator = ", ";
      }
      out += "], \"tokens\": [";
      separator = "";
    }
    for (const std::int32_t id : ids) {
      out += separator;
      out += shown[static_cast<std::size_t>(id)];
      separator = arguments.json ? ", " : " ";
    }
    out += arguments.json ? "]}\n" : "\n";
    output.settle();
  }
  output.finish();
  report_replaced(lines.replaced());
  if (truncated > 0) {
    log_warning(fmt::format("{} text{} cut at {} tokens", truncated,
                            truncated == 1 ? " was" : "s were", max_length));
  }
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("tokenize", "token ids of texts, equal to Hugging Face's fast tokenizers");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("--model", arguments->model, "a Hugging Face directory with its vocabulary")
      ->required();
  arguments->input.add_to(*command);
  command
      ->add_option("--max-length", arguments->max_length,
                   "cut to this many tokens, the closing one kept; 0: never")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--special", arguments->special,
                   "'[SEP]' or '<mask>' in a text: plain (ordinary text) or parity (the special "
                   "token, as Hugging Face has it)")
      ->capture_default_str()
      ->check(CLI::IsMember({"plain", "parity"}));
  command
      ->add_option("--lower-case", arguments->lower_case,
                   "on or off overrides the model's do_lower_case (BERT)")
      ->capture_default_str()
      ->check(CLI::IsMember({"model", "on", "off"}));
  command->add_flag("--json", arguments->json, "one object a line: {\"ids\": [], \"tokens\": []}");
  command
      ->add_option("--time", arguments->time_rounds,
                   "tokenize everything this many times and print the time instead")
      ->check(CLI::PositiveNumber);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
