#include "host/model/phase.h"

#include <algorithm>

namespace cfaa {

const std::array<std::string, kPhases>& phase_names() {
  static const std::array<std::string, kPhases> names = {"first", "second", "third"};
  return names;
}

bool Phase::freezes(std::string_view parameter) const {
  return std::any_of(freeze.begin(), freeze.end(), [&](const std::string& part) {
    if (part == "words") return parameter.ends_with(".query") || parameter.ends_with(".key");
    if (part == "rows") {
      return parameter.ends_with(".id") || parameter.ends_with(".history") ||
             parameter.ends_with(".counterpart");
    }
    return parameter.starts_with(part + ".");
  });
}

std::size_t PhaseOptions::count() const {
  std::size_t count = 1;
  while (count < kPhases && phases[count - 1].steps > 0) ++count;
  return count;
}

int64_t PhaseOptions::first_step(std::size_t phase) const {
  int64_t first = 0;
  for (std::size_t p = 0; p < phase; ++p) first += phases[p].steps;
  return first;
}

std::size_t PhaseOptions::at(int64_t step) const {
  std::size_t phase = 0;
  while (phase + 1 < count() && step >= first_step(phase + 1)) ++phase;
  return phase;
}

void add_phase_options(OptionSet& set, PhaseOptions& options) {
  for (std::size_t p = 0; p < kPhases; ++p) {
    Phase& phase = options.phases[p];
    const std::string key = "phases." + phase_names()[p] + ".";
    set.add(key + "steps", phase.steps,
            p + 1 < kPhases ? "steps of this phase, after which the next begins; 0: it is the last"
                            : "0: the third phase is the last",
            p + 1 < kPhases ? at_least(0) : between(0, 0));
    set.add(key + "freeze", phase.freeze,
            "what stays as it is: all of a domain, the scorer, the rows of users and items, what "
            "weighs "
            "words",
            {"source", "target", "scorer", "rows", "words"});
    set.add(key + "labels", phase.labels, "whose labels L_C learns from",
            {{"both", PhaseLabels::both},
             {"source", PhaseLabels::source},
             {"target", PhaseLabels::target}});
    set.add(key + "start", phase.start,
            "what happens before its first step: nothing, or the target's layers become copies of "
            "the source's",
            {{"go_on", PhaseStart::go_on}, {"copy_source", PhaseStart::copy_source}});
  }
}

}  // namespace cfaa
