// Any texts to vectors, by a model that stays loaded.

#include <cfaa/core/error.h>
#include <cfaa/device/make_context.h>
#include <cfaa/embed/model.h>
#include <cfaa/embed/pipeline.h>
#include <cfaa/run/configuration.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>

#include "arrays.h"
#include "contexts.h"
#include "module.h"
#include "watch.h"

namespace cfaa::python {
namespace nb = nanobind;
namespace {

using Strings = std::vector<std::string>;

class TextDocuments final : public Documents {
 public:
  explicit TextDocuments(const Strings& texts) : texts_(texts) {}

  bool next(std::string_view& text) override {
    if (at_ == texts_.size()) return false;
    text = texts_[at_++];
    bytes_ += text.size();
    return true;
  }
  void skip(int64_t documents) override { at_ += static_cast<std::size_t>(documents); }
  uint64_t bytes_read() const override { return bytes_; }
  uint64_t bytes_in_all() const override { return 0; }
  int64_t documents_in_all() const override { return static_cast<int64_t>(texts_.size()); }
  std::string unit() const override { return "text"; }

 private:
  const Strings& texts_;
  std::size_t at_ = 0;
  uint64_t bytes_ = 0;
};

// A row for each text: the mean of its sentences, summed in double and rounded once, as
// host/embed/corpus.h has it.
class RowSink final : public VectorSink {
 public:
  explicit RowSink(MatrixView<float> rows) : rows_(rows) {}

  std::vector<char> begin_window(const SentenceWindow& window) override {
    sums_.assign(static_cast<std::size_t>(window.documents() * rows_.cols()), 0);
    return {};
  }
  void sentence(int64_t document, const float* vector) override {
    double* const sum = sums_.data() + document * rows_.cols();
    for (int64_t i = 0; i < rows_.cols(); ++i) sum[i] += static_cast<double>(vector[i]);
  }
  void end_window(const SentenceWindow& window, const EmbedCounts&) override {
    for (int64_t d = 0; d < window.documents(); ++d) {
      const double* const sum = sums_.data() + d * rows_.cols();
      const auto sentences =
          std::max(1.0, static_cast<double>(window.sentences[static_cast<std::size_t>(d)]));
      float* const row = rows_[window.first_document + d].data;
      for (int64_t i = 0; i < rows_.cols(); ++i) row[i] = static_cast<float>(sum[i] / sentences);
    }
  }

 private:
  MatrixView<float> rows_;
  std::vector<double> sums_;
};

class Encoder {
 public:
  Encoder(const std::string& config, const std::string& device, int threads) : threads_(threads) {
    Configuration configuration;
    configuration.read_text(config, "Encoder");
    options_ = configuration.embed;
    const nb::gil_scoped_release without_the_gil;
    context_ = make_context(device, {.threads = threads});
    loaded_ = std::make_unique<LoadedModel>(options_, *context_);
  }

  int64_t width() { return loaded_->model().engine.width(); }
  int64_t max_length() { return loaded_->model().max_length; }

  nb::any encode(nb::handle listener, const Strings& texts) {
    OutputArray<float, 2> rows(context_of("cpu"), {static_cast<int64_t>(texts.size()), width()});
    const bool split = options_.split == SplitChoice::automatic
                           ? options_.as != ModelForm::sentence_transformers
                           : options_.split == SplitChoice::sentences;
    watch(listener, [&](Watch& told) {
      const std::lock_guard<std::mutex> one_at_a_time(mutex_);
      TextDocuments documents(texts);
      RowSink sink(rows.view());
      EmbedReport report;
      embed_documents(documents, loaded_->model(),
                      window_options(options_, loaded_->model(), split),
                      {"encoding", threads_, &told.stop()}, nullptr, sink, report);
    });
    return as_any(std::move(rows).to_python());
  }

 private:
  std::mutex mutex_;
  EmbedOptions options_;
  int threads_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<LoadedModel> loaded_;
};

}  // namespace

void bind_encoder(nb::module_& module) {
  nb::class_<Encoder>(module, "Encoder")
      .def(nb::init<const std::string&, const std::string&, int>(), nb::arg("config"),
           nb::arg("device"), nb::arg("threads"))
      .def("encode", &Encoder::encode, nb::arg("listener").none(), nb::arg("texts"))
      .def_prop_ro("width", &Encoder::width)
      .def_prop_ro("max_length", &Encoder::max_length);
}

}  // namespace cfaa::python
