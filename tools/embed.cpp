// cfaa_gpu embed data/ --model DIR: vectors of a prepared directory's training reviews.
// cfaa_gpu embed corpus.txt --model DIR --out vectors.npy: a vector for each text or sentence.
// Either with --shard 17/1000, and then cfaa_gpu embed --join vectors.npy or --join data/.

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/terminal/quantity.h"
#include "host/core/terminal/stop_signal.h"
#include "host/embed/corpus.h"
#include "host/embed/known_reviews.h"
#include "host/embed/model.h"
#include "host/embed/reviews.h"
#include "host/embed/shards/corpus_parts.h"
#include "host/embed/vectors.h"
#include "host/io/atomic_file.h"
#include "host/run/configuration.h"
#include "host/run/directory/directory_kind.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  ConfigFlags config;
  std::vector<std::string> inputs, more;
  std::string first, out, shard, join, unit = "document", format = "auto", field = "text", id_field;
  EmbedOptions options;
  DeviceFlags device;
  std::vector<std::string> reuse;
  int64_t limit = 0;
  bool index = false, fresh = false, force = false, json = false;

  const std::string& input() const { return inputs.front(); }
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
          {"reused", report.reused},
          {"was_there", report.was_there},
          {"seconds", report.seconds},
          {"encoded_tokens", report.encoded_tokens},
          {"tokens_per_second",
           report.seconds > 0 ? static_cast<double>(report.encoded_tokens) / report.seconds : 0.0}};
}

// `to`: stderr where the vectors themselves go to stdout.
void print_report(const EmbedReport& report, const std::string& what, int64_t max_length,
                  const std::string& out, const std::string& empty_list, std::FILE* to) {
  const EmbedCounts& c = report.counts;
  const std::string made =
      fmt::format("{}: {} of {} from {}, {}", what, counted(report.rows, "row"), report.width,
                  counted(c.sentences, "sentence"), counted(c.tokens, "token"));
  if (report.was_there) {
    print_line(made + "; all of it was there", to);
  } else {
    print_line(made + fmt::format(" in {:.1f} s", report.seconds), to);
    const double rate =
        report.seconds > 0 ? static_cast<double>(report.encoded_tokens) / report.seconds : 0;
    print_line(
        fmt::format("  {} real tokens/s, {:.1f} % padding, {:.1f} % of the sentences "
                    "encoded (each once in a window)",
                    short_number(rate),
                    100 * (1 - share(c.encoded_tokens, c.padded_tokens) - (c.padded_tokens == 0)),
                    100 * share(c.encoded_sentences, c.sentences)),
        to);
  }
  if (report.reused > 0) {
    fmt::print(to, "  {} had the vectors of the same text in another prepared directory\n",
               counted(report.reused, "review"));
  }
  if (c.cut > 0) {
    fmt::print(to, "  {} cut at {} tokens\n", counted(c.cut, "sentence was", "sentences were"),
               max_length);
  }
  if (c.empty > 0) {
    fmt::print(to, "  {} no token: {} lists {}\n", counted(c.empty, "text has", "texts have"),
               empty_list, c.empty == 1 ? "it" : "them");
  }
  if (c.replaced > 0) {
    fmt::print(to, "  {} not UTF-8 and became U+FFFD\n",
               counted(c.replaced, "piece was", "pieces were"));
  }
  fmt::print(to, "  written to {}\n", out);
}

constexpr const char* kResume = "what is encoded is kept, and the same command resumes there";

LineFormat line_format(const std::string& name) {
  if (name == "plain") return LineFormat::kPlain;
  if (name == "json") return LineFormat::kJson;
  if (name == "csv") return LineFormat::kCsv;
  if (name == "tsv") return LineFormat::kTsv;
  return LineFormat::kDetect;
}

// What both forms say of the engine.
void add_engine(json& summary, LoadedModel& loaded) {
  summary["device"] = shown(loaded.model().identity.at("device"));
  summary["engine"] = loaded.model().engine.description();
  summary["precision"] = loaded.precision();
  summary["max_length"] = loaded.model().max_length;
}

ReviewsRequest reviews_request(const Arguments& arguments, const StopSignal& stop) {
  ReviewsRequest request;
  request.options = arguments.options;
  request.threads = arguments.device.threads;
  request.fresh = arguments.fresh;
  request.force = arguments.force;
  request.stop = &stop.requested();
  if (!arguments.shard.empty()) request.shard = parse_shard(arguments.shard);
  for (const std::string& directory : arguments.reuse) {
    if (!std::filesystem::exists(std::filesystem::path(directory) / "prepare.json")) {
      throw Error(directory + ": is no prepared directory, so it has no vectors to reuse");
    }
    request.reuse.push_back(directory);
  }
  if (!arguments.fresh) {
    for (const auto& directory : embedded_beside(arguments.input())) {
      request.reuse.push_back(directory);
    }
  }
  return request;
}

// The first reviews of each domain, and what all of them would take.
void run_first_look(const Arguments& arguments, const Dataset& data, LoadedModel& loaded,
                    const StopSignal& stop) {
  const ReviewsRequest request = reviews_request(arguments, stop);
  json summary = json::object();
  for (const Domain* domain : {&data.source, &data.target}) {
    const EmbedReport report = try_reviews(*domain, request, arguments.limit, loaded.model());
    if (report.stopped) leave(stop, "nothing was to be kept of a first look");
    const double all = report.share > 0 ? report.seconds / report.share : report.seconds;
    summary[domain->name] = summary_of(report);
    summary[domain->name]["seconds_for_all"] = all;
    if (arguments.json) continue;
    fmt::print("{}: {} of {} in {:.1f} s; all of them would take about {}\n", domain->name,
               report.rows, counted(domain->train.size(), "review"), report.seconds,
               clock_text(all));
  }
  add_engine(summary, loaded);
  if (arguments.json) return print_json(summary);
  fmt::print("a first look: nothing was written; without --limit the vectors go into {}\n",
             arguments.input());
}

void run_reviews(const Arguments& arguments) {
  if (!arguments.out.empty()) {
    throw Error(
        fmt::format("--out is for a corpus file; the vectors of {} go into it", arguments.input()));
  }
  if (arguments.inputs.size() > 1) {
    throw Error(fmt::format("{} is a prepared directory, which is embedded by itself: leave {} out",
                            arguments.input(), arguments.inputs[1]));
  }
  const Dataset data = load_dataset(arguments.input());
  const auto context = arguments.device.make_context();
  LoadedModel loaded(arguments.options, *context);
  log_info(loaded.model().engine.description());
  const StopSignal stop;
  if (arguments.limit > 0) return run_first_look(arguments, data, loaded, stop);

  const ReviewsRequest request = reviews_request(arguments, stop);
  json summary = json::object();
  for (const Domain* domain : {&data.source, &data.target}) {
    const EmbedReport report = embed_reviews(*domain, request, loaded.model());
    if (report.stopped) leave(stop, kResume);
    summary[domain->name] = summary_of(report);
    if (arguments.json) continue;
    const std::filesystem::path empty =
        request.shard ? domain->path / "embed.shards" / (request.shard->name() + ".empty.txt")
                      : domain->path / "empty_reviews.txt";
    print_report(report, domain->name, loaded.model().max_length, domain->path.string(),
                 empty.string(), stdout);
  }
  add_engine(summary, loaded);
  if (arguments.json) print_json(summary);
}

void run_corpus(const Arguments& arguments) {
  if (arguments.out.empty()) {
    throw Error(
        fmt::format("--out is needed: where the vectors of {} go, a name in .npy or "
                    ".safetensors, or - for .npy on standard output",
                    arguments.input()));
  }
  if (!arguments.reuse.empty()) {
    throw Error("--reuse is for a prepared directory; " + arguments.input() + " is a corpus");
  }
  const bool stream = is_stream(arguments.out), to_stdout = arguments.out == "-";
  if (to_stdout && arguments.json) {
    throw Error("--json and --out - would both write to standard output; leave one out");
  }
  if (!stream) vector_format(arguments.out);
  for (const std::string& input : arguments.inputs) {
    if (input != "-" && !std::filesystem::exists(input)) {
      throw Error(input + ": there is no such file or directory");
    }
  }
  std::optional<Shard> shard;
  if (!arguments.shard.empty()) {
    shard = parse_shard(arguments.shard);
    if (stream) throw Error("--shard writes files beside --out, which must be a file's name");
    if (arguments.limit > 0) throw Error("--limit and --shard exclude each other; leave one out");
    bytes_of(arguments.inputs);  // before the model is loaded
  }
  const auto context = arguments.device.make_context();
  LoadedModel loaded(arguments.options, *context);
  log_info(loaded.model().engine.description());
  const StopSignal stop;
  CorpusRequest request;
  request.inputs = arguments.inputs;
  request.out = arguments.out;
  request.shard = shard;
  request.lines = {.format = line_format(arguments.format),
                   .field = arguments.field,
                   .id_field = arguments.id_field,
                   .absent_is_empty = true};
  request.by_sentence = arguments.unit == "sentence";
  request.options = arguments.options;
  request.limit = arguments.limit;
  request.threads = arguments.device.threads;
  request.fresh = arguments.fresh;
  request.force = arguments.force;
  request.stop = &stop.requested();

  const EmbedReport report = embed_corpus(request, loaded.model());
  if (report.stopped) {
    leave(stop, stream || arguments.input() == "-" ? "nothing could be kept: start over" : kResume);
  }
  if (arguments.json) {
    json summary = summary_of(report);
    summary["out"] = arguments.out;
    add_engine(summary, loaded);
    print_json(summary);
    return;
  }
  std::string what = arguments.input() == "-" ? "standard input" : arguments.input();
  if (arguments.inputs.size() > 1) what = counted(std::ssize(arguments.inputs), "file");
  std::string out = to_stdout ? "standard output" : arguments.out;
  std::string stem = arguments.out.substr(0, arguments.out.rfind('.'));
  if (shard) {
    what += " shard " + shard->text();
    stem = shards_folder(arguments.out) + "/" + shard->name();
    out = stem + ".npy";
  }
  print_report(report, what, loaded.model().max_length, out, stem + ".empty.txt",
               to_stdout ? stderr : stdout);
}

void print_joined(const EmbedReport& report, const std::string& what, const std::string& out) {
  fmt::print("{}: {} of {} from {}, {}; {}\n", what, counted(report.rows, "row"), report.width,
             counted(report.counts.sentences, "sentence"), counted(report.counts.tokens, "token"),
             report.was_there ? "all of it was there" : "written to " + out);
}

void run_join(const Arguments& arguments) {
  if (!arguments.inputs.empty() || !arguments.out.empty() || !arguments.shard.empty()) {
    throw Error(
        "--join takes the output or the prepared directory by itself: leave the input, "
        "--out and --shard out");
  }
  json summary = json::object();
  if (std::filesystem::is_directory(arguments.join)) {
    if (arguments.index) {
      throw Error("--index is for a corpus; training reads the joined files of " + arguments.join);
    }
    require_prepared(arguments.join);
    const Dataset data = load_dataset(arguments.join);
    ReviewsRequest request;
    request.threads = arguments.device.threads;
    request.fresh = arguments.fresh;
    request.force = arguments.force;
    for (const Domain* domain : {&data.source, &data.target}) {
      const EmbedReport report = join_reviews(*domain, request);
      summary[domain->name] = summary_of(report);
      if (!arguments.json) print_joined(report, domain->name, domain->path.string());
    }
  } else {
    const JoinRequest request{arguments.join, arguments.index, arguments.fresh, arguments.force};
    const EmbedReport report = join_corpus(request);
    const std::string out =
        arguments.index ? shards_folder(arguments.join) + "/index.json" : arguments.join;
    summary = summary_of(report);
    summary["out"] = out;
    if (!arguments.json) print_joined(report, arguments.join, out);
  }
  if (arguments.json) print_json(summary);
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  Configuration configuration;
  arguments.config.apply_to(configuration);
  arguments.options = configuration.embed;
  apply_flags();
  // A file that may not grow is an error of the write, with a sentence, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  if (!arguments.first.empty()) arguments.inputs = {arguments.first};
  arguments.inputs.insert(arguments.inputs.end(), arguments.more.begin(), arguments.more.end());
  if (!arguments.join.empty()) return run_join(arguments);
  if (arguments.index) throw Error("--index goes with --join");
  if (arguments.inputs.empty()) {
    throw Error("embed needs a prepared directory or a corpus; 'cfaa_gpu embed --help' tells more");
  }
  if (arguments.input() != "-" && std::filesystem::is_directory(arguments.input())) {
    require_prepared(arguments.input());
    run_reviews(arguments);
  } else {
    run_corpus(arguments);
  }
}

}  // namespace

void add_embed(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "embed", "vectors of texts by a BERT or RoBERTa encoder: a prepared directory, or a corpus");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("input", arguments->first,
                      "a prepared directory; or texts: .txt, .jsonl, .csv, .tsv, also with .gz or "
                      ".zst; '-' is standard input");
  command->add_option("--more", arguments->more, "of a corpus: further files, behind the first");
  command->add_option(
      "--out", arguments->out,
      "of a corpus: vectors.npy or vectors.safetensors; - is .npy on standard output");
  command->add_option("--shard", arguments->shard,
                      "only this part of the texts: 0/8, 1/8, ... 7/8; --join puts them together");
  command->add_option("--join", arguments->join,
                      "put the shards of this output or prepared directory together");
  command->add_flag("--index", arguments->index,
                    "with --join of a corpus: verify the shards and list them, without a copy");
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
  command
      ->add_option("--limit", arguments->limit,
                   "a first look: embed the first N texts; of a prepared directory the first N "
                   "reviews of each domain, and write nothing")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_option("--reuse", arguments->reuse,
                      "prepared directories whose vectors are taken where they have the same text; "
                      "those beside the input are looked into anyway, unless --fresh");
  command->add_flag("--force", arguments->force, "replace files that embed did not write");
  command->add_flag("--fresh", arguments->fresh,
                    "start over: forget an interrupted run, replace embeddings that are there");
  arguments->config.add_to(*command, "a configuration; its 'embed' section is read");
  command->add_flag("--json", arguments->json, "machine output on stdout");
  arguments->device.add_to(*command);
  const auto apply_flags = add_option_flags(*command, embed_option_set(arguments->options));
  command->callback([arguments, apply_flags] { run(*arguments, apply_flags); });
}

}  // namespace cfaa::tools
