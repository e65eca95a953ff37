#include "host/device/group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "host/core/error.h"
#include "host/device/mpi_group.h"

namespace cfaa {
namespace {

constexpr int kUserError = 2;

class GroupOfOne final : public Group {
 public:
  GroupOfOne() : Group(0, 1) {}

  void all_gather(Context& context, const void* send, void* receive, std::size_t bytes) override {
    context.runtime().copy(receive, send, bytes);
  }
  void all_to_all(Context& context, const void* send, void* receive, std::size_t bytes) override {
    context.runtime().copy(receive, send, bytes);
  }
  void broadcast(Context&, void*, std::size_t, int) override {}
  void barrier() override {}
  void abort() override { _exit(kUserError); }
};

// The number that a variable begins with: srun says "2(x3)" of two tasks on each of three machines.
std::optional<int> number_in(const char* variable) {
  const char* text = variable == nullptr ? nullptr : std::getenv(variable);
  if (text == nullptr) return {};
  const std::string_view value = text;
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || number < 0) {
    throw Error(
        fmt::format("{}={}: is not a number of ranks; start the program by mpirun or srun, "
                    "or unset it",
                    variable, value));
  }
  return number;
}

struct Launcher {
  const char *rank, *size, *local_rank, *local_size;
};

}  // namespace

RankPlace find_rank() {
  // SLURM_NTASKS is also there in a batch script, which is not one of its tasks.
  constexpr Launcher kLaunchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
      {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}};
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<int> rank = number_in(launcher.rank), size = number_in(launcher.size);
    if (!rank || !size) continue;
    if (*rank >= *size) {
      throw Error(
          fmt::format("{}={} and {}={} do not go together; start the program by mpirun or "
                      "srun, or unset them",
                      launcher.rank, *rank, launcher.size, *size));
    }
    return {*rank, *size, number_in(launcher.local_rank).value_or(0),
            number_in(launcher.local_size).value_or(1), launcher.size};
  }
  return {};
}

std::unique_ptr<Group> make_group_of_one() {
  return std::make_unique<GroupOfOne>();
}

std::unique_ptr<Group> make_group(const RankPlace& place) {
  if (place.size == 1) return make_group_of_one();
  return make_mpi_group(place);
}

}  // namespace cfaa
