#pragma once

// Reviews of two domains with a planted structure: `synthesize`. docs/synthesize.md tells the
// story. Everything is a function of the options: the same bytes on any number of threads.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "host/core/parallel.h"
#include "host/io/input_stream.h"

namespace cfaa {

struct SynthesisOptions {
  // Of each domain.
  int64_t users = 600, items = 400, interactions = 9000;
  int64_t topics = 12;
  double shift = 1;  // 0: no domain gap; 1: the default gap
  int64_t seed = 0;
  Compression compression = Compression::none;
};

// Writes source.jsonl and target.jsonl (with .gz or .zst where compressed), the truth behind them
// ({source,target}.truth.tsv) and synthesize.json into a new directory, and returns what
// synthesize.json says. Throws Error where sizes do not fit each other, or `out` is there and not
// `force`.
nlohmann::json synthesize(const SynthesisOptions& options, const std::filesystem::path& out,
                          bool force, ThreadPool& pool,
                          const std::function<void(int64_t interactions)>& progress = {});

}  // namespace cfaa
