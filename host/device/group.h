#pragma once

// Several processes that compute one thing: the ranks of a job that mpirun, srun or torchrun
// started. Libraries move bytes between them and never add, since the order in which MPI and NCCL
// add depends on how many ranks there are and how they are connected: whoever wants a sum gathers
// its terms and adds them in an order of its own (host/model/ranks/part_sums.h).
//
//   const std::unique_ptr<Group> group = make_group(find_rank());
//   group->all_gather(context, mine, all, bytes);  // all: (size, bytes), in the ranks' order
//
// An exchange is like an op: its pointers are memory of the context's device, and it is queued
// behind what the context was told to compute, so that later work finds what was received. On the
// CPU it is done when the call returns. On a GPU a backend queues on the context's stream and does
// not wait, may be called while a step is captured, and takes no memory of its own then. Every rank
// makes the same exchanges in the same order and of the same sizes; one thread of a rank at a time.
//
// Backends: one rank by itself; `mpi` between the memories of CPUs (preset mpi).

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "host/core/context.h"

namespace cfaa {

class Group {
 public:
  Group(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_first() const { return rank_ == 0; }  // the one that writes files and talks

  // receive[r] = send of rank r; `bytes` of each. `receive` holds size * bytes, and is not `send`.
  virtual void all_gather(Context& context, const void* send, void* receive, std::size_t bytes) = 0;
  // receive[r] = send[rank] of rank r; both hold size * bytes and do not overlap.
  virtual void all_to_all(Context& context, const void* send, void* receive, std::size_t bytes) = 0;
  // `data` of every rank becomes that of `root`.
  virtual void broadcast(Context& context, void* data, std::size_t bytes, int root) = 0;

  // Returns when every rank has called it. For the host: what is queued on a GPU is not waited for.
  virtual void barrier() = 0;
  // Ends every rank of the job, from whatever they are doing, with the program's exit code 2.
  [[noreturn]] virtual void abort() = 0;

 private:
  int rank_, size_;
};

// Where a process stands among those of its job. Without a launcher it is the only one.
struct RankPlace {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among those on the same machine
  std::string told_by;                 // the environment variable that says so; "": none does
};

// From OMPI_COMM_WORLD_*, PMI_*, SLURM_* (of a step that srun started) or RANK, WORLD_SIZE and
// LOCAL_RANK. Error where they do not go together.
RankPlace find_rank();

// The group of all ranks. Error where this build cannot connect them.
std::unique_ptr<Group> make_group(const RankPlace& place);
// One rank by itself: what it sends, it receives.
std::unique_ptr<Group> make_group_of_one();

// A value in host memory of each rank, in the ranks' order. Waits for the device.
template <class T>
std::vector<T> gather_values(Context& context, Group& group, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const Arena::Scope scope(context.scratch());
  const auto count = static_cast<std::size_t>(group.size());
  char* const places = context.scratch()
                           .template take<char, 1>({static_cast<int64_t>((count + 1) * sizeof(T))})
                           .data;
  std::vector<T> all(count);
  DeviceRuntime& runtime = context.runtime();
  runtime.copy_from_host(places, &mine, sizeof(T));
  group.all_gather(context, places, places + sizeof(T), sizeof(T));
  runtime.copy_to_host(all.data(), places + sizeof(T), count * sizeof(T));
  runtime.synchronize();
  return all;
}

}  // namespace cfaa
