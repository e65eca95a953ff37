#include "host/embed/review_reader.h"

#include <fmt/format.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/embed/pipeline.h"
#include "host/embed/review_sums.h"
#include "host/embed/vectors.h"

namespace cfaa {
namespace {

class GivenTexts final : public Documents {
 public:
  explicit GivenTexts(std::span<const std::string_view> texts) : texts_(texts) {}

  bool next(std::string_view& text) override {
    if (at_ == texts_.size()) return false;
    text = texts_[at_++];
    bytes_ += text.size();
    return true;
  }
  void skip(int64_t documents) override { at_ += static_cast<std::size_t>(documents); }
  uint64_t bytes_read() const override { return bytes_; }
  uint64_t bytes_in_all() const override { return 0; }
  int64_t documents_in_all() const override { return std::ssize(texts_); }
  std::string unit() const override { return "review"; }

 private:
  std::span<const std::string_view> texts_;
  std::size_t at_ = 0;
  uint64_t bytes_ = 0;
};

// As host/embed/reviews.h has it: summed in double in the order of the sentences, rounded once.
class SumSink final : public VectorSink {
 public:
  SumSink(DType dtype, TextSums& sums) : dtype_(dtype), sums_(sums) {}

  std::vector<char> begin_window(const SentenceWindow& window) override {
    window_.assign(static_cast<std::size_t>(window.documents() * sums_.width), 0);
    return {};
  }
  void sentence(int64_t document, const float* vector) override {
    double* const sum = window_.data() + document * sums_.width;
    for (int64_t i = 0; i < sums_.width; ++i) sum[i] += static_cast<double>(vector[i]);
  }
  void end_window(const SentenceWindow& window, const EmbedCounts&) override {
    std::vector<std::byte> bytes;
    append_elements(dtype_, window_.data(), std::ssize(window_), bytes);
    const std::size_t before = sums_.sum.size();
    sums_.sum.resize(before + window_.size());
    convert<float>(dtype_, bytes.data(), 1, std::ssize(window_), sums_.sum.data() + before);
    sums_.count.insert(sums_.count.end(), window.sentences.begin(), window.sentences.end());
  }

 private:
  DType dtype_;
  TextSums& sums_;
  std::vector<double> window_;
};

// What made the domain's vectors, but for where the model lies.
EmbedOptions options_of(const Domain& embedded, const Fields& settings, const std::string& model) {
  const bool whole = settings.contains("strip") && settings.at("strip") == FieldValue(true);
  nlohmann::json keys = {{"model", model},
                         {"as", whole ? "sentence-transformers" : "encoder"},
                         {"max_length", whole_field(settings, "max_length")},
                         {"layer", std::to_string(whole_field(settings, "layer"))}};
  for (const char* name : {"pooling", "precision", "split", "lang"}) {
    if (settings.contains(name)) keys[name] = shown(settings.at(name));
  }
  EmbedOptions options;
  embed_option_set(options).read(keys, (embedded.path / "embed.json").string());
  const auto dtype = settings.find("dtype");
  if (dtype != settings.end() && shown(dtype->second) == name_of(DType::f16)) {
    options.dtype = DType::f16;
  }
  return options;
}

class EncoderReader final : public ReviewReader {
 public:
  EncoderReader(Context& context, const std::string& model, const Domain& embedded)
      : description_(read_embed_description(embedded)),
        options_(options_of(embedded, description_.settings, model)),
        loaded_(options_, context),
        threads_(context.threads().threads()) {
    const bool split = options_.split != SplitChoice::none;
    Fields now = embed_settings(options_, loaded_.model(), split);
    Fields before = description_.settings;
    for (const auto& [key, value] : review_identity(embedded)) before.erase(key);
    if (const std::string what = setting_difference(before, now); !what.empty()) {
      throw Error(fmt::format("--model {}: does not make the vectors of {}: they have {}", model,
                              embedded.path.parent_path().string(), what));
    }
  }

  TextSums read(std::span<const std::string_view> texts) override {
    const std::lock_guard one_at_a_time(mutex_);
    TextSums sums;
    sums.width = description_.width;
    GivenTexts documents(texts);
    SumSink sink(options_.dtype, sums);
    EmbedReport report;
    report.width = sums.width;
    EmbedRun run;
    run.threads = threads_;
    embed_documents(documents, loaded_.model(),
                    window_options(options_, loaded_.model(), options_.split != SplitChoice::none),
                    run, nullptr, sink, report);
    return sums;
  }

 private:
  EmbedDescription description_;
  EmbedOptions options_;
  LoadedModel loaded_;
  int threads_;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<ReviewReader> make_review_reader(Context& context, const std::string& model,
                                                 const Domain& embedded) {
  return std::make_unique<EncoderReader>(context, model, embedded);
}

}  // namespace cfaa
