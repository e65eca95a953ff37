#include "host/io/spool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstring>
#include <numeric>

#include "tests/refusal.h"

namespace cfaa::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(Spool, WhatIsBeyondItsBoundLiesInAFileWithoutAName) {
  const TemporaryFolder folder;
  Spool spool(folder.path(), kMiB);

  auto* inside = static_cast<char*>(spool.take(kMiB));
  EXPECT_EQ(spool.on_disk(), 0u);
  auto* beyond = static_cast<char*>(spool.take(3 * kMiB));
  EXPECT_EQ(spool.on_disk(), 3 * kMiB);
  std::memset(inside, 1, kMiB);
  std::memset(beyond, 2, 3 * kMiB);
  spool.rest(inside);
  spool.rest(beyond);

  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  for (const char* at : {inside, inside + kMiB - 1}) EXPECT_EQ(*at, 1);
  for (const char* at : {beyond, beyond + 3 * kMiB - 1}) EXPECT_EQ(*at, 2);
}

TEST(Spool, RoomThatIsGivenBackIsThereAgain) {
  const TemporaryFolder folder;
  Spool spool(folder.path(), kMiB);
  void* inside = spool.take(kMiB);
  void* beyond = spool.take(kMiB);

  spool.give_back(beyond);
  EXPECT_EQ(spool.on_disk(), 0u);
  spool.give_back(inside);
  spool.take(kMiB);

  EXPECT_EQ(spool.on_disk(), 0u);
}

TEST(Spool, VectorsGrowOutOfMemoryIntoTheFileAndMove) {
  const TemporaryFolder folder;
  const auto spool = std::make_shared<Spool>(folder.path(), 64 << 10);
  SpooledVector<int> numbers{SpoolAllocator<int>(spool)};
  for (int i = 0; i < 100000; ++i) numbers.push_back(i);
  EXPECT_GT(spool->on_disk(), 0u);

  SpooledVector<int> moved = std::move(numbers);
  SpooledVector<int> assigned;
  assigned = std::move(moved);
  const SpooledVector<int> copy = assigned;

  std::vector<int> expected(100000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_TRUE(std::equal(assigned.begin(), assigned.end(), expected.begin(), expected.end()));
  EXPECT_TRUE(std::equal(copy.begin(), copy.end(), expected.begin(), expected.end()));
  assigned = SpooledVector<int>();
  EXPECT_LE(spool->on_disk(), 500 << 10);
}

TEST(Spool, ADiskWithoutRoomIsAnErrorThatNamesTheFolderAndTheRestGoesOn) {
  const TemporaryFolder folder;
  Spool spool(folder.path(), 0);
  auto* held = static_cast<char*>(spool.take(kMiB));
  std::memset(held, 7, kMiB);
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{4 * kMiB, limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);

  const std::string error = error_of([&] { spool.take(8 * kMiB); });
  const std::string none = error_of([&] { spool.take(2 * kMiB); });

  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, before);
  EXPECT_NE(error.find(folder.path()), std::string::npos) << error;
  EXPECT_NE(error.find("File too large"), std::string::npos) << error;
  EXPECT_EQ(none, "");
  EXPECT_EQ(held[kMiB - 1], 7);
}

TEST(Spool, AFolderThatIsNotThereIsNamed) {
  Spool spool("/nowhere/at/all", 0);

  EXPECT_NE(error_of([&] { spool.take(1); }).find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace cfaa::test
