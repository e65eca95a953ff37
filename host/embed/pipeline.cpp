#include "host/embed/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "host/core/stopwatch.h"
#include "host/core/terminal/progress.h"
#include "host/embed/batches.h"

namespace cfaa {
namespace {

struct CountField {
  const char* name;
  int64_t EmbedCounts::*value;
};
constexpr CountField kFields[] = {{"documents", &EmbedCounts::documents},
                                  {"sentences", &EmbedCounts::sentences},
                                  {"tokens", &EmbedCounts::tokens},
                                  {"encoded_sentences", &EmbedCounts::encoded_sentences},
                                  {"encoded_tokens", &EmbedCounts::encoded_tokens},
                                  {"padded_tokens", &EmbedCounts::padded_tokens},
                                  {"cut", &EmbedCounts::cut},
                                  {"replaced", &EmbedCounts::replaced},
                                  {"empty", &EmbedCounts::empty}};

}  // namespace

Fields EmbedCounts::fields() const {
  Fields fields;
  for (const CountField& field : kFields) fields[field.name] = this->*field.value;
  return fields;
}

EmbedCounts EmbedCounts::of(const Fields& fields) {
  EmbedCounts counts;
  for (const CountField& field : kFields) counts.*field.value = whole_field(fields, field.name);
  return counts;
}

int64_t default_window_sentences(const NetworkEngine& engine) {
  // 32 batches of short sentences a slot; and where these are few (a CPU with few cores) some
  // thousand sentences, fewer for a wide network, whose sentences take longer.
  const int64_t full = 32 * engine.slots() * engine.batch_rows(engine.padded_length(32));
  const int64_t least =
      std::max<int64_t>(2048, 8192 * 384 / std::max<int64_t>(384, engine.width()));
  return std::clamp<int64_t>(full, least, 65536);
}

WindowOptions window_options(const EmbedOptions& options, const EmbeddingModel& model, bool split) {
  WindowOptions window;
  window.split = split;
  window.language = options.lang;
  window.max_length = model.max_length;
  window.strip = model.strip;
  window.sentences = options.window > 0 ? options.window : default_window_sentences(model.engine);
  return window;
}

Fields embed_settings(const EmbedOptions& options, const EmbeddingModel& model, bool split) {
  Fields settings = model.identity;
  settings["split"] = split ? "sentences" : "none";
  settings["lang"] = options.lang == Language::kEnglish ? "en" : "zh";
  settings["dtype"] = name_of(options.dtype);
  settings["max_length"] = model.max_length;
  return settings;
}

void end_files(ResumableFiles& files, const EmbedReport& report) {
  files.drop_window();
  files.end(report.counts.fields());
}

namespace {

constexpr double kSaveSeconds = 5;  // of work that a kill may cost

// One call of embed_documents.
class Pipeline {
 public:
  Pipeline(Documents& documents, EmbeddingModel& model, const WindowOptions& options,
           const EmbedRun& run, ResumableFiles* files, VectorSink& sink, EmbedReport& report)
      : documents_(documents),
        options_(options),
        run_(run),
        files_(files),
        sink_(sink),
        report_(report),
        pool_(run.threads),
        encoder_(model.engine, model.tokenizer.pad_id().value_or(0)),
        width_(model.engine.width()) {
    if (files_ && !files_->state().empty()) take_up(files_->state());
    report_.resumed_at = counts().documents;
    documents_.skip(counts().documents);
    reader_ = std::make_unique<WindowReader>(documents_, model.tokenizer, options_, pool_,
                                             counts().documents);
  }

  void run() {
    // A corpus is measured: how many documents it has is known at its end.
    by_documents_ = documents_.documents_in_all() > 0;
    const auto bytes_in_all = static_cast<int64_t>(documents_.bytes_in_all());
    Progress progress(run_.label, by_documents_ ? documents_.documents_in_all() : bytes_in_all,
                      by_documents_ ? ProgressUnit{documents_.unit()} : ProgressUnit{"MB", 1e-6});
    const auto bytes_before = static_cast<int64_t>(documents_.bytes_read());
    progress.resume_at(by_documents_ ? counts().documents : bytes_before);

    const auto read_next = [&] {
      return std::async(std::launch::async, [this] { return reader_->next(); });
    };
    int64_t bytes_done = 0;
    for (auto next = read_next(); !report_.stopped;) {
      const SentenceWindow window = next.get();
      if (window.documents() == 0) break;
      next = read_next();
      if (!encode(window, progress)) {
        report_.stopped = true;
        break;
      }
      count(window);
      bytes_done += static_cast<int64_t>(window.bytes);
      sink_.end_window(window, counts());
      if (files_) files_->end_window(state());
      since_save_ = Stopwatch();
      report_.stopped = stop_requested();
    }
    progress.finish();
    report_.seconds = watch_.seconds();
    report_.encoded_tokens = encoder_.encoded_tokens();
    if (bytes_in_all > bytes_before) {
      report_.share =
          static_cast<double>(bytes_done) / static_cast<double>(bytes_in_all - bytes_before);
    }
  }

 private:
  EmbedCounts& counts() { return report_.counts; }
  bool stop_requested() const { return run_.stop != nullptr && run_.stop->load(); }

  // Encodes a window and hands its vectors over; false where it was stopped before its end.
  bool encode(const SentenceWindow& window, Progress& progress) {
    const std::vector<char> had = sink_.begin_window(window);
    const auto skipped = [&](int64_t document) {
      return !had.empty() && had[static_cast<std::size_t>(document)];
    };
    const int64_t tokens = std::max<int64_t>(1, window.begin.back());
    const int64_t amount = by_documents_ ? window.documents() : static_cast<int64_t>(window.bytes);
    int64_t tokens_done = 0, shown = 0, document = 0, left = window.sentences[0];
    for (int64_t first = 0; first < window.sentence_count();) {
      // A huge document may have more sentences than a window should: the vectors in memory are
      // those of one run of them, and such a window is kept at its end only.
      const int64_t last = std::min(window.sentence_count(), first + 2 * options_.sentences);
      const bool whole = first == 0 && last == window.sentence_count();
      encoder_.begin(window, first, last, had);
      if (first == 0) restore(whole);
      const bool finished = encoder_.encode([&](int64_t batch_tokens) {
        tokens_done += batch_tokens;
        const auto done =
            static_cast<int64_t>(static_cast<double>(amount) * static_cast<double>(tokens_done) /
                                 static_cast<double>(tokens));
        show(progress);
        progress.advance(done - std::exchange(shown, done));
        if (whole && (stop_requested() || since_save_.seconds() > kSaveSeconds)) save();
        return !stop_requested();
      });
      if (!finished) return false;
      for (int64_t s = first; s < last; ++s, --left) {
        while (left == 0) left = window.sentences[static_cast<std::size_t>(++document)];
        if (!skipped(document)) sink_.sentence(document, encoder_.vector(s));
      }
      first = last;
    }
    progress.advance(amount - shown);
    return true;
  }

  void show(Progress& progress) const {
    const auto encoded = static_cast<double>(encoder_.encoded_tokens());
    progress.rate(encoded / std::max(watch_.seconds(), 1e-9), "token");
    progress.note(fmt::format(
        "{:.1f} % padding",
        100 - 100 * encoded / static_cast<double>(std::max<int64_t>(1, encoder_.padded_tokens()))));
  }

  void count(const SentenceWindow& window) {
    counts().documents += window.documents();
    counts().sentences += window.sentence_count();
    counts().tokens += window.begin.back();
    counts().cut += window.cut;
    counts().replaced += window.replaced;
    counts().empty += static_cast<int64_t>(window.empty.size());
    counts().encoded_sentences = before_.encoded_sentences + encoder_.encoded_sentences();
    counts().encoded_tokens = before_.encoded_tokens + encoder_.encoded_tokens();
    counts().padded_tokens = before_.padded_tokens + encoder_.padded_tokens();
    saved_rows_ = 0;
  }

  // What a journal keeps: the counts, and the windows' size, which a run that resumes takes over,
  // so that its windows are those that would have been.
  Fields state() const {
    Fields state = report_.counts.fields();
    state["window"] = options_.sentences;
    return state;
  }

  void take_up(const Fields& state) {
    counts() = EmbedCounts::of(state);
    before_ = counts();
    options_.sentences = whole_field(state, "window", options_.sentences);
    kept_ = state;
  }

  // Keeps what is encoded of the window under way.
  void save() {
    since_save_ = Stopwatch();
    const int64_t rows = encoder_.rows_done();
    if (!files_ || rows == saved_rows_) return;
    std::vector<float> vectors;
    encoder_.append_rows(saved_rows_, vectors);
    files_->append_window(vectors.data(), vectors.size() * sizeof(float));
    saved_rows_ = rows;
    Fields state = this->state();
    const auto now = [&](int64_t EmbedCounts::*value, int64_t encoded) {
      return before_.*value + encoded - report_.counts.*value;
    };
    state["under_way_rows"] = rows;
    state["under_way_key"] = encoder_.key(rows);
    state["under_way_encoded_tokens"] =
        now(&EmbedCounts::encoded_tokens, encoder_.encoded_tokens());
    state["under_way_padded_tokens"] = now(&EmbedCounts::padded_tokens, encoder_.padded_tokens());
    files_->save_window(state);
  }

  // Takes over what the interrupted run had encoded of its last window, where it fits.
  void restore(bool whole) {
    const Fields kept = std::exchange(kept_, {});
    const int64_t rows = whole_field(kept, "under_way_rows");
    if (rows == 0) return;
    const std::vector<std::byte> bytes = files_->window();
    if (whole && bytes.size() == static_cast<std::size_t>(rows * width_) * sizeof(float) &&
        encoder_.restore(reinterpret_cast<const float*>(bytes.data()), rows,
                         shown(kept.at("under_way_key")))) {
      saved_rows_ = rows;
      before_.encoded_sentences += rows;
      before_.encoded_tokens += whole_field(kept, "under_way_encoded_tokens");
      before_.padded_tokens += whole_field(kept, "under_way_padded_tokens");
    } else {
      files_->drop_window();
    }
  }

  Documents& documents_;
  WindowOptions options_;
  const EmbedRun& run_;
  ResumableFiles* files_;
  VectorSink& sink_;
  EmbedReport& report_;
  ThreadPool pool_;
  std::unique_ptr<WindowReader> reader_;
  BatchEncoder encoder_;
  int64_t width_, saved_rows_ = 0;
  EmbedCounts before_;  // what interrupted runs encoded, added to what this encoder says
  Fields kept_;         // what the interrupted run kept of its last window
  bool by_documents_ = false;
  Stopwatch watch_, since_save_;
};

}  // namespace

void embed_documents(Documents& documents, EmbeddingModel& model, WindowOptions options,
                     const EmbedRun& run, ResumableFiles* files, VectorSink& sink,
                     EmbedReport& report) {
  report.width = model.engine.width();
  Pipeline(documents, model, options, run, files, sink, report).run();
}

}  // namespace cfaa
