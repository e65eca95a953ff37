#include "host/embed/corpus.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/embed/resumable_files.h"

namespace cfaa {
namespace {

using nlohmann::json;

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
  CorpusVectorSink(const CorpusRequest& request, int64_t width, int64_t window_sentences,
                   ResumableFiles& files)
      : request_(request), width_(width), window_sentences_(window_sentences), files_(files) {
    if (files.size(kVectors) == 0) {
      files.append(kVectors, vector_header(vector_format(request.out), request.dtype, 0, width));
    }
    const bool ids = !request.lines.id_field.empty();
    if (files.size(kIds) == 0 && (ids || request.by_sentence)) {
      files.append(kIds,
                   fmt::format("row{}{}\n", request.by_sentence ? "\tdocument\tstart\tend" : "",
                               ids ? "\tid" : ""));
    }
  }

  void begin_window(const SentenceWindow& window) override {
    rows_.clear();
    if (!request_.by_sentence) {
      sums_.assign(static_cast<std::size_t>(window.documents() * width_), 0);
    }
  }

  void sentence(int64_t document, const float* vector) override {
    if (request_.by_sentence) return append_elements(request_.dtype, vector, width_, rows_);
    double* sum = sums_.data() + document * width_;
    for (int64_t i = 0; i < width_; ++i) sum[i] += static_cast<double>(vector[i]);
  }

  void end_window(const SentenceWindow& window, const EmbedCounts& counts) override {
    if (!request_.by_sentence) {
      for (int64_t d = 0; d < window.documents(); ++d) {
        double* row = sums_.data() + d * width_;
        const auto sentences = static_cast<double>(window.sentences[static_cast<std::size_t>(d)]);
        for (int64_t i = 0; sentences > 1 && i < width_; ++i) row[i] /= sentences;
        append_elements(request_.dtype, row, width_, rows_);
      }
    }
    files_.append(kVectors, rows_.data(), rows_.size());
    write_ids(window, counts);
    std::string empty;
    for (const int64_t document : window.empty) empty += fmt::format("{}\n", document);
    files_.append(kEmpty, empty);
    files_.end_window(resume_state(counts, window_sentences_));
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
  int64_t width_, window_sentences_;
  ResumableFiles& files_;
  std::vector<double> sums_;  // (documents of the window, width)
  std::vector<std::byte> rows_;
};

}  // namespace

EmbedReport embed_corpus(const CorpusRequest& request, EmbeddingModel& model) {
  const VectorFormat format = vector_format(request.out);
  const std::string stem = request.out.substr(0, request.out.rfind('.'));
  const int64_t width = model.engine.width();
  CorpusDocuments documents(request.input, request.lines);

  WindowOptions options;
  options.split = request.split;
  options.language = request.language;
  options.max_length = model.max_length;
  options.strip = model.strip;
  options.sentences = request.window_sentences > 0 ? request.window_sentences
                                                   : default_window_sentences(model.engine);
  options.spans = request.by_sentence;

  ResumableFiles::Plan plan;
  plan.journal = request.out + ".journal";
  plan.files = {stem + ".ids.tsv", stem + ".empty.txt", request.out};
  plan.settings = model.identity;
  plan.settings.update(
      {{"input", fmt::format("{} bytes with XXH3-128 {}", documents.size(), documents.hash())},
       {"format", name_of(request.lines.format)},
       {"field", request.lines.field},
       {"id_field", request.lines.id_field},
       {"unit", request.by_sentence ? "sentence" : "document"},
       {"split", request.split ? "sentences" : "none"},
       {"lang", request.language == Language::kEnglish ? "en" : "zh"},
       {"dtype", cfaa::name_of(request.dtype)},
       {"max_length", model.max_length},
       {"window", options.sentences}});
  plan.resumable = documents.again();
  plan.fresh = request.fresh;
  if (!plan.resumable) {
    log_info((request.input == "-" ? std::string("standard input") : request.input) +
             " cannot be read a second time: if this run is interrupted, it has to start over");
  }
  ResumableFiles files(std::move(plan));

  EmbedReport report;
  report.counts = EmbedCounts::from_json(files.state());
  report.width = width;
  report.resumed_at = report.counts.documents;
  if (report.resumed_at > 0) {
    log_info(fmt::format("resuming after document {} of an interrupted run", report.resumed_at));
  }
  const auto rows = [&] {
    return request.by_sentence ? report.counts.sentences : report.counts.documents;
  };
  if (!files.complete()) {
    options.sentences = resumed_window(files.state(), options.sentences);
    CorpusVectorSink sink(request, width, options.sentences, files);
    const int64_t before = report.counts.encoded_tokens;
    report.seconds =
        embed_documents(documents, model, options,
                        {.label = "embedding", .threads = request.threads}, sink, report.counts);
    report.encoded_tokens = report.counts.encoded_tokens - before;
    documents.check_unchanged();
    files.overwrite(kVectors, 0, vector_header(format, request.dtype, rows(), width));
    files.end(resume_state(report.counts, options.sentences));
  }
  files.put_in_place();
  report.rows = rows();
  return report;
}

}  // namespace cfaa
