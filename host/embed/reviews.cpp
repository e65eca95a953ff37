#include "host/embed/reviews.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/version.h"
#include "host/data/review_text.h"
#include "host/embed/known_reviews.h"
#include "host/embed/review_sums.h"
#include "host/embed/summaries.h"
#include "host/embed/vectors.h"
#include "host/io/json_file.h"
#include "host/io/mapped_file.h"
#include "host/io/owned_output.h"

namespace cfaa {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

enum File : std::size_t { kSums, kCounts, kUsers, kItems, kEmpty, kDescription };
// With summaries: every sentence's vector, while they are made, and the summaries of either side.
enum SummaryFile : std::size_t {
  kSentences = kDescription,
  kUserSums,
  kItemSums = kUserSums + 2,
  kSummaryDescription = kItemSums + 2
};

constexpr std::array<const char*, 4> kSummaryFiles = {
    "user_summary_sums.npy", "user_summary_counts.npy", "item_summary_sums.npy",
    "item_summary_counts.npy"};

class DomainVectorSink : public VectorSink {
 public:
  // `keep`: every sentence's vector too.
  DomainVectorSink(DType dtype, int64_t width, const KnownReviews& known, bool keep,
                   ResumableFiles& files)
      : dtype_(dtype), width_(width), known_(known), keep_(keep), files_(files) {
    if (files.size(kSums) == 0) {
      files.append(kSums, vector_header(VectorFormat::npy, dtype, 0, width));
      files.append(kCounts, vector_header(VectorFormat::npy, DType::i32, 0, 0));
    }
  }

  std::vector<char> begin_window(const SentenceWindow& window) override {
    sums_.assign(static_cast<std::size_t>(window.documents() * width_), 0);
    std::vector<char> had;
    for (std::size_t d = 0; d < window.hashes.size(); ++d) {
      had.push_back(known_.add_sum(window.hashes[d], window.sentences[d],
                                   sums_.data() + static_cast<int64_t>(d) * width_));
      reused_ += had.back();
    }
    return had;
  }

  void sentence(int64_t document, const float* vector) override {
    double* sum = sums_.data() + document * width_;
    for (int64_t i = 0; i < width_; ++i) sum[i] += static_cast<double>(vector[i]);
    if (keep_) sentences_.insert(sentences_.end(), vector, vector + width_);
  }

  void end_window(const SentenceWindow& window, const EmbedCounts&) override {
    rows_.clear();
    append_elements(dtype_, sums_.data(), static_cast<int64_t>(sums_.size()), rows_);
    files_.append(kSums, rows_.data(), rows_.size());
    files_.append(kCounts, window.sentences.data(), window.sentences.size() * sizeof(int32_t));
    std::string empty;
    for (const int64_t document : window.empty) empty += fmt::format("{}\n", document);
    files_.append(kEmpty, empty);
    if (!keep_) return;
    files_.append(kSentences, sentences_.data(), sentences_.size() * sizeof(float));
    sentences_.clear();
  }

  int64_t reused() const { return reused_; }

 private:
  DType dtype_;
  int64_t width_, reused_ = 0;
  const KnownReviews& known_;
  bool keep_;
  ResumableFiles& files_;
  std::vector<double> sums_;      // (documents of the window, width)
  std::vector<float> sentences_;  // (sentences of the window, width), where they are kept
  std::vector<std::byte> rows_;
};

// The mean over all sentences of each group's rows. Rows of a group are gathered from the mapped
// sums, so memory does not grow with users or items.
void write_means(const std::vector<int32_t>& group_of_row, int64_t groups, DType dtype,
                 int64_t width, ThreadPool& pool, std::size_t file, ResumableFiles& files) {
  const std::size_t header = vector_header(VectorFormat::npy, dtype, 0, width).size();
  const MappedFile sums(files.partial(kSums)), counts(files.partial(kCounts));
  const std::byte* sum_rows = sums.bytes().data() + header;
  const auto* count_rows = reinterpret_cast<const int32_t*>(counts.bytes().data() + header);

  std::vector<int64_t> begin(static_cast<std::size_t>(groups) + 1, 0);
  for (const int32_t group : group_of_row) ++begin[static_cast<std::size_t>(group) + 1];
  for (std::size_t g = 0; g < static_cast<std::size_t>(groups); ++g) begin[g + 1] += begin[g];
  std::vector<int64_t> rows(group_of_row.size()), next(begin.begin(), begin.end() - 1);
  for (std::size_t r = 0; r < group_of_row.size(); ++r) {
    rows[static_cast<std::size_t>(next[static_cast<std::size_t>(group_of_row[r])]++)] =
        static_cast<int64_t>(r);
  }

  files.append(file, vector_header(VectorFormat::npy, dtype, groups, width));
  constexpr int64_t kBlock = 4096, kGrain = 64;
  std::vector<double> means;
  std::vector<std::byte> bytes;
  for (int64_t first = 0; first < groups; first += kBlock) {
    const int64_t count = std::min(kBlock, groups - first);
    means.assign(static_cast<std::size_t>(count * width), 0);
    pool.parallel_for(count, kGrain, [&](int64_t from, int64_t to, int) {
      std::vector<float> row(static_cast<std::size_t>(width));
      for (int64_t g = from; g < to; ++g) {
        double* mean = means.data() + g * width;
        int64_t sentences = 0;
        for (int64_t at = begin[static_cast<std::size_t>(first + g)];
             at < begin[static_cast<std::size_t>(first + g) + 1]; ++at) {
          const int64_t r = rows[static_cast<std::size_t>(at)];
          sentences += count_rows[r];
          convert(dtype, sum_rows + r * width * static_cast<int64_t>(size_of(dtype)), 1, width,
                  row.data());
          for (int64_t i = 0; i < width; ++i) {
            mean[i] += static_cast<double>(row[static_cast<std::size_t>(i)]);
          }
        }
        for (int64_t i = 0; sentences > 1 && i < width; ++i) {
          mean[i] /= static_cast<double>(sentences);
        }
      }
    });
    bytes.clear();
    append_elements(dtype, means.data(), count * width, bytes);
    files.append(file, bytes.data(), bytes.size());
  }
}

// The sums and counts of those sentences of each review that are in the summary of its user, or of
// its item.
void write_summary(const std::vector<int32_t>& entity_of_row, int64_t entities, DType dtype,
                   int64_t width, ThreadPool& pool, std::size_t file, ResumableFiles& files) {
  const std::size_t header = vector_header(VectorFormat::npy, dtype, 0, width).size();
  const MappedFile counts(files.partial(kCounts));
  const std::span<const int32_t> sentences_of_row(
      reinterpret_cast<const int32_t*>(counts.bytes().data() + header), entity_of_row.size());
  const int64_t all = std::accumulate(sentences_of_row.begin(), sentences_of_row.end(), int64_t{0});
  const auto rows = std::ssize(entity_of_row);
  files.append(file, vector_header(VectorFormat::npy, dtype, rows, width));
  files.append(file + 1, vector_header(VectorFormat::npy, DType::i32, rows, 0));
  if (all == 0 && rows == 0) return;
  std::optional<MappedFile> vectors;
  if (all > 0) vectors.emplace(files.partial(kSentences));
  const auto* sentence =
      all > 0 ? reinterpret_cast<const float*>(vectors->bytes().data()) : nullptr;
  const std::vector<char> chosen = summarize(pool, entity_of_row, entities, sentences_of_row,
                                             {sentence, {all, width}}, file == kUserSums ? 0 : 1);

  std::vector<double> sum(static_cast<std::size_t>(width));
  std::vector<std::byte> bytes;
  std::size_t next = 0;
  for (const int32_t sentences : sentences_of_row) {
    std::fill(sum.begin(), sum.end(), 0.0);
    int32_t count = 0;
    for (int32_t s = 0; s < sentences; ++s, ++next) {
      if (chosen[next] == 0) continue;
      const float* vector = sentence + static_cast<int64_t>(next) * width;
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += static_cast<double>(vector[c]);
      ++count;
    }
    bytes.clear();
    append_elements(dtype, sum.data(), width, bytes);
    files.append(file, bytes.data(), bytes.size());
    files.append(file + 1, &count, sizeof(count));
  }
}

// Hours of encoding should not end at a full disk that could be seen at the start.
void check_room(const Domain& domain, int64_t width, DType dtype, uint64_t there) {
  struct statvfs disk {};
  if (::statvfs(domain.path.c_str(), &disk) != 0) return;
  const auto row = static_cast<uint64_t>(width) * size_of(dtype);
  const uint64_t rows =
      static_cast<uint64_t>(domain.train.size() + domain.users.size() + domain.items.size());
  const uint64_t needed = rows * row + static_cast<uint64_t>(domain.train.size()) * 4;
  const uint64_t free = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (needed <= there || needed - there <= free) return;
  throw Error(fmt::format(
      "{}: the review vectors need {:.1f} MB more and {:.1f} MB are free: no space left; free "
      "some room, or use --dtype float16",
      domain.path.string(), static_cast<double>(needed - there) / 1e6,
      static_cast<double>(free) / 1e6));
}

json description_of(const Domain& domain, const Fields& settings, const EmbedReport& report) {
  json description = {{"format", 1},
                      {"program", std::string("cfaa_gpu ") + version()},
                      {"settings", to_json(settings)},
                      {"width", report.width},
                      {"rows", domain.train.size()},
                      {"users", domain.users.size()},
                      {"items", domain.items.size()}};
  description["counts"] = to_json(report.counts.fields());
  return description;
}

// For a first look.
class NoSink : public VectorSink {
 public:
  std::vector<char> begin_window(const SentenceWindow&) override { return {}; }
  void sentence(int64_t, const float*) override {}
  void end_window(const SentenceWindow&, const EmbedCounts&) override {}
};

bool splits(const EmbedOptions& options) {
  return options.split != SplitChoice::none;
}

// The files of all reviews of a domain; what they are made with is left to the caller.
ResumableFiles::Plan whole_plan(const Domain& domain, bool summaries) {
  ResumableFiles::Plan plan;
  const auto place = [&](const char* name) { return (domain.path / name).string(); };
  plan.journal = place("embed.journal");
  plan.files = {place("review_sums.npy"), place("review_counts.npy"), place("user_reviews.npy"),
                place("item_reviews.npy"), place("empty_reviews.txt")};
  if (summaries) {
    plan.files.push_back(place("review_sentences.f32"));
    for (const char* name : kSummaryFiles) plan.files.push_back(place(name));
  }
  plan.files.push_back(place("embed.json"));
  return plan;
}

// Whether these embeddings are there already; Error where others are.
bool was_there(const Domain& domain, const ResumableFiles::Plan& plan, const Fields& settings,
               bool summaries, const ReviewsRequest& request, EmbedReport& report) {
  std::error_code none;
  const bool interrupted = fs::file_size(plan.journal, none) > 0 && !none;
  const std::string described = plan.files.back();
  const bool there = fs::exists(described);
  if (!request.fresh && !interrupted && there) {
    const EmbedDescription description = read_embed_description(domain);
    if (const std::string what = setting_difference(description.settings, settings);
        !what.empty()) {
      throw Error(
          fmt::format("{}: the embeddings there have {}; --fresh replaces them", described, what));
    }
    if (summaries && !description.summaries) {
      throw Error(fmt::format(
          "{}: the embeddings there have no summaries; --fresh makes them again, with summaries",
          described));
    }
    report.counts = EmbedCounts::of(description.counts);
    report.was_there = true;
    return true;
  }
  if (!interrupted && !there) {
    for (const std::string& file : plan.files) check_output(file, "", request.force);
  }
  return false;
}

// Sums, counts and empty reviews of the documents; and their sentences, where summaries are kept.
void encode(Documents& documents, const Domain& domain, const Fields& how,
            const ReviewsRequest& request, EmbeddingModel& model, ResumableFiles& files,
            EmbedReport& report) {
  const EmbedOptions& options = request.options;
  if (!files.state().empty()) {
    log_info(fmt::format("{}: resuming after review {} of an interrupted run", domain.name,
                         report.resumed_at));
  }
  // Other directories have sums of reviews, but not their sentences.
  const KnownReviews known(options.summaries ? std::vector<std::filesystem::path>() : request.reuse,
                           how);
  WindowOptions window = window_options(options, model, splits(options));
  window.hashes = !known.empty();
  DomainVectorSink sink(options.dtype, report.width, known, options.summaries, files);
  const EmbedRun run{"embedding " + domain.name, request.threads, request.stop};
  embed_documents(documents, model, window, run, &files, sink, report);
  report.reused = sink.reused();
}

// The numbers of rows are known: into the headers with them.
void write_headers(DType dtype, const EmbedReport& report, ResumableFiles& files) {
  const auto header = [&](DType type, int64_t columns) {
    return vector_header(VectorFormat::npy, type, report.rows, columns);
  };
  files.overwrite(kSums, 0, header(dtype, report.width));
  files.overwrite(kCounts, 0, header(DType::i32, 0));
}

// Everything that is made of all sums and counts, and embed.json.
void finish(const Domain& domain, const Fields& settings, DType dtype, bool summaries, int threads,
            ResumableFiles& files, const EmbedReport& report) {
  CFAA_ASSERT(report.counts.documents == report.rows);
  const int64_t width = report.width;
  write_headers(dtype, report, files);
  ThreadPool pool(threads);
  write_means(domain.train.user, domain.users.size(), dtype, width, pool, kUsers, files);
  write_means(domain.train.item, domain.items.size(), dtype, width, pool, kItems, files);
  if (summaries) {
    write_summary(domain.train.user, domain.users.size(), dtype, width, pool, kUserSums, files);
    write_summary(domain.train.item, domain.items.size(), dtype, width, pool, kItemSums, files);
    files.drop(kSentences);
  }
  json description = description_of(domain, settings, report);
  if (summaries) description["summaries"] = true;
  const std::size_t file = summaries ? std::size_t{kSummaryDescription} : kDescription;
  files.append(file, description.dump(2) + "\n");
  end_files(files, report);
}

void put_in_place(const Domain& domain, bool summaries, ResumableFiles& files) {
  files.put_in_place();
  if (summaries) return;
  // Those of embeddings that were replaced.
  for (const char* name : kSummaryFiles) fs::remove(domain.path / name);
}

constexpr const char* kShardFolder = "embed.shards";

// What follows a shard's name, in the order of File; the means are the join's and stay empty.
std::vector<std::string> shard_ends(bool summaries) {
  std::vector<std::string> ends = {".sums.npy", ".counts.npy", ".users", ".items", ".empty.txt"};
  if (summaries) ends.push_back(".sentences.f32");
  return ends;
}

// The rows of a shard: those whose texts begin in its bytes of all texts.
std::pair<int64_t, int64_t> rows_of(const ReviewTextFile& texts, const Shard& shard) {
  const uint64_t bytes = texts.bytes();
  const bool last = shard.index + 1 == shard.count;
  return {shard.index == 0 ? 0 : texts.first_from(shard.from(bytes)),
          last ? texts.count() : texts.first_from(shard.to(bytes))};
}

EmbedReport embed_shard(const Domain& domain, const ReviewsRequest& request,
                        EmbeddingModel& model) {
  const EmbedOptions& options = request.options;
  const fs::path folder = domain.path / kShardFolder;
  const ReviewTextFile texts(domain.text_path(Split::train));
  const auto [first, last] = rows_of(texts, *request.shard);
  ReviewDocuments documents(domain, first, last);
  ResumableFiles::Plan plan;
  plan.journal = (folder / (request.shard->name() + ".journal")).string();
  std::vector<std::string> ends = shard_ends(options.summaries);
  for (const std::string& end : ends) {
    plan.files.push_back((folder / (request.shard->name() + end)).string());
  }
  plan.files.push_back((folder / (request.shard->name() + ".json")).string());
  const Fields how = embed_settings(options, model, splits(options));
  plan.settings = how;
  plan.settings.merge(review_identity(domain));
  plan.settings.merge(Fields{{"shard", request.shard->text()},
                             {"rows", fmt::format("{} to {}", first, last)},
                             {"row_texts", texts.hash(first, last)}});
  if (options.summaries) plan.settings["summaries"] = "kept";
  plan.fresh = request.fresh;
  const Fields settings = plan.settings;

  EmbedReport report;
  fs::create_directories(folder);
  if (!request.fresh && shard_is_there(folder, *request.shard, settings, report)) return report;
  report.width = model.engine.width();
  report.rows = last - first;
  ResumableFiles files(std::move(plan));
  report.counts = EmbedCounts::of(files.state());
  report.resumed_at = report.counts.documents;
  if (!files.complete()) {
    encode(documents, domain, how, request, model, files, report);
    if (report.stopped) return report;
    write_headers(options.dtype, report, files);
    const ShardDescription description =
        describe_shard(*request.shard, settings, texts.bytes(), report, files, ends);
    files.append(ends.size(), to_text(description));
    end_files(files, report);
  }
  files.put_in_place();
  return report;
}

// A shard's rows of one file behind those of the shards before it.
void append_shard(const fs::path& folder, const ShardDescription& shard, bool summaries,
                  int64_t first_row, ResumableFiles& files) {
  const std::vector<std::string> ends = shard_ends(summaries);
  const std::size_t header = vector_header(VectorFormat::npy, DType::i32, 0, 0).size();
  for (const File file : {kSums, kCounts}) {
    files.append(file, ShardFile(folder, shard, ends[file]).bytes().substr(header));
  }
  std::string empty;
  add_to_numbers(ShardFile(folder, shard, ends[kEmpty]).bytes(), {first_row}, empty);
  files.append(kEmpty, empty);
  if (summaries) files.append(kSentences, ShardFile(folder, shard, ends[kSentences]).bytes());
}

}  // namespace

EmbedReport embed_reviews(const Domain& domain, const ReviewsRequest& request,
                          EmbeddingModel& model) {
  if (request.shard) return embed_shard(domain, request, model);
  const EmbedOptions& options = request.options;
  ReviewDocuments documents(domain);
  ResumableFiles::Plan plan = whole_plan(domain, options.summaries);
  const Fields how = embed_settings(options, model, splits(options));
  Fields settings = how;
  settings.merge(review_identity(domain));
  plan.settings = settings;
  if (options.summaries) plan.settings["summaries"] = "kept";
  plan.fresh = request.fresh;

  EmbedReport report;
  report.width = model.engine.width();
  report.rows = domain.train.size();
  if (was_there(domain, plan, settings, options.summaries, request, report)) return report;

  ResumableFiles files(std::move(plan));
  report.counts = EmbedCounts::of(files.state());
  report.resumed_at = report.counts.documents;
  if (!files.complete()) {
    check_room(domain, report.width, options.dtype, files.size(kSums));
    encode(documents, domain, how, request, model, files, report);
    if (report.stopped) return report;
    finish(domain, settings, options.dtype, options.summaries, request.threads, files, report);
  }
  put_in_place(domain, options.summaries, files);
  return report;
}

EmbedReport join_reviews(const Domain& domain, const ReviewsRequest& request) {
  const fs::path folder = domain.path / kShardFolder;
  const std::vector<ShardDescription> shards = read_shards(folder);
  EmbedReport report = total_of(shards);
  Fields settings = shards.front().settings;
  const bool summaries = settings.erase("summaries") > 0;
  for (const char* own : {"shard", "rows", "row_texts"}) settings.erase(own);
  Fields now = settings;
  for (const auto& [key, value] : review_identity(domain)) now[key] = value;
  if (const std::string what = setting_difference(settings, now); !what.empty()) {
    throw Error(
        fmt::format("{}: the shards were made from other data: they have {}; remove the folder "
                    "and make them again",
                    folder.string(), what));
  }
  ResumableFiles::Plan plan = whole_plan(domain, summaries);
  plan.settings = settings;
  plan.resumable = false;
  plan.fresh = request.fresh;
  if (was_there(domain, plan, settings, summaries, request, report)) return report;

  const ReviewTextFile texts(domain.text_path(Split::train));
  texts.verify();
  ResumableFiles files(std::move(plan));
  const DType dtype = shown(settings.at("dtype")) == name_of(DType::f16) ? DType::f16 : DType::f32;
  check_room(domain, report.width, dtype, 0);
  files.append(kSums, vector_header(VectorFormat::npy, dtype, 0, report.width));
  files.append(kCounts, vector_header(VectorFormat::npy, DType::i32, 0, 0));
  for (const ShardDescription& shard : shards) {
    const auto [first, last] = rows_of(texts, shard.shard);
    const auto hash = shard.settings.find("row_texts");
    if (shard.rows != last - first || hash == shard.settings.end() ||
        shown(hash->second) != texts.hash(first, last)) {
      throw Error(
          fmt::format("{}: was made of other texts than there are now; make that shard again with "
                      "--shard {} --fresh",
                      (folder / (shard.shard.name() + ".json")).string(), shard.shard.text()));
    }
    append_shard(folder, shard, summaries, first, files);
  }
  finish(domain, settings, dtype, summaries, request.threads, files, report);
  put_in_place(domain, summaries, files);
  return report;
}

EmbedReport try_reviews(const Domain& domain, const ReviewsRequest& request, int64_t count,
                        EmbeddingModel& model) {
  ReviewDocuments reviews(domain);
  FirstDocuments documents(reviews, std::min(count, domain.train.size()));
  NoSink sink;
  EmbedReport report;
  embed_documents(documents, model, window_options(request.options, model, splits(request.options)),
                  {"embedding " + domain.name, request.threads, request.stop}, nullptr, sink,
                  report);
  report.rows = report.counts.documents;
  return report;
}

}  // namespace cfaa
