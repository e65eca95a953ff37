#include "host/model/loss_options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "host/core/error.h"

namespace cfaa {

double LossTerm::weight_at(int64_t step, int64_t steps_per_epoch) const {
  if (schedule == LossSchedule::constant) return weight;
  const double share = std::min(
      1.0, static_cast<double>(step + 1) / static_cast<double>(warmup_epochs * steps_per_epoch));
  return share * weight;
}

LossTerm& LossOptions::term(std::string_view name) {
  const auto found = std::find_if(terms.begin(), terms.end(),
                                  [&](const LossTerm& term) { return term.name == name; });
  CFAA_ASSERT(found != terms.end());
  return *found;
}

const LossTerm& LossOptions::term(std::string_view name) const {
  return const_cast<LossOptions*>(this)->term(name);
}

std::vector<LossTerm> LossOptions::used() const {
  std::vector<LossTerm> result;
  std::copy_if(terms.begin(), terms.end(), std::back_inserter(result),
               [](const LossTerm& term) { return term.used(); });
  return result;
}

void LossOptions::choose(Variant variant) {
  term("vertical").left_out = variant == Variant::base || variant == Variant::h;
  term("horizontal").left_out = variant == Variant::base || variant == Variant::v;
}

Variant LossOptions::variant() const {
  const bool vertical = term("vertical").used(), horizontal = term("horizontal").used();
  if (vertical) return horizontal ? Variant::full : Variant::v;
  return horizontal ? Variant::h : Variant::base;
}

OptionSet loss_option_set(LossOptions& options) {
  OptionSet set("losses");
  for (LossTerm& term : options.terms) {
    const std::string what = term.name == "vertical" ? "L_O, lambda_O" : "L_A, lambda_A";
    set.add(term.name + ".weight", term.weight, "weight of " + what + "; 0: not computed",
            at_least(0));
    set.when_assigned([&term] { term.left_out = false; });
    set.add(term.name + ".schedule", term.schedule, "the whole weight from the start, or growing",
            {{"constant", LossSchedule::constant}, {"warmup", LossSchedule::warmup}});
    set.add(term.name + ".warmup_epochs", term.warmup_epochs, "epochs until the weight is whole",
            at_least(1));
  }
  return set;
}

}  // namespace cfaa
