#include "host/core/arena.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "host/core/context.h"

namespace cfaa {
namespace {

TEST(Arena, NothingIsAllocatedAfterTheFirstPass) {
  Context context(make_cpu_runtime());
  Arena& arena = context.scratch();
  const auto step = [&] {
    const Arena::Scope scope(arena);
    arena.take<float, 2>({1000, 1000});
    const Arena::Scope inner(arena);
    arena.take<double, 1>({300000});
  };

  step();
  const int64_t after_first = arena.allocations();
  for (int i = 0; i < 10; ++i) step();

  EXPECT_EQ(arena.allocations(), after_first);
}

TEST(Arena, MemoryOfAnEndedScopeIsTakenAgain) {
  Context context(make_cpu_runtime());
  Arena& arena = context.scratch();
  const Arena::Scope outer(arena);
  float* first = nullptr;
  {
    const Arena::Scope inner(arena);
    first = arena.take<float, 1>({100}).data;
  }

  EXPECT_EQ((arena.take<float, 1>({100}).data), first);
}

TEST(Arena, PiecesAreAlignedAndDoNotOverlap) {
  Context context(make_cpu_runtime());
  Arena& arena = context.scratch();
  const Arena::Scope scope(arena);

  const View<char, 1> a = arena.take<char, 1>({3});
  const View<double, 1> b = arena.take<double, 1>({0});
  const View<double, 1> c = arena.take<double, 1>({5});

  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data) % 256, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(c.data) % 256, 0u);
  EXPECT_GE(reinterpret_cast<char*>(b.data), a.data + 3);
  EXPECT_GE(reinterpret_cast<char*>(c.data), reinterpret_cast<char*>(b.data));
}

TEST(Arena, ReserveMakesRoomAhead) {
  Context context(make_cpu_runtime());
  Arena& arena = context.scratch();
  arena.reserve(10 << 20);
  const int64_t before = arena.allocations();

  const Arena::Scope scope(arena);
  arena.take_bytes(10 << 20);

  EXPECT_EQ(arena.allocations(), before);
}

TEST(ArenaDeathTest, TakingOutsideAScopeIsAProgrammersError) {
  Context context(make_cpu_runtime());

  EXPECT_DEATH(context.scratch().take_bytes(1), "scopes_ > 0");
}

TEST(FaultLatch, IsThrownOnceAndNamesTheProblem) {
  Context context(make_cpu_runtime());
  *context.fault_latch() = {static_cast<int32_t>(FaultCode::not_positive_definite),
                            static_cast<int32_t>(FaultSite::slim), 2, 17};

  try {
    context.check_faults();
    FAIL() << "a fault was latched";
  } catch (const std::exception& fault) {
    EXPECT_NE(std::string(fault.what()).find("SLIM, problem 2"), std::string::npos);
    EXPECT_NE(std::string(fault.what()).find("17"), std::string::npos);
  }
  context.check_faults();
}

}  // namespace
}  // namespace cfaa
