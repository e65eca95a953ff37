#pragma once

// A command that several processes run together, as mpirun, srun and torchrun start them.

#include <exception>
#include <functional>

#include "host/core/log.h"
#include "host/device/group.h"

namespace cfaa::tools {

// Connects this process to the other ranks and does the work of its own. All ranks but the first
// say nothing but errors. A rank that fails ends the job: what they all refuse is said once, and
// what one of them alone meets with its number in front.
void run_on_ranks(const RankPlace& place, const std::function<void(Group& group)>& work);

// What every rank does before they are connected, and may refuse: the first says so, and the others
// only where it has not ended the job within a second.
void let_the_first_speak(const RankPlace& place);
template <class Work>
auto said_once(const RankPlace& place, const Work& work) {
  if (place.rank > 0) log_errors_only();
  try {
    return work();
  } catch (const std::exception&) {
    let_the_first_speak(place);
    throw;
  }
}

// Of a command that is not divided, the first rank does it all and the others leave at once.
bool is_first_rank();

// The threads of a rank: as asked for, and where that is 0 its share of the machine's.
int threads_of_rank(const RankPlace& place, int asked_for);

}  // namespace cfaa::tools
