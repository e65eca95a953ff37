#pragma once

// The configuration's `prepare` section: what is read, which steps run and how, in the order of
// the steps.

#include <cstdint>
#include <string>

#include "host/core/options.h"
#include "host/data/review.h"

namespace cfaa {

enum class TimeUnit { automatic, seconds, milliseconds };
enum class Duplicates { latest, earliest, error };
enum class Overlap { drop_target, drop_source, separate, error };
enum class TargetNegatives { drop, keep };
enum class SplitRule { ratio, leave_one_out, time };

struct PrepareOptions {
  // Reading.
  std::string columns, source_columns, target_columns;
  bool quotes = true;
  TimeUnit time_unit = TimeUnit::automatic;
  std::string rating_scale = "1,5";
  int64_t skip_bad = 0;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::refuse;
  // Steps.
  Duplicates duplicates = Duplicates::latest;
  std::string source_core = "5,5", target_core = "5,5";
  Overlap overlap = Overlap::drop_target;
  double positive = 4;
  TargetNegatives target_negatives = TargetNegatives::drop;
  double target_keep = 1;
  SplitRule split = SplitRule::ratio;
  std::string split_ratio = "8:1:1";
  double target_labels = 1;
  int64_t labels_draw = 0;
  bool keep_reviews = false;
  double hold_out_users = 0;
  int64_t seed = 0;
  // Writing.
  bool keep_heldout_text = false;
};

OptionSet prepare_option_set(PrepareOptions& options);

// The parts of the options that are written as text, parsed; Error where they do not read.
struct CoreMinima {
  int64_t user = 1, item = 1;
};
CoreMinima parse_core(const std::string& text, const std::string& key);  // "5,5", or "5" for both
struct RatingScale {
  double low = 1, high = 5;
};
RatingScale parse_rating_scale(const std::string& text);  // "1,5"
struct SplitShares {
  double train = 0.8, valid = 0.1, test = 0.1;  // sum to one
};
SplitShares parse_split_ratio(const std::string& text);  // "8:1:1"

}  // namespace cfaa
