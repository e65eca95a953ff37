// cfaa_gpu sentences --lang en [FILE]: texts cut into sentences as spaCy's sentencizer cuts them.

#include "host/text/sentences.h"

#include <algorithm>

#include "host/io/utf8.h"
#include "tools/command_line/text_command.h"

namespace cfaa::tools {
namespace {

struct Arguments {
  TextInputFlags input;
  std::string language = "en";
  int time_rounds = 0;
  bool json = false;
};

void run(const Arguments& arguments) {
  SentenceSplitter splitter(arguments.language == "zh" ? Language::kChinese : Language::kEnglish);
  std::vector<Sentence> sentences;
  TextLines lines = arguments.input.open();

  if (arguments.time_rounds > 0) {
    return print_timing(std::move(lines), arguments.time_rounds, "sentences",
                        [&](const auto& texts) {
                          std::size_t count = 0;
                          for (const std::string& text : texts) {
                            splitter.split(text, sentences);
                            to_code_point_offsets(text, sentences);
                            count += sentences.size();
                          }
                          return count;
                        });
  }

  TextOutput output;
  std::string& out = output.buffer();
  for (std::string_view text; lines.next(text);) {
    splitter.split(text, sentences);
    if (arguments.json) {
      to_code_point_offsets(text, sentences);
      const char* separator = "";
      out += "{\"sentences\": [";
      for (const Sentence& sentence : sentences) {
        out += separator;
        out += '[';
        append_number(out, static_cast<std::int64_t>(sentence.begin));
        out += ", ";
        append_number(out, static_cast<std::int64_t>(sentence.end));
        out += ']';
        separator = ", ";
      }
      out += "]}\n";
    } else {
      // A sentence a line, and an empty line behind each text.
      for (const Sentence& sentence : sentences) {
        const std::size_t at = out.size();
        out += text.substr(sentence.begin, sentence.end - sentence.begin);
        std::replace(out.begin() + static_cast<std::ptrdiff_t>(at), out.end(), '\n', ' ');
        out += '\n';
      }
      out += '\n';
    }
    output.settle();
  }
  output.finish();
  report_replaced(lines.replaced());
}

}  // namespace

void add_sentences(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "sentences", "cut texts into sentences where spaCy's sentencizer cuts them");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("--lang", arguments->language, "en or zh")
      ->capture_default_str()
      ->check(CLI::IsMember({"en", "zh"}));
  arguments->input.add_to(*command);
  command->add_flag("--json", arguments->json,
                    "one object a line: {\"sentences\": [[start, end], ...]}, in code points");
  command
      ->add_option("--time", arguments->time_rounds,
                   "split everything this many times and print the time instead")
      ->check(CLI::PositiveNumber);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
