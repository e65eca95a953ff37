#include "host/model/loss_options.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "host/core/error.h"
#include "host/model/phase.h"

namespace cfaa {
namespace {

std::string what_it_is(const std::string& name) {
  if (name == "vertical") return "L_O, lambda_O";
  if (name == "horizontal") return "L_A, lambda_A";
  if (name == "coral") return "the distance of the domains' covariances";
  if (name == "center") return "the centre loss on the items that a user is compared with";
  if (name == "self_training") return "the entropy of the target's sure scores";
  return "discriminators that tell the domains apart, which the embeddings work against";
}

void add_adversary_options(OptionSet& set, AdversaryOptions& options) {
  set.add("adversary.layers", options.layers, "hidden layers of a discriminator", between(1, 8192));
  set.add("adversary.learning_rate", options.learning_rate,
          "learning rate of the discriminators, whose gradients are never clipped", positive());
  set.add("adversary.input", options.input,
          "what they see: users and items, one discriminator each, or both side by side",
          {{"sides", AdversaryInput::sides}, {"pair", AdversaryInput::pair}});
  set.add("adversary.against", options.against, "whose embeddings work against them",
          {{"both", AdversarySide::both}, {"target", AdversarySide::target}});
  set.add("adversary.goal", options.goal,
          "what those embeddings do: ascend the discriminators' loss (gradient reversal), or "
          "descend that of the other domain's label",
          {{"reverse", AdversaryGoal::reverse}, {"confuse", AdversaryGoal::confuse}});
}

}  // namespace

double LossTerm::weight_at(int64_t step, int64_t steps_per_epoch) const {
  if (schedule == LossSchedule::constant) return weight;
  const double share = std::min(
      1.0, static_cast<double>(step + 1) / static_cast<double>(warmup_epochs * steps_per_epoch));
  if (schedule == LossSchedule::warmup) return share * weight;
  return (2 / (1 + std::exp(-10 * share)) - 1) * weight;
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
    set.add(term.name + ".weight", term.weight,
            "weight of " + what_it_is(term.name) + "; 0: not computed", at_least(0));
    set.when_assigned([&term] { term.left_out = false; });
    set.add(term.name + ".schedule", term.schedule,
            "the whole weight from the start, growing evenly, or by 2 / (1 + e^(-10 p)) - 1",
            {{"constant", LossSchedule::constant},
             {"warmup", LossSchedule::warmup},
             {"ramp", LossSchedule::ramp}});
    set.add(term.name + ".warmup_epochs", term.warmup_epochs, "epochs until the weight is whole",
            at_least(1));
    set.add_choice(
        term.name + ".phase", "phase of training from which on it counts",
        {phase_names().begin(), phase_names().end()},
        [&term](std::size_t i) { term.phase = static_cast<int64_t>(i); },
        [&term] { return static_cast<std::size_t>(term.phase); });
  }
  set.add("center.inner", options.center.inner, "squared distance to its centre that costs nothing",
          at_least(0));
  set.add("center.outer", options.center.outer,
          "squared distance of the two centres from which on nothing is lost", at_least(0));
  set.add("self_training.low", options.self_training.low, "probabilities below are sure",
          between(0, 0.5));
  set.add("self_training.high", options.self_training.high, "probabilities above are sure",
          between(0.5, 1));
  add_adversary_options(set, options.adversary);
  return set;
}

}  // namespace cfaa
