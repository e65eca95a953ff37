#include "host/data/prepare_options.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "host/core/error.h"

namespace cfaa {
namespace {

// The numbers of "8:1:1" or "5,5"; nothing where one does not read or is negative.
std::optional<std::vector<double>> numbers(const std::string& text) {
  std::vector<double> values;
  std::size_t at = 0;
  for (;;) {
    const std::size_t end = std::min(text.find_first_of(",:", at), text.size());
    values.push_back(parse_number(std::string_view(text).substr(at, end - at)));
    if (!(values.back() >= 0)) return std::nullopt;
    if (end == text.size()) return values;
    at = end + 1;
  }
}

}  // namespace

OptionSet prepare_option_set(PrepareOptions& o) {
  OptionSet set("prepare");
  set.add("columns", o.columns,
          "columns or keys by name, or by number where there is no header: "
          "user=..,item=..,rating=..,text=..,time=..,title=..; the rest is guessed");
  set.add("source_columns", o.source_columns, "likewise, of the source alone");
  set.add("target_columns", o.target_columns, "likewise, of the target alone");
  set.add("quotes", o.quotes, "CSV and TSV: a field may stand in double quotes");
  set.add(
      "time_unit", o.time_unit, "of times; auto: milliseconds from 1e11 on",
      {{"auto", TimeUnit::automatic}, {"s", TimeUnit::seconds}, {"ms", TimeUnit::milliseconds}});
  set.add("rating_scale", o.rating_scale, "lowest and highest rating; others make a line bad");
  set.add("skip_bad", o.skip_bad, "bad lines to report and leave out before giving up",
          at_least(0));
  set.add("invalid_utf8", o.invalid_utf8, "a line that is not UTF-8: bad, or read with U+FFFD",
          {{"refuse", InvalidUtf8::refuse}, {"replace", InvalidUtf8::replace}});
  set.add("duplicates", o.duplicates, "which review of the same user and item to keep",
          {{"latest", Duplicates::latest},
           {"earliest", Duplicates::earliest},
           {"error", Duplicates::error}});
  set.add("source_core", o.source_core,
          "fewest interactions of a source user, and item: USER,ITEM");
  set.add("target_core", o.target_core,
          "fewest interactions of a target user, and item: USER,ITEM");
  set.add("overlap", o.overlap, "users and items with the same id in both domains",
          {{"drop-target", Overlap::drop_target},
           {"drop-source", Overlap::drop_source},
           {"separate", Overlap::separate},
           {"error", Overlap::error}});
  set.add("positive", o.positive, "the lowest rating that is a positive");
  set.add("target_negatives", o.target_negatives, "the target's interactions below that",
          {{"drop", TargetNegatives::drop}, {"keep", TargetNegatives::keep}});
  set.add("target_keep", o.target_keep, "share of the target's interactions to keep",
          between(0, 1));
  set.add("split", o.split, "how interactions go to train, valid and test",
          {{"ratio", SplitRule::ratio},
           {"leave-one-out", SplitRule::leave_one_out},
           {"time", SplitRule::time}});
  set.add("split_ratio", o.split_ratio, "train:valid:test");
  set.add("target_labels", o.target_labels,
          "share of the target's training and validation labels to keep; catalogue, users and test "
          "split stay",
          between(0, 1));
  set.add("labels_draw", o.labels_draw, "which draw of these labels, on the same split",
          between(0, 9e18));
  set.add("keep_reviews", o.keep_reviews,
          "keep the texts of training reviews whose labels are dropped");
  set.add("hold_out_users", o.hold_out_users,
          "share of the target's users to keep out of the data, apart, to measure newcomers by",
          between(0, 1));
  set.add("seed", o.seed, "random seed of every draw", between(0, 9e18));
  set.add("keep_heldout_text", o.keep_heldout_text,
          "also write the text of valid and test interactions, apart");
  set.add_renamed("target_keep_from", "target_labels");
  return set;
}

CoreMinima parse_core(const std::string& text, const std::string& key) {
  const auto values = numbers(text);
  if (!values || values->size() > 2 || values->front() != std::floor(values->front()) ||
      values->back() != std::floor(values->back()) || values->front() > 1e9 ||
      values->back() > 1e9) {
    throw Error(
        fmt::format("prepare.{} must be two whole numbers like 5,5, and not '{}'", key, text));
  }
  return {static_cast<int64_t>(values->front()), static_cast<int64_t>(values->back())};
}

RatingScale parse_rating_scale(const std::string& text) {
  const auto values = numbers(text);
  if (!values || values->size() != 2 || !(values->front() < values->back())) {
    throw Error(
        fmt::format("prepare.rating_scale must be two numbers like 1,5, and not '{}'", text));
  }
  return {values->front(), values->back()};
}

SplitShares parse_split_ratio(const std::string& text) {
  const auto values = numbers(text);
  const bool three = values && values->size() == 3;
  const double sum = three ? (*values)[0] + (*values)[1] + (*values)[2] : 0;
  if (!three || !((*values)[0] > 0) || !std::isfinite(sum)) {
    throw Error(
        fmt::format("prepare.split_ratio must be three numbers like 8:1:1 with a training share, "
                    "and not '{}'",
                    text));
  }
  return {(*values)[0] / sum, (*values)[1] / sum, (*values)[2] / sum};
}

}  // namespace cfaa
