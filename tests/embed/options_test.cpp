#include "host/embed/options.h"

#include <gtest/gtest.h>

namespace cfaa::test {
namespace {

TEST(PrecisionChoice, IsHalfOnAGpuAndFloatOnTheCpuUnlessToldOtherwise) {
  const EmbedOptions options;

  EXPECT_EQ(network_precision(options.precision, DeviceKind::cuda), NetworkPrecision::f16);
  EXPECT_EQ(network_precision(options.precision, DeviceKind::cpu), NetworkPrecision::f32);
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    EXPECT_EQ(network_precision(PrecisionChoice::f32, device), NetworkPrecision::f32);
    EXPECT_EQ(network_precision(PrecisionChoice::tf32, device), NetworkPrecision::tf32);
    EXPECT_EQ(network_precision(PrecisionChoice::f16, device), NetworkPrecision::f16);
    EXPECT_EQ(network_precision(PrecisionChoice::bf16, device), NetworkPrecision::bf16);
  }
}

}  // namespace
}  // namespace cfaa::test
