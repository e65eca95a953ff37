#pragma once

// `prepare`: raw review files of two domains -> a prepared directory. docs/data_format.md says what
// is in it.

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/core/parallel.h"
#include "host/data/prepare_options.h"
#include "host/data/readers/read_reviews.h"
#include "host/data/steps.h"

namespace cfaa {

struct PrepareRequest {
  std::vector<std::string> source, target;                // review files
  std::vector<std::string> source_titles, target_titles;  // files about items; may be empty
  std::filesystem::path out;
  bool force = false;
  PrepareOptions options;
  // Bytes of rows and texts that are kept in memory; what is more lies in an unlinked file beside
  // `out`. Ids and titles are always in memory, texts of plain files never.
  uint64_t memory = uint64_t{1} << 30;
};

// What a step did to a domain.
struct PrepareStep {
  std::string step, domain;
  Counts before, after;
};

// What the caller shows while it happens; either may be empty.
struct PrepareEvents {
  std::function<void(const std::string& domain, uint64_t bytes)> reading;
  std::function<void(const std::string& domain, const ReadReport&)> read;
  std::function<void(const PrepareStep&)> step;
};

// Returns what was written to prepare.json. Throws Error and leaves `out` as it was where an input,
// an option or the disk does not allow it.
nlohmann::json prepare(const PrepareRequest& request, ThreadPool& pool,
                       const PrepareEvents& events);

// The options that made a prepared directory; the defaults where it has no prepare.json.
PrepareOptions read_prepare_options(const std::filesystem::path& directory);

}  // namespace cfaa
