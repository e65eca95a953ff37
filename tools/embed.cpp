// cfaa_gpu embed data/ --model DIR: vectors of a prepared directory's training reviews.
// cfaa_gpu embed corpus.txt --model DIR --out vectors.npy: a vector for each text or sentence.

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/embed/config.h"
#include "host/embed/corpus.h"
#include "host/embed/reviews.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  std::string input, out, config, unit = "document", format = "auto", field = "text", id_field;
  EmbedConfig embed;
  DeviceFlags device;
  bool fresh = false, json = false;
};

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

json summary_of(const EmbedReport& report) {
  const EmbedCounts& c = report.counts;
  return {{"rows", report.rows},
          {"width", report.width},
          {"documents", c.documents},
          {"sentences", c.sentences},
          {"tokens", c.tokens},
          {"cut", c.cut},
          {"empty", c.empty},
          {"replaced", c.replaced},
          {"unique_share", share(c.encoded_sentences, c.sentences)},
          {"padding_share", 1 - share(c.encoded_tokens, c.padded_tokens) - (c.padded_tokens == 0)},
          {"resumed_at", report.resumed_at},
          {"was_there", report.was_there},
          {"seconds", report.seconds},
          {"encoded_tokens", report.encoded_tokens},
          {"tokens_per_second",
           report.seconds > 0 ? static_cast<double>(report.encoded_tokens) / report.seconds : 0.0}};
}

void print_report(const EmbedReport& report, const std::string& what, int64_t max_length,
                  const std::string& out, const std::string& empty_list) {
  const EmbedCounts& c = report.counts;
  fmt::print("{}: {} rows of {} from {} sentences, {} tokens", what, report.rows, report.width,
             c.sentences, c.tokens);
  if (report.was_there) {
    fmt::print("; all of it was there\n");
  } else {
    fmt::print(" in {:.1f} s\n", report.seconds);
    fmt::print(
        "  {:.0f} real tokens/s, {:.1f} % padding, {:.1f} % of the sentences encoded (each "
        "once in a window)\n",
        report.seconds > 0 ? static_cast<double>(report.encoded_tokens) / report.seconds : 0,
        100 * (1 - share(c.encoded_tokens, c.padded_tokens) - (c.padded_tokens == 0)),
        100 * share(c.encoded_sentences, c.sentences));
  }
  if (c.cut > 0) fmt::print("  {} sentences were cut at {} tokens\n", c.cut, max_length);
  if (c.empty > 0) fmt::print("  {} texts have no token: {} lists them\n", c.empty, empty_list);
  if (c.replaced > 0) fmt::print("  {} pieces were not UTF-8 and became U+FFFD\n", c.replaced);
  fmt::print("  written to {}\n", out);
}

LineFormat line_format(const std::string& name, const std::string& path) {
  if (name == "plain") return LineFormat::kPlain;
  if (name == "json") return LineFormat::kJson;
  if (name == "csv") return LineFormat::kCsv;
  if (name == "tsv") return LineFormat::kTsv;
  return format_by_name(path);
}

// What both forms say of the engine.
void add_engine(json& summary, LoadedModel& loaded) {
  summary["device"] = loaded.model().identity["device"];
  summary["engine"] = loaded.model().engine.description();
  summary["precision"] = loaded.precision();
  summary["max_length"] = loaded.model().max_length;
}

void run_reviews(const Arguments& arguments, bool out_given) {
  if (out_given) {
    throw Error(
        fmt::format("--out is for a corpus file; the vectors of {} go into it", arguments.input));
  }
  const Dataset data = load_dataset(arguments.input);
  const auto context = arguments.device.make_context();
  LoadedModel loaded(arguments.embed, *context);
  log_info(loaded.model().engine.description());
  ReviewsRequest request;
  request.language = arguments.embed.lang;
  request.split = arguments.embed.split != SplitChoice::none;
  request.dtype = arguments.embed.dtype;
  request.window_sentences = arguments.embed.window;
  request.threads = arguments.device.threads;
  request.fresh = arguments.fresh;

  json summary = json::object();
  for (const Domain* domain : {&data.source, &data.target}) {
    const EmbedReport report = embed_reviews(*domain, request, loaded.model());
    summary[domain->name] = summary_of(report);
    if (arguments.json) continue;
    print_report(report, domain->name, loaded.model().max_length, domain->path.string(),
                 (domain->path / "empty_reviews.txt").string());
  }
  add_engine(summary, loaded);
  if (arguments.json) print_json(summary);
}

void run_corpus(const Arguments& arguments) {
  if (arguments.out.empty()) {
    throw Error(
        fmt::format("--out is needed: where the vectors of {} go, a name in .npy or "
                    ".safetensors",
                    arguments.input));
  }
  vector_format(arguments.out);
  if (arguments.input != "-" && !std::filesystem::exists(arguments.input)) {
    throw Error(arguments.input + ": there is no such file or directory");
  }
  const auto context = arguments.device.make_context();
  LoadedModel loaded(arguments.embed, *context);
  log_info(loaded.model().engine.description());
  CorpusRequest request;
  request.input = arguments.input;
  request.out = arguments.out;
  request.lines = {.format = line_format(arguments.format, arguments.input),
                   .field = arguments.field,
                   .id_field = arguments.id_field,
                   .absent_is_empty = true};
  request.by_sentence = arguments.unit == "sentence";
  request.split = arguments.embed.split == SplitChoice::automatic
                      ? arguments.embed.as != ModelForm::sentence_transformers
                      : arguments.embed.split == SplitChoice::sentences;
  request.language = arguments.embed.lang;
  request.dtype = arguments.embed.dtype;
  request.window_sentences = arguments.embed.window;
  request.threads = arguments.device.threads;
  request.fresh = arguments.fresh;

  const EmbedReport report = embed_corpus(request, loaded.model());
  if (arguments.json) {
    json summary = summary_of(report);
    summary["out"] = arguments.out;
    add_engine(summary, loaded);
    print_json(summary);
  } else {
    print_report(report, arguments.input == "-" ? "standard input" : arguments.input,
                 loaded.model().max_length, arguments.out,
                 arguments.out.substr(0, arguments.out.rfind('.')) + ".empty.txt");
  }
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  OptionSet set = embed_option_set(arguments.embed);
  const json config = read_config(arguments.config);
  if (config.contains("embed")) set.read(config["embed"], arguments.config);
  apply_flags();
  // A file that may not grow is an error of the write, with a sentence, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  if (arguments.input != "-" && std::filesystem::is_directory(arguments.input)) {
    run_reviews(arguments, !arguments.out.empty());
  } else {
    run_corpus(arguments);
  }
}

}  // namespace

void add_embed(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "embed", "vectors of texts by a BERT or RoBERTa encoder: a prepared directory, or a corpus");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("input", arguments->input,
                   "a prepared directory; or texts: .txt, .jsonl, .csv, .tsv, also with .gz or "
                   ".zst; '-' is standard input")
      ->required();
  command->add_option("--out", arguments->out, "of a corpus: vectors.npy or vectors.safetensors");
  command->add_option("--unit", arguments->unit, "of a corpus: a row for each document or sentence")
      ->capture_default_str()
      ->check(CLI::IsMember({"document", "sentence"}));
  command
      ->add_option("--format", arguments->format,
                   "of a corpus: auto (by its name, or its first line), plain, json, csv, tsv")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "plain", "json", "csv", "tsv"}));
  command->add_option("--field", arguments->field, "the field or column that holds the text")
      ->capture_default_str();
  command->add_option("--id-field", arguments->id_field,
                      "a field or column that is kept beside, in NAME.ids.tsv");
  command->add_flag("--fresh", arguments->fresh,
                    "start over: forget an interrupted run, replace embeddings that are there");
  command->add_option("--config", arguments->config, "configuration with an 'embed' section");
  command->add_flag("--json", arguments->json, "machine output on stdout");
  arguments->device.add_to(*command);
  const auto apply_flags = add_option_flags(*command, embed_option_set(arguments->embed));
  command->callback([arguments, apply_flags] { run(*arguments, apply_flags); });
}

}  // namespace cfaa::tools
