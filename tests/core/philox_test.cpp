#include "host/core/philox.h"

#include <gtest/gtest.h>

#include <vector>

namespace cfaa {
namespace {

// The known answers that come with the generator's reference implementation (Random123).
TEST(Philox, EqualsTheReferenceVectors) {
  const Philox::Block zero = Philox{0}(0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[1], 0xe169c58du);
  EXPECT_EQ(zero.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);

  const Philox::Block ones = Philox{~0ull}(~0ull, ~0ull);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[1], 0x41c83b0eu);
  EXPECT_EQ(ones.word[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);

  const Philox::Block digits_of_pi =
      Philox{0x299f31d0a4093822ull}(0x85a308d3243f6a88ull, 0x0370734413198a2eull);
  EXPECT_EQ(digits_of_pi.word[0], 0xd16cfe09u);
  EXPECT_EQ(digits_of_pi.word[1], 0x94fdccebu);
  EXPECT_EQ(digits_of_pi.word[2], 0x5001e420u);
  EXPECT_EQ(digits_of_pi.word[3], 0x24126ea1u);
}

TEST(Philox, UniformStaysInItsInterval) {
  const Philox random{3};
  double sum = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const float u = random.uniform(i, 0);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
  }

  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(Philox, BelowReachesEveryValueAboutEquallyOften) {
  const Philox random{4};
  std::vector<int> hits(7);
  for (uint64_t i = 0; i < 7000; ++i) ++hits[random.below(7, i, 1)];

  for (const int hit : hits) EXPECT_NEAR(hit, 1000, 150);
}

}  // namespace
}  // namespace cfaa
