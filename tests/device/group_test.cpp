// Exchanges between ranks: of one, of threads and, where mpirun starts this program, of MPI's.

#include "host/device/group.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

#include "host/core/error.h"
#include "host/device/make_context.h"
#include "tests/refusal.h"
#include "tests/thread_group.h"

namespace cfaa {
namespace {

// What rank `from` sends to rank `to` in place i.
int sent(int from, int to, int i) {
  return 1000 * from + 100 * to + i;
}

// Every exchange among the ranks of a group.
void expect_exchanges(Group& group) {
  const auto context = make_context("cpu", {.threads = 1});
  const int ranks = group.size(), me = group.rank();
  constexpr int kCount = 7;
  const auto places = static_cast<std::size_t>(ranks) * kCount;
  std::vector<int> to_each(places), received(places, -1), all(places, -1), mine(kCount);
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < kCount; ++i)
      to_each[static_cast<std::size_t>(r * kCount + i)] = sent(me, r, i);
  }
  std::iota(mine.begin(), mine.end(), 100 * me);
  std::vector<int> told(kCount, me);

  group.all_to_all(*context, to_each.data(), received.data(), kCount * sizeof(int));
  group.all_gather(*context, mine.data(), all.data(), kCount * sizeof(int));
  group.broadcast(*context, told.data(), kCount * sizeof(int), ranks - 1);
  group.barrier();
  const std::vector<double> values = gather_values(*context, group, 0.5 * me);

  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < kCount; ++i) {
      const auto at = static_cast<std::size_t>(r * kCount + i);
      EXPECT_EQ(received[at], sent(r, me, i));
      EXPECT_EQ(all[at], 100 * r + i);
    }
    EXPECT_EQ(values[static_cast<std::size_t>(r)], 0.5 * r);
  }
  EXPECT_EQ(told, std::vector<int>(kCount, ranks - 1));
}

TEST(Group, OfOneReceivesWhatItSends) {
  const auto group = make_group_of_one();

  EXPECT_EQ(group->size(), 1);
  EXPECT_TRUE(group->is_first());
  expect_exchanges(*group);
}

TEST(Group, ThreadsExchange) {
  for (const int ranks : {1, 2, 3, 4}) test::run_on_threads(ranks, expect_exchanges);
}

// Of the mpi preset; tests/CMakeLists.txt starts it by mpirun.
TEST(Group, RanksOfMpirunExchange) {
  const RankPlace place = find_rank();
  if (place.size == 1) GTEST_SKIP() << "mpirun has not started this";

  const std::unique_ptr<Group> group = make_group(place);

  EXPECT_EQ(group->rank(), place.rank);
  EXPECT_EQ(group->size(), place.size);
  expect_exchanges(*group);
}

TEST(Group, ThreadsThatDisagreeFail) {
  EXPECT_THROW(test::run_on_threads(2,
                                    [](Group& group) {
                                      const auto context = make_context("cpu", {.threads = 1});
                                      std::vector<int> send(8), receive(16);
                                      const std::size_t bytes = group.is_first() ? 4 : 8;
                                      group.all_gather(*context, send.data(), receive.data(),
                                                       bytes);
                                    }),
               std::logic_error);
}

TEST(Group, ARankThatFailsFreesTheOthers) {
  EXPECT_THROW(test::run_on_threads(3,
                                    [](Group& group) {
                                      if (group.rank() == 1) throw Error("broke");
                                      group.barrier();
                                    }),
               Error);
}

// Of the launchers' variables none but those that a test sets.
class RankOfProcess : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) GTEST_SKIP() << "mpirun has set its own";
    for (const char* name : kNames) unsetenv(name);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    for (const char* name : kNames) unsetenv(name);
  }

  static constexpr const char* kNames[] = {"OMPI_COMM_WORLD_RANK",
                                           "OMPI_COMM_WORLD_LOCAL_RANK",
                                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                                           "PMI_RANK",
                                           "PMI_SIZE",
                                           "SLURM_PROCID",
                                           "SLURM_NTASKS",
                                           "SLURM_STEP_NUM_TASKS",
                                           "SLURM_LOCALID",
                                           "RANK",
                                           "WORLD_SIZE",
                                           "LOCAL_RANK",
                                           "LOCAL_WORLD_SIZE",
                                           "SLURM_STEP_TASKS_PER_NODE"};
};

TEST_F(RankOfProcess, IsTheOnlyOneWithoutALauncher) {
  const RankPlace place = find_rank();

  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.size, 1);
  EXPECT_EQ(make_group(place)->size(), 1);
}

TEST_F(RankOfProcess, IsTorchrunsWhereItSaysSo) {
  setenv("RANK", "5", 1);
  setenv("WORLD_SIZE", "8", 1);
  setenv("LOCAL_RANK", "1", 1);
  setenv("LOCAL_WORLD_SIZE", "4", 1);

  const RankPlace place = find_rank();

  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.size, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 4);
  EXPECT_EQ(place.told_by, "WORLD_SIZE");
}

TEST_F(RankOfProcess, IsOfASlurmStepAndNotOfABatchScript) {
  setenv("SLURM_PROCID", "3", 1);
  setenv("SLURM_NTASKS", "6", 1);
  EXPECT_EQ(find_rank().size, 1);

  setenv("SLURM_STEP_NUM_TASKS", "6", 1);
  setenv("SLURM_STEP_TASKS_PER_NODE", "2(x3)", 1);

  EXPECT_EQ(find_rank().rank, 3);
  EXPECT_EQ(find_rank().size, 6);
  EXPECT_EQ(find_rank().local_size, 2);
}

TEST_F(RankOfProcess, RefusesWhatIsNoRank) {
  setenv("RANK", "8", 1);
  setenv("WORLD_SIZE", "8", 1);
  EXPECT_EQ(test::error_of([] { find_rank(); }),
            "RANK=8 and WORLD_SIZE=8 do not go together; start the program by mpirun or srun, or "
            "unset them");

  setenv("RANK", "first", 1);

  EXPECT_EQ(test::error_of([] { find_rank(); }),
            "RANK=first: is not a number of ranks; start the program by mpirun or srun, or unset "
            "it");
}

}  // namespace
}  // namespace cfaa
