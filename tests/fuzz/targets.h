#pragma once

// What is fuzzed: every reader of bytes that somebody else wrote. A target takes any bytes and must
// neither crash nor break a promise; user errors are fine. tools/fuzz runs them under libFuzzer,
// fuzz_test.cpp runs the corpora and a bounded number of mutations in every build.

#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/error.h"
#include "host/data/domain_index.h"
#include "host/data/prepare_options.h"
#include "host/data/readers/python_literal.h"
#include "host/data/readers/review_format.h"
#include "host/data/review_text.h"
#include "host/io/json_file.h"
#include "host/io/npy.h"
#include "host/io/safetensors.h"
#include "host/io/utf8.h"
#include "host/train/run_config.h"

namespace cfaa::fuzz {

// A promise of the code under test.
inline void must(bool holds, const char* what) {
  if (!holds) assertion_failed(what, __FILE__, __LINE__);
}

// The bytes as a file that needs no disk.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(::memfd_create("fuzz", 0)) {
    must(fd_ >= 0, "memfd_create");
    must(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "write");
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Folds all that a parser says into one number, and checks that texts are UTF-8.
class Digest : public RawReviewSink {
 public:
  void accept(const RawReview& review, int64_t) override {
    for (const std::string_view field : {review.user, review.item, review.text, review.title}) {
      must(is_utf8(field), "an accepted field is UTF-8");
      add(field.data(), field.size());
    }
    must(!std::isinf(review.rating) && !std::isinf(review.time), "numbers are finite or absent");
    add(&review.rating, sizeof(double));
    add(&review.time, sizeof(double));
  }
  void reject(int64_t, std::string reason) override {
    must(!reason.empty(), "a refusal has a reason");
    add("!", 1);
  }
  uint64_t value = 0;

 private:
  void add(const void* bytes, std::size_t size) {
    value = XXH3_64bits_withSeed(bytes, size, value + size);
  }
};

// Format detection and parsing, cut into chunks of whole records of about `chunk_bytes`.
inline uint64_t parse_text(std::string_view text, std::size_t chunk_bytes, InvalidUtf8 invalid,
                           bool quotes) {
  const ReviewFormat format = detect_format(text.substr(0, chunk_bytes), {}, quotes, "fuzz");
  text.remove_prefix(format.header_bytes);
  ReviewParser parser(format, invalid);
  Digest digest;
  Chunk chunk;
  while (!text.empty()) {
    std::size_t size = 0;
    for (std::size_t seen = chunk_bytes; size == 0; seen *= 2) {
      size = whole_records(text.substr(0, seen), format.rule, seen >= text.size());
    }
    chunk.buffer.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
    chunk.buffer.resize(size + kChunkPadding);
    chunk.size = size;
    parser.parse(chunk, digest);
    text.remove_prefix(size);
  }
  return digest.value;
}

inline void reviews(std::string_view bytes, std::string_view prefix) {
  if (bytes.empty()) return;
  const char choice = bytes.front();
  bytes.remove_prefix(1);
  const std::string text = std::string(prefix) + std::string(bytes);
  const InvalidUtf8 invalid = choice & 1 ? InvalidUtf8::replace : InvalidUtf8::refuse;
  const bool quotes = choice & 2;
  uint64_t whole = 0;
  try {
    whole = parse_text(text, text.size() + 1, invalid, quotes);
  } catch (const Error&) {
    return;
  }
  // The format is known from the prefix; past it, the places of the cuts change nothing.
  if (prefix.empty()) return;
  must(parse_text(text, prefix.size() + 7, invalid, quotes) == whole, "cuts change nothing");
}

inline void json_lines(std::string_view bytes) {
  reviews(bytes, "{\"reviewerID\": \"u\", \"asin\": \"i\", \"overall\": 5.0}\n");
}
inline void python_lines(std::string_view bytes) {
  PythonValue value;
  if (parse_python_literal(bytes, value).empty()) {
    must(value.kind != PythonValue::Kind::text || !is_utf8(bytes) || is_utf8(value.text),
         "text is UTF-8");
  }
  reviews(bytes, "{'reviewerID': 'u', 'asin': u'i', 'overall': 5.0}\n");
}
inline void delimited(std::string_view bytes) {
  reviews(bytes, "user,item,rating,text,time\n");
}
inline void inter(std::string_view bytes) {
  reviews(bytes, "user_id:token\titem_id:token\trating:float\ttimestamp:float\n");
}
inline void any_format(std::string_view bytes) {
  reviews(bytes, "");
}

// What a stream holds, read in steps, or nothing where it is refused; "" where it holds more than
// `most`, which would take long.
inline std::optional<std::string> decompressed(const MemoryFile& file, std::size_t block,
                                               std::size_t step, std::size_t most) {
  std::string out;
  try {
    InputStream stream(file.path(), false, block);
    for (std::size_t got = step; got == step;) {
      const std::size_t size = out.size();
      out.resize(size + step);
      got = stream.read(out.data() + size, step);
      out.resize(size + got);
      if (out.size() > most) return "";
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return out;
}

// gzip and zstd framing: what comes out does not depend on how it is read or asked for.
inline void compressed(std::string_view bytes) {
  constexpr std::size_t kMost = 1 << 17;
  const MemoryFile file(bytes);
  const auto whole = decompressed(file, 8192, 1 << 14, kMost);
  if (whole && whole->empty()) return;
  // Smaller steps may pass the most that is read where larger ones came to the damage behind it.
  const auto pieces = decompressed(file, 16, 977, kMost);
  if (pieces && pieces->empty()) return;
  must(pieces == whole, "the buffers' sizes change nothing");
}

inline void npy(std::string_view bytes) {
  const MemoryFile file(bytes);
  try {
    const NpyFile array(file.path());
    if (array.size() < 1 << 20) (void)array.read<float>();
  } catch (const Error&) {
  }
}

inline void safetensors(std::string_view bytes) {
  const MemoryFile file(bytes);
  try {
    const SafetensorsFile tensors(file.path());
    for (const auto& [name, entry] : tensors.header().tensors) {
      try {
        (void)tensors.read<float>(name);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

// A configuration file. What is accepted is written back and read as the same.
inline void config(std::string_view bytes) {
  const nlohmann::json any = parse_json(bytes);
  if (!any.is_object()) return;
  PrepareOptions options;
  OptionSet set = prepare_option_set(options);
  try {
    RunConfig config, again;
    config.read(any, "fuzz");
    config.check();
    config.eval.options();
    again.read(config.to_json(), "fuzz");
    must(again.to_json() == config.to_json(), "what is written is read");
    if (any.contains("prepare")) set.read(any["prepare"], "fuzz");
    parse_core(options.source_core, "source_core");
    parse_core(options.target_core, "target_core");
    parse_split_ratio(options.split_ratio);
    parse_rating_scale(options.rating_scale);
    columns_of(options, "source");
    columns_of(options, "target");
  } catch (const Error&) {
  }
}

// The checksum and the identity are made to fit, so that the fuzzer reaches what they protect.
inline void domain_index(std::string_view bytes) {
  std::string fixed(bytes);
  TextIdentity identity;
  constexpr std::size_t kHeader = 160;
  if (fixed.size() >= kHeader) {
    std::memcpy(fixed.data(), "CFAAIDX1", 8);
    const uint64_t checksum = XXH3_64bits(fixed.data() + kHeader, fixed.size() - kHeader);
    std::memcpy(fixed.data() + 8, &checksum, 8);
    std::memcpy(&identity, fixed.data() + 16, sizeof(identity));
  }
  Domain domain;
  if (!DomainIndex::read(fixed, identity, domain)) return;
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    const SplitRows& rows = domain.rows(split);
    for (int64_t i = 0; i < rows.size(); ++i) {
      must(rows.user[i] >= 0 && rows.user[i] < domain.users.size(), "a user in range");
      must(rows.item[i] >= 0 && rows.item[i] < domain.items.size(), "an item in range");
    }
  }
  for (int64_t u = 0; u < domain.users.size(); ++u) {
    must(domain.users.find(domain.users[u]) == u, "ids are found");
  }
}

inline void review_text(std::string_view bytes) {
  const MemoryFile file(bytes);
  try {
    const ReviewTextFile texts(file.path());
    uint64_t sum = 0;
    for (int64_t i = 0; i < texts.count(); ++i) sum += texts.text(i).size();
    must(sum == texts.bytes(), "texts fill the file");
    texts.verify();
  } catch (const Error&) {
  }
}

}  // namespace cfaa::fuzz

#include "tests/fuzz/directories.h"
#include "tests/fuzz/http_request.h"

namespace cfaa::fuzz {

struct Target {
  const char* name;
  void (*run)(std::string_view);
};

inline constexpr Target kTargets[] = {
    {"json_lines", json_lines},
    {"python_lines", python_lines},
    {"delimited", delimited},
    {"inter", inter},
    {"any_format", any_format},
    {"compressed", compressed},
    {"npy", npy},
    {"safetensors", safetensors},
    {"config", config},
    {"domain_index", domain_index},
    {"review_text", review_text},
    {"tokenizer", tokenizer},
    {"model_directory", model_directory},
    {"run_directory", run_directory},
    {"http_request", http_request},
};

}  // namespace cfaa::fuzz
