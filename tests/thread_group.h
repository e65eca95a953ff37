#pragma once

// Ranks that are threads of the test, so that what several ranks do is tested without a launcher:
//
//   run_on_threads(4, [&](Group& group) { ... });  // once per rank
//
// The first exception of a rank is thrown when all have ended; the others are freed from whatever
// exchange they wait in. Exchanges of different kinds or sizes are a failure at once, where MPI
// would hang or read what is not there.

#include <functional>

#include "host/device/group.h"

namespace cfaa::test {

void run_on_threads(int ranks, const std::function<void(Group&)>& rank);

}  // namespace cfaa::test
