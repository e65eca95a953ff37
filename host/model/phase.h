#pragma once

// Training in phases, by the number of steps: what learns in each, and from whose labels. The keys
// `train.phases.first`, `second` and `third` of the configuration. Without them there is one phase
// in which everything learns.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/options.h"
#include "host/model/batch.h"

namespace cfaa {

inline constexpr std::size_t kPhases = 3;

// "first", "second", "third".
const std::array<std::string, kPhases>& phase_names();

enum class PhaseLabels { both, source, target };
enum class PhaseStart { go_on, copy_source };

struct Phase {
  int64_t steps = 0;                // 0: to the end
  std::vector<std::string> freeze;  // "source", "target", "scorer", "rows", "words"
  PhaseLabels labels = PhaseLabels::both;
  PhaseStart start = PhaseStart::go_on;

  // Whether L_C of a domain counts.
  bool learns(std::size_t domain) const {
    return labels == PhaseLabels::both ||
           labels == (domain == kSource ? PhaseLabels::source : PhaseLabels::target);
  }
  // Whether a layer or table of this name stays as it is.
  bool freezes(std::string_view parameter) const;
};

struct PhaseOptions {
  std::array<Phase, kPhases> phases;

  // Phases that there are: up to the first without a number of steps.
  std::size_t count() const;
  const Phase& operator[](std::size_t phase) const { return phases[phase]; }
  // The first step of a phase, counted from 0.
  int64_t first_step(std::size_t phase) const;
  std::size_t at(int64_t step) const;
};

// The keys `phases.*` of a section.
void add_phase_options(OptionSet& set, PhaseOptions& options);

}  // namespace cfaa
