#include "host/embed/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "host/core/progress.h"
#include "host/embed/batches.h"

namespace cfaa {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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

json EmbedCounts::to_json() const {
  json object = json::object();
  for (const CountField& field : kFields) object[field.name] = this->*field.value;
  return object;
}

EmbedCounts EmbedCounts::from_json(const json& object) {
  EmbedCounts counts;
  if (object.is_null()) return counts;
  for (const CountField& field : kFields) counts.*field.value = object.at(field.name);
  return counts;
}

json resume_state(const EmbedCounts& counts, int64_t window_sentences) {
  json state = counts.to_json();
  state["window"] = window_sentences;
  return state;
}

int64_t resumed_window(const json& state, int64_t otherwise) {
  return state.is_null() ? otherwise : state.at("window").get<int64_t>();
}

int64_t default_window_sentences(const NetworkEngine& engine) {
  // 32 batches of short sentences a slot; and where these are few (a CPU with few cores) some
  // thousand sentences, fewer for a wide network, whose sentences take longer.
  const int64_t full = 32 * engine.slots() * engine.batch_rows(engine.padded_length(32));
  const int64_t least =
      std::max<int64_t>(2048, 8192 * 384 / std::max<int64_t>(384, engine.width()));
  return std::clamp<int64_t>(full, least, 65536);
}

double embed_documents(Documents& documents, EmbeddingModel& model, const WindowOptions& options,
                       const EmbedRun& run, VectorSink& sink, EmbedCounts& counts) {
  documents.skip(counts.documents);
  ThreadPool pool(run.threads);
  WindowReader reader(documents, model.tokenizer, options, pool, counts.documents);
  BatchEncoder encoder(model.engine, model.tokenizer.pad_id().value_or(0));
  const EmbedCounts before = counts;
  const auto start = Clock::now();
  // Reviews are counted, a corpus is measured: its documents are known at its end.
  const bool by_documents = documents.documents_in_all() > 0;
  const auto bytes_in_all = static_cast<int64_t>(documents.bytes_in_all());
  Progress progress(run.label, by_documents ? documents.documents_in_all() : bytes_in_all,
                    by_documents ? ProgressUnit{"review"} : ProgressUnit{"MB", 1e-6});
  progress.resume_at(by_documents ? counts.documents
                                  : static_cast<int64_t>(documents.bytes_read()));

  const auto read_next = [&] {
    return std::async(std::launch::async, [&reader] { return reader.next(); });
  };
  for (auto next = read_next();;) {
    const SentenceWindow window = next.get();
    if (window.documents() == 0) break;
    next = read_next();

    int64_t tokens_done = 0, shown = 0;
    const int64_t tokens = window.begin.back();
    const int64_t amount = by_documents ? window.documents() : static_cast<int64_t>(window.bytes);
    const auto show = [&](int64_t batch_tokens) {
      tokens_done += batch_tokens;
      const double elapsed = std::max(seconds_since(start), 1e-9);
      const auto done =
          static_cast<int64_t>(static_cast<double>(amount) * static_cast<double>(tokens_done) /
                               static_cast<double>(std::max<int64_t>(1, tokens)));
      progress.rate(static_cast<double>(encoder.encoded_tokens()) / elapsed, "token");
      progress.note(fmt::format(
          "{:.1f} % padding",
          100 - 100 * static_cast<double>(encoder.encoded_tokens()) /
                    static_cast<double>(std::max<int64_t>(1, encoder.padded_tokens()))));
      progress.advance(done - std::exchange(shown, done));
    };

    sink.begin_window(window);
    int64_t document = 0, left = window.sentences[0];
    for (int64_t first = 0; first < window.sentence_count();) {
      // A huge document may have more sentences than a window should: the vectors in memory are
      // those of one run of them.
      const int64_t last = std::min(window.sentence_count(), first + 2 * options.sentences);
      encoder.encode(window, first, last, show);
      for (int64_t s = first; s < last; ++s, --left) {
        while (left == 0) left = window.sentences[static_cast<std::size_t>(++document)];
        sink.sentence(document, encoder.vector(s));
      }
      first = last;
    }
    counts.documents += window.documents();
    counts.sentences += window.sentence_count();
    counts.tokens += tokens;
    counts.encoded_sentences = before.encoded_sentences + encoder.encoded_sentences();
    counts.encoded_tokens = before.encoded_tokens + encoder.encoded_tokens();
    counts.padded_tokens = before.padded_tokens + encoder.padded_tokens();
    counts.cut += window.cut;
    counts.replaced += window.replaced;
    counts.empty += static_cast<int64_t>(window.empty.size());
    sink.end_window(window, counts);
    progress.advance(amount - shown);
  }
  progress.finish();
  return seconds_since(start);
}

}  // namespace cfaa
