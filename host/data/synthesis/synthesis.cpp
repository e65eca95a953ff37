#include "host/data/synthesis/synthesis.h"

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "host/core/error.h"
#include "host/core/version.h"
#include "host/data/synthesis/words.h"
#include "host/data/synthesis/world.h"
#include "host/io/output_file.h"
#include "host/io/staged_directory.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kReportName = "synthesize.json";
constexpr double kMixed = 0.3;   // of a domain's topic words at shift 1 come from another topic
constexpr int kBoilerplate = 3;  // boilerplate sentences of a review at shift 1
constexpr int64_t kBlockUsers = 64;

// Writes the reviews of one domain.
class Writer {
 public:
  Writer(const SyntheticDomain& domain, const SynthesisOptions& options, bool target)
      : domain_(domain), options_(options), target_(target), voice_(domain_voice(target)) {
    // Each domain mixes attributes in its own way: topic t borrows words from partner_[t].
    const int topics = static_cast<int>(options.topics);
    Draws draws(static_cast<uint64_t>(options.seed), target, Draws::Purpose::mixing, 0);
    const int step = 1 + static_cast<int>(draws.below(static_cast<uint64_t>(topics - 1)));
    for (int t = 0; t < topics; ++t) partner_.push_back((t + step) % topics);
  }

  void write_users(int64_t begin, int64_t end, std::string& out) const {
    std::vector<SyntheticReview> reviews;
    for (int64_t user = begin; user < end; ++user) {
      domain_.reviews_of(user, reviews);
      Draws draws(static_cast<uint64_t>(options_.seed), target_, Draws::Purpose::reviews,
                  static_cast<uint64_t>(user));
      for (const SyntheticReview& review : reviews) write_review(review, draws, out);
    }
  }

 private:
  static std::string_view any(std::span<const std::string_view> choices, Draws& draws) {
    return choices[draws.below(choices.size())];
  }

  std::string_view topic_word(const TopicMixture& mixture, Draws& draws) const {
    int topic = mixture.draw(draws, static_cast<int>(options_.topics));
    if (draws.uniform() < kMixed * std::min(options_.shift, 1.0)) topic = partner_[topic];
    return topic_words(topic)[draws.below(kWordsPerTopic)];
  }

  // Shift 0 has no domain's mark at all; shift 1 marks every sentence.
  bool marked(Draws& draws) const { return draws.uniform() < options_.shift; }

  void write_sentence(std::string_view pattern, const SyntheticReview& review, Draws& draws,
                      std::string& out) const {
    const bool own = marked(draws);
    const DomainVoice& voice = own ? voice_ : plain_voice();
    for (const char c : pattern) {
      if (c == '@') {
        out += topic_word(domain_.content(review.item), draws);
      } else if (c == '#') {
        out += topic_word(domain_.taste(review.user), draws);
      } else if (c == '%') {
        out += any(voice.things, draws);
      } else {
        out.push_back(c);
      }
    }
    out += any(voice.slang, draws);
    out += ". ";
  }

  void write_review(const SyntheticReview& review, Draws& draws, std::string& out) const {
    fmt::format_to(std::back_inserter(out), R"({{"rating": {}.0, "title": "{} stars", "text": ")",
                   review.stars, review.stars);
    write_sentence(any(content_sentences(), draws), review, draws, out);
    write_sentence(any(taste_sentences(), draws), review, draws, out);
    if (draws.below(2) == 0) write_sentence(any(content_sentences(), draws), review, draws, out);
    if (draws.below(2) == 0) write_sentence(any(taste_sentences(), draws), review, draws, out);
    out += any(verdicts(review.stars), draws);
    out += ".";
    // The domain-wide constant: a whole number of sentences on average shift * kBoilerplate.
    const int sentences = static_cast<int>(options_.shift * kBoilerplate + draws.uniform());
    const uint64_t first = draws.below(voice_.boilerplate.size());
    for (int i = 0; i < sentences; ++i) {
      out.push_back(' ');
      out += voice_.boilerplate[(first + static_cast<uint64_t>(i)) % voice_.boilerplate.size()];
    }
    const std::string item = domain_.item_id(review.item);
    fmt::format_to(std::back_inserter(out),
                   R"(", "images": [], "asin": "{}", "parent_asin": "{}", "user_id": "{}", )"
                   R"("timestamp": {}, "helpful_vote": {}, "verified_purchase": true}})"
                   "\n",
                   item, item, domain_.user_id(review.user), review.time, draws.below(4));
  }

  const SyntheticDomain& domain_;
  const SynthesisOptions& options_;
  bool target_;
  const DomainVoice& voice_;
  std::vector<int> partner_;
};

// A block as one gzip member or zstd frame: any number of them in a row is a valid file.
std::string compress(const std::string& text, Compression compression) {
  if (compression == Compression::none) return text;
  std::string packed;
  if (compression == Compression::zstd) {
    packed.resize(ZSTD_compressBound(text.size()));
    const std::size_t size =
        ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3);
    CFAA_ASSERT(!ZSTD_isError(size));
    packed.resize(size);
    return packed;
  }
  isal_zstream stream;
  std::vector<uint8_t> scratch(ISAL_DEF_LVL1_DEFAULT);
  isal_deflate_stateless_init(&stream);
  stream.level = 1;
  stream.level_buf = scratch.data();
  stream.level_buf_size = static_cast<uint32_t>(scratch.size());
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  packed.resize(text.size() + text.size() / 8 + 1024);
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uint32_t>(text.size());
  stream.next_out = reinterpret_cast<uint8_t*>(packed.data());
  stream.avail_out = static_cast<uint32_t>(packed.size());
  CFAA_ASSERT(isal_deflate_stateless(&stream) == COMP_OK);
  packed.resize(stream.total_out);
  return packed;
}

// The tastes of users and contents of items, one a line: what a model should find.
void write_truth(const SyntheticDomain& domain, const SynthesisOptions& options,
                 const fs::path& path) {
  OutputFile file(path);
  std::string line = "kind\tid";
  for (int t = 0; t < options.topics; ++t) line += fmt::format("\ttopic_{}", t);
  file.write(line + "\n");
  const auto put = [&](const char* kind, const std::string& id, const TopicMixture& mixture) {
    line = fmt::format("{}\t{}", kind, id);
    for (int t = 0; t < options.topics; ++t) line += fmt::format("\t{:.4f}", mixture.weight(t));
    file.write(line + "\n");
  };
  for (int64_t u = 0; u < options.users; ++u) put("user", domain.user_id(u), domain.taste(u));
  for (int64_t i = 0; i < options.items; ++i) put("item", domain.item_id(i), domain.content(i));
  file.close();
}

void check(const SynthesisOptions& o) {
  const auto fail = [](const std::string& why) { throw Error(why); };
  if (o.topics < 2 || o.topics > kMostTopics) {
    fail(fmt::format("--topics {} must be from 2 to {}", o.topics, kMostTopics));
  }
  if (o.users < 1 || o.items < 1 || o.users > 99999999 || o.items > 99999999) {
    fail("--users and --items must be from 1 to 99999999");
  }
  if (o.interactions < o.users) {
    fail(fmt::format("--interactions {} must be at least one for each of {} users", o.interactions,
                     o.users));
  }
  if (o.interactions > o.users * o.items || o.interactions > INT32_MAX) {
    fail(
        fmt::format("--interactions {} must be at most one for each of {} users and {} items, and "
                    "below 2^31",
                    o.interactions, o.users, o.items));
  }
  if (!(o.shift >= 0 && o.shift <= 10)) fail("--shift must be from 0 to 10");
  if (o.seed < 0) fail("--seed must be at least 0");
}

bool is_synthesized_file(const fs::path& file) {
  static const std::set<fs::path> names = {
      kReportName,        "source.jsonl",     "target.jsonl",
      "source.jsonl.gz",  "target.jsonl.gz",  "source.jsonl.zst",
      "target.jsonl.zst", "source.truth.tsv", "target.truth.tsv"};
  return names.contains(file);
}

}  // namespace

json synthesize(const SynthesisOptions& options, const fs::path& out, bool force, ThreadPool& pool,
                const std::function<void(int64_t)>& progress) {
  check(options);
  StagedDirectory directory(out, force, {"synthesize", kReportName, is_synthesized_file});
  json report = {{"version", version()},     {"users", options.users},
                 {"items", options.items},   {"interactions", options.interactions},
                 {"topics", options.topics}, {"shift", options.shift},
                 {"seed", options.seed}};
  const char* suffix = options.compression == Compression::gzip   ? ".gz"
                       : options.compression == Compression::zstd ? ".zst"
                                                                  : "";
  for (const bool target : {false, true}) {
    const std::string name = target ? "target" : "source";
    const SyntheticDomain domain(options, target);
    const Writer writer(domain, options, target);
    OutputFile file(directory.path() / (name + ".jsonl" + suffix));
    const int64_t blocks = (options.users + kBlockUsers - 1) / kBlockUsers;
    const int64_t wave = 8 * pool.threads();
    std::vector<std::string> parts(static_cast<std::size_t>(wave));
    for (int64_t first = 0; first < blocks; first += wave) {
      const int64_t count = std::min(wave, blocks - first);
      const auto last_user = [&](int64_t block) {
        return std::min((block + 1) * kBlockUsers, options.users);
      };
      pool.parallel_for(count, 1, [&](int64_t i, int64_t, int) {
        std::string text;
        writer.write_users((first + i) * kBlockUsers, last_user(first + i), text);
        parts[static_cast<std::size_t>(i)] = compress(text, options.compression);
      });
      for (int64_t i = 0; i < count; ++i) file.write(parts[static_cast<std::size_t>(i)]);
      if (progress) {
        progress(domain.reviews_before(last_user(first + count - 1)) -
                 domain.reviews_before(first * kBlockUsers));
      }
    }
    report["files"].push_back(name + ".jsonl" + suffix);
    file.close();
    write_truth(domain, options, directory.path() / (name + ".truth.tsv"));
  }
  OutputFile file(directory.path() / kReportName);
  file.write(report.dump(2) + "\n");
  file.close();
  directory.commit();
  return report;
}

}  // namespace cfaa
