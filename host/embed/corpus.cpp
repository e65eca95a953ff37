#include "host/embed/corpus.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/embed/vectors.h"
#include "host/io/atomic_file.h"
#include "host/io/mapped_file.h"
#include "host/io/owned_output.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

enum File : std::size_t { kIds, kEmpty, kVectors };

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
  CorpusVectorSink(const CorpusRequest& request, int64_t width, ResumableFiles& files)
      : request_(request), dtype_(request.options.dtype), width_(width), files_(files) {
    if (files.size(kVectors) == 0) {
      files.append(kVectors, vector_header(vector_format(request.out), dtype_, 0, width));
    }
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

EmbedReport embed_to_files(const CorpusRequest& request, EmbeddingModel& model, bool resumable) {
  const VectorFormat format = vector_format(request.out);
  const EmbedOptions& options = request.options;
  const bool split = options.split == SplitChoice::automatic
                         ? options.as != ModelForm::sentence_transformers
                         : options.split == SplitChoice::sentences;
  CorpusDocuments corpus(request.input, request.lines);
  FirstDocuments first(corpus, request.limit);
  Documents& documents = request.limit > 0 ? static_cast<Documents&>(first) : corpus;

  WindowOptions window = window_options(options, model, split);
  window.spans = request.by_sentence;

  const std::vector<fs::path> files = {stem_of(request.out) + ".ids.tsv",
                                       stem_of(request.out) + ".empty.txt", request.out};
  ResumableFiles::Plan plan;
  for (const fs::path& file : files) plan.files.push_back(output_place(file).string());
  plan.journal = plan.files[kVectors] + ".journal";
  plan.settings = embed_settings(options, model, split);
  plan.settings.merge(
      Fields{{"input", fmt::format("{} bytes with XXH3-128 {}", corpus.size(), corpus.hash())},
             {"format", name_of(request.lines.format)},
             {"field", request.lines.field},
             {"id_field", request.lines.id_field},
             {"unit", request.by_sentence ? "sentence" : "document"},
             {"window", window.sentences}});
  if (request.limit > 0) plan.settings["limit"] = request.limit;
  plan.resumable = resumable && corpus.again();
  plan.fresh = request.fresh;
  if (resumable && !corpus.again()) {
    log_info((request.input == "-" ? std::string("standard input") : request.input) +
             " cannot be read a second time: if this run is interrupted, it has to start over");
  }
  ResumableFiles written(std::move(plan));
  OutputRecord record(stem_of(request.out) + ".files.json", "embed");
  record.check(files, request.force);

  EmbedReport report;
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
    CorpusVectorSink sink(request, report.width, written);
    const EmbedRun run{"embedding", request.threads, request.stop};
    embed_documents(documents, model, window, run, &written, sink, report);
    report.rows = rows();
    if (report.stopped) return report;
    if (request.limit == 0) corpus.check_unchanged();
    written.overwrite(kVectors, 0, vector_header(format, options.dtype, rows(), report.width));
    end_files(written, report);
  }
  record.claim(files, request.force);
  written.put_in_place();
  record.complete();
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
