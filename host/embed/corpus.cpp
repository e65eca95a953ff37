#include "host/embed/corpus.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/embed/shards/corpus_parts.h"
#include "host/embed/vectors.h"
#include "host/io/atomic_file.h"
#include "host/io/mapped_file.h"
#include "host/io/owned_output.h"

namespace cfaa {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

enum File : std::size_t { kIds, kEmpty, kVectors, kDescription };

const char* name_of(LineFormat format) {
  switch (format) {
    case LineFormat::kPlain:
      return "plain";
    case LineFormat::kJson:
      return "json";
    case LineFormat::kCsv:
      return "csv";
    case LineFormat::kTsv:
      return "tsv";
    case LineFormat::kDetect:
      break;
  }
  return "auto";
}

// An id in a cell of a .tsv file: tabs and line ends are escaped as Python writes them.
void append_cell(std::string_view id, std::string& out) {
  for (const char c : id) {
    switch (c) {
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        out += c;
    }
  }
}

class CorpusVectorSink : public VectorSink {
 public:
  CorpusVectorSink(const CorpusRequest& request, VectorFormat format, int64_t width,
                   ResumableFiles& files)
      : request_(request), dtype_(request.options.dtype), width_(width), files_(files) {
    if (files.size(kVectors) == 0) files.append(kVectors, vector_header(format, dtype_, 0, width));
    const bool ids = !request.lines.id_field.empty();
    if (files.size(kIds) == 0 && (ids || request.by_sentence)) {
      files.append(kIds,
                   fmt::format("row{}{}\n", request.by_sentence ? "\tdocument\tstart\tend" : "",
                               ids ? "\tid" : ""));
    }
  }

  std::vector<char> begin_window(const SentenceWindow& window) override {
    rows_.clear();
    if (!request_.by_sentence) {
      sums_.assign(static_cast<std::size_t>(window.documents() * width_), 0);
    }
    return {};
  }

  void sentence(int64_t document, const float* vector) override {
    if (request_.by_sentence) return append_elements(dtype_, vector, width_, rows_);
    double* sum = sums_.data() + document * width_;
    for (int64_t i = 0; i < width_; ++i) sum[i] += static_cast<double>(vector[i]);
  }

  void end_window(const SentenceWindow& window, const EmbedCounts& counts) override {
    if (!request_.by_sentence) {
      for (int64_t d = 0; d < window.documents(); ++d) {
        double* row = sums_.data() + d * width_;
        const auto sentences = static_cast<double>(window.sentences[static_cast<std::size_t>(d)]);
        for (int64_t i = 0; sentences > 1 && i < width_; ++i) row[i] /= sentences;
        append_elements(dtype_, row, width_, rows_);
      }
    }
    files_.append(kVectors, rows_.data(), rows_.size());
    write_ids(window, counts);
    std::string empty;
    for (const int64_t document : window.empty) empty += fmt::format("{}\n", document);
    files_.append(kEmpty, empty);
  }

 private:
  void write_ids(const SentenceWindow& window, const EmbedCounts& counts) {
    const bool ids = !request_.lines.id_field.empty();
    if (!ids && !request_.by_sentence) return;
    std::string lines;
    int64_t sentence = 0, row = request_.by_sentence ? counts.sentences - window.sentence_count()
                                                     : window.first_document;
    for (int64_t d = 0; d < window.documents(); ++d) {
      const auto at = static_cast<std::size_t>(d);
      const uint64_t id_begin = d == 0 ? 0 : window.id_end[at - 1];
      const std::string_view id =
          std::string_view(window.ids).substr(id_begin, window.id_end[at] - id_begin);
      const int64_t rows = request_.by_sentence ? window.sentences[at] : 1;
      for (int64_t r = 0; r < rows; ++r) {
        lines += fmt::format("{}", row++);
        if (request_.by_sentence) {
          const Sentence& span = window.spans[static_cast<std::size_t>(sentence++)];
          lines += fmt::format("\t{}\t{}\t{}", window.first_document + d, span.begin, span.end);
        }
        if (ids) lines += '\t', append_cell(id, lines);
        lines += '\n';
      }
    }
    files_.append(kIds, lines);
  }

  const CorpusRequest& request_;
  DType dtype_;
  int64_t width_;
  ResumableFiles& files_;
  std::vector<double> sums_;  // (documents of the window, width)
  std::vector<std::byte> rows_;
};

std::string stem_of(const std::string& out) {
  return out.substr(0, out.rfind('.'));
}

// In the order of File.
std::vector<fs::path> output_files(const std::string& stem, const std::string& vectors) {
  return {stem + ".ids.tsv", stem + ".empty.txt", vectors};
}

// Where a run writes: the files of the output, or those of a shard and its description.
std::vector<fs::path> output_files(const CorpusRequest& request) {
  if (!request.shard) return output_files(stem_of(request.out), request.out);
  const std::string stem = shards_folder(request.out) + "/" + request.shard->name();
  std::vector<fs::path> files = output_files(stem, stem + ".npy");
  files.push_back(stem + ".json");
  return files;
}

void write_index(const fs::path& folder, const std::vector<ShardDescription>& shards,
                 const EmbedReport& report) {
  json list = json::array();
  int64_t first_row = 0;
  for (const ShardDescription& shard : shards) {
    for (const ShardDescription::File& file : shard.files) ShardFile(folder, shard, file.end);
    list.push_back(
        {{"file", shard.shard.name() + ".npy"}, {"first_row", first_row}, {"rows", shard.rows}});
    first_row += shard.rows;
  }
  const json index = {{"format", 1},
                      {"rows", report.rows},
                      {"width", report.width},
                      {"dtype", shown(shards.front().settings.at("dtype"))},
                      {"shards", list}};
  write_file((folder / "index.json").string(), index.dump(2) + "\n");
}

EmbedReport embed_to_files(const CorpusRequest& request, EmbeddingModel& model, bool resumable) {
  const std::optional<Shard>& shard = request.shard;
  const VectorFormat format = shard ? VectorFormat::npy : vector_format(request.out);
  const EmbedOptions& options = request.options;
  const bool split = options.split == SplitChoice::automatic
                         ? options.as != ModelForm::sentence_transformers
                         : options.split == SplitChoice::sentences;
  CorpusDocuments corpus(shard ? shard_parts(request.inputs, request.lines, *shard)
                               : whole_parts(request.inputs, request.lines.format),
                         request.lines);
  FirstDocuments first(corpus, request.limit);
  Documents& documents = request.limit > 0 ? static_cast<Documents&>(first) : corpus;

  WindowOptions window = window_options(options, model, split);
  window.spans = request.by_sentence;

  const std::vector<fs::path> files = output_files(request);
  ResumableFiles::Plan plan;
  for (const fs::path& file : files) plan.files.push_back(output_place(file).string());
  plan.journal =
      shard ? stem_of(plan.files[kDescription]) + ".journal" : plan.files[kVectors] + ".journal";
  plan.settings = embed_settings(options, model, split);
  plan.settings.merge(
      Fields{{"input", corpus.identity()},
             {"format", name_of(format_of(request.inputs.front(), request.lines.format))},
             {"field", request.lines.field},
             {"id_field", request.lines.id_field},
             {"unit", request.by_sentence ? "sentence" : "document"},
             {"window", window.sentences}});
  if (request.limit > 0) plan.settings["limit"] = request.limit;
  if (shard) plan.settings["shard"] = shard->text();
  plan.resumable = resumable && corpus.again();
  plan.fresh = request.fresh;
  if (resumable && !corpus.again()) {
    log_info((request.inputs.front() == "-" ? "standard input" : request.inputs.front()) +
             " cannot be read a second time: if this run is interrupted, it has to start over");
  }
  EmbedReport report;
  const Fields settings = plan.settings;
  if (shard) {
    fs::create_directories(shards_folder(request.out));
    if (!request.fresh && shard_is_there(shards_folder(request.out), *shard, settings, report)) {
      return report;
    }
  }
  ResumableFiles written(std::move(plan));
  // A folder of shards is embed's own.
  std::optional<OutputRecord> record;
  if (!shard) {
    record.emplace(stem_of(request.out) + ".files.json", "embed");
    record->check(files, request.force);
  }
  report.width = model.engine.width();
  report.counts = EmbedCounts::of(written.state());
  report.resumed_at = report.counts.documents;
  const auto rows = [&] {
    return request.by_sentence ? report.counts.sentences : report.counts.documents;
  };
  if (!written.complete()) {
    if (!written.state().empty()) {
      log_info(fmt::format("resuming after document {} of an interrupted run", report.resumed_at));
    }
    CorpusVectorSink sink(request, format, report.width, written);
    const EmbedRun run{"embedding", request.threads, request.stop};
    embed_documents(documents, model, window, run, &written, sink, report);
    report.rows = rows();
    if (report.stopped) return report;
    if (request.limit == 0) corpus.check_unchanged();
    written.overwrite(kVectors, 0, vector_header(format, options.dtype, rows(), report.width));
    if (shard) {
      const ShardDescription description =
          describe_shard(*shard, settings, bytes_of(request.inputs), report, written,
                         {".ids.tsv", ".empty.txt", ".npy"});
      written.append(kDescription, to_text(description));
    }
    end_files(written, report);
  }
  if (record) record->claim(files, request.force);
  written.put_in_place();
  if (record) record->complete();
  report.rows = rows();
  return report;
}

// A folder for what is on its way to a stream, gone with it.
class PassingFolder {
 public:
  PassingFolder() : path_((fs::temp_directory_path() / "cfaa_gpu-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw Error(fmt::format("{}: no folder can be made there; set TMPDIR to a place with room",
                              fs::temp_directory_path().string()));
    }
  }
  ~PassingFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string shards_folder(const std::string& out) {
  return stem_of(out) + ".shards";
}

EmbedReport join_corpus(const JoinRequest& request) {
  const VectorFormat format = vector_format(request.out);
  const fs::path folder = shards_folder(request.out);
  const std::vector<ShardDescription> shards = read_shards(folder);
  const EmbedReport report = total_of(shards);
  if (request.index) {
    write_index(folder, shards, report);
    return report;
  }
  Fields settings = shards.front().settings;
  const auto is = [&](const char* name, const char* value) {
    const auto found = settings.find(name);
    return found != settings.end() && shown(found->second) == value;
  };
  const DType dtype = is("dtype", "float16") ? DType::f16 : DType::f32;
  const bool by_sentence = is("unit", "sentence");

  const std::vector<fs::path> files = output_files(stem_of(request.out), request.out);
  ResumableFiles::Plan plan;
  for (const fs::path& file : files) plan.files.push_back(output_place(file).string());
  plan.journal = plan.files[kVectors] + ".journal";
  plan.settings = {{"shards", std::ssize(shards)}};
  plan.resumable = false;
  plan.fresh = request.fresh;
  ResumableFiles written(std::move(plan));
  OutputRecord record(stem_of(request.out) + ".files.json", "embed");
  record.check(files, request.force);

  written.append(kVectors, vector_header(format, dtype, report.rows, report.width));
  const std::size_t header = vector_header(VectorFormat::npy, dtype, 0, report.width).size();
  int64_t rows = 0, documents = 0;
  for (const ShardDescription& shard : shards) {
    written.append(kVectors, ShardFile(folder, shard, ".npy").bytes().substr(header));
    const ShardFile ids(folder, shard, ".ids.tsv"), empty(folder, shard, ".empty.txt");
    std::string lines;
    if (!ids.bytes().empty()) {
      const std::size_t first_line = ids.bytes().find('\n') + 1;
      if (written.size(kIds) == 0) lines = ids.bytes().substr(0, first_line);
      std::vector<int64_t> columns = {rows};
      if (by_sentence) columns.push_back(documents);
      add_to_numbers(ids.bytes().substr(first_line), columns, lines);
      written.append(kIds, lines);
      lines.clear();
    }
    add_to_numbers(empty.bytes(), {documents}, lines);
    written.append(kEmpty, lines);
    rows += shard.rows;
    documents += shard.counts.documents;
  }
  end_files(written, report);
  record.claim(files, request.force);
  written.put_in_place();
  record.complete();
  return report;
}

EmbedReport embed_corpus(const CorpusRequest& request, EmbeddingModel& model) {
  if (!is_stream(request.out)) return embed_to_files(request, model, true);
  // The header tells the number of rows, which is known at the end.
  const PassingFolder folder;
  CorpusRequest passing = request;
  passing.out = folder.path() + "/vectors.npy";
  const EmbedReport report = embed_to_files(passing, model, false);
  if (report.stopped) return report;
  AtomicFile stream(request.out);
  const MappedFile vectors(passing.out);
  stream.write(vectors.bytes().data(), vectors.bytes().size());
  stream.commit();
  return report;
}

}  // namespace cfaa
