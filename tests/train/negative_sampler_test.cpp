#include "host/train/negative_sampler.h"

#include <gtest/gtest.h>

#include <array>

namespace cfaa::test {
namespace {

TEST(NegativeSampler, DrawsNothingThatIsTaken) {
  const NegativeSampler sampler(7, int64_t{10});
  const auto even = [](int32_t item) { return item % 2 == 0; };

  for (uint64_t index = 0; index < 200; ++index) {
    const NegativeSampler::Draw draw = sampler(index, 3, even);
    EXPECT_FALSE(draw.taken);
    EXPECT_EQ(draw.item % 2, 1);
  }
}

TEST(NegativeSampler, SaysSoWhereEverythingIsTaken) {
  const NegativeSampler::Draw draw =
      NegativeSampler(7, int64_t{10})(0, 3, [](int32_t) { return true; });

  EXPECT_TRUE(draw.taken);
  EXPECT_LT(draw.item, 10);
}

TEST(NegativeSampler, FollowsThePopularity) {
  const NegativeSampler sampler(7, std::vector<double>{1, 1, 4});
  std::array<int, 3> drawn{};

  for (uint64_t index = 0; index < 4000; ++index) {
    ++drawn[static_cast<std::size_t>(sampler(index, 3, [](int32_t) { return false; }).item)];
  }

  EXPECT_NEAR(drawn[0], 1000, 100);
  EXPECT_EQ(drawn[1], 0);
  EXPECT_NEAR(drawn[2], 3000, 100);
}

}  // namespace
}  // namespace cfaa::test
