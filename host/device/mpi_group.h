#pragma once

// Ranks that MPI connects, in the memory of their CPUs. MPI's header is known to mpi_group.cpp
// alone, which a build with -DCFAA_MPI=ON compiles with it.

#include <memory>

#include "host/device/group.h"

namespace cfaa {

// Error in a build without MPI, and where MPI does not find the ranks of `place`. At most one in
// the life of a process.
std::unique_ptr<Group> make_mpi_group(const RankPlace& place);

}  // namespace cfaa
