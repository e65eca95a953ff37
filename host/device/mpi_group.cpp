#include "host/device/mpi_group.h"

#include <fmt/format.h>

#include "host/core/error.h"
#if CFAA_HAS_MPI
#include <mpi.h>

#include <algorithm>
#endif

namespace cfaa {

#if CFAA_HAS_MPI
namespace {

constexpr int kUserError = 2;

// MPI's own errors end the job where they happen, with MPI's words: nothing is returned.
class MpiGroup final : public Group {
 public:
  MpiGroup(int rank, int size) : Group(rank, size) {}
  ~MpiGroup() override { MPI_Finalize(); }

  void all_gather(Context& context, const void* send, void* receive, std::size_t bytes) override {
    check(context);
    const Bytes type(bytes);
    MPI_Allgather(send, 1, type, receive, 1, type, MPI_COMM_WORLD);
  }
  void all_to_all(Context& context, const void* send, void* receive, std::size_t bytes) override {
    check(context);
    const Bytes type(bytes);
    MPI_Alltoall(send, 1, type, receive, 1, type, MPI_COMM_WORLD);
  }
  void broadcast(Context& context, void* data, std::size_t bytes, int root) override {
    check(context);
    const Bytes type(bytes);
    MPI_Bcast(data, 1, type, root, MPI_COMM_WORLD);
  }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void abort() override {
    MPI_Abort(MPI_COMM_WORLD, kUserError);
    std::abort();  // MPI_Abort is not said to stay away
  }

 private:
  // A type of so many bytes: MPI counts in int, and arrays may be longer.
  class Bytes {
   public:
    explicit Bytes(std::size_t bytes) {
      constexpr std::size_t kBlock = std::size_t{1} << 30;
      const int blocks = static_cast<int>(bytes / kBlock);
      MPI_Datatype block, all;
      MPI_Type_contiguous(static_cast<int>(kBlock), MPI_BYTE, &block);
      MPI_Type_contiguous(blocks, block, &all);
      int counts[] = {1, static_cast<int>(bytes % kBlock)};
      MPI_Aint places[] = {0, static_cast<MPI_Aint>(kBlock) * blocks};
      MPI_Datatype types[] = {all, MPI_BYTE};
      MPI_Type_create_struct(2, counts, places, types, &type_);
      MPI_Type_commit(&type_);
      MPI_Type_free(&block);
      MPI_Type_free(&all);
    }
    ~Bytes() { MPI_Type_free(&type_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    operator MPI_Datatype() const { return type_; }

   private:
    MPI_Datatype type_;
  };

  static void check(Context& context) {
    if (context.device() == DeviceKind::cpu) return;
    throw Error("ranks that MPI connects compute on the CPU; use --device cpu");
  }
};

}  // namespace

std::unique_ptr<Group> make_mpi_group(const RankPlace& place) {
  int provided = 0, rank = 0, size = 1;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto group = std::make_unique<MpiGroup>(rank, size);
  if (size != place.size) {
    throw Error(
        fmt::format("{} says {} ranks, and MPI finds {}; start the program by the mpirun "
                    "or srun of the MPI that it was built with",
                    place.told_by, place.size, size));
  }
  return group;
}

#else

std::unique_ptr<Group> make_mpi_group(const RankPlace& place) {
  throw Error(
      fmt::format("{} says {} ranks, and this program was built without MPI; build the preset "
                  "'mpi', or start it once",
                  place.told_by, place.size));
}

#endif

}  // namespace cfaa
