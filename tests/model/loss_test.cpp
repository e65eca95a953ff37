#include "host/model/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "host/core/tensor.h"
#include "host/device/make_context.h"
#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

TEST(LossOptions, AVariantLeavesLossesOut) {
  LossOptions options;
  const auto names = [&](Variant variant) {
    options.choose(variant);
    EXPECT_EQ(options.variant(), variant);
    std::string joined;
    for (const LossTerm& term : options.used()) joined += term.name + " ";
    return joined;
  };

  EXPECT_EQ(names(Variant::base), "");
  EXPECT_EQ(names(Variant::v), "vertical ");
  EXPECT_EQ(names(Variant::h), "horizontal ");
  EXPECT_EQ(names(Variant::full), "vertical horizontal ");
}

TEST(LossOptions, ALossWithoutWeightIsNotUsed) {
  LossOptions options;
  loss_option_set(options).set("vertical.weight", "0", "--set");

  ASSERT_EQ(options.used().size(), 1u);
  EXPECT_EQ(options.used()[0].name, "horizontal");
}

TEST(LossOptions, AWarmupGrowsToTheWholeWeight) {
  LossTerm term{"vertical", 0.5, LossSchedule::warmup, 2};

  EXPECT_EQ(term.weight_at(0, 5), 0.05);
  EXPECT_EQ(term.weight_at(4, 5), 0.25);
  EXPECT_EQ(term.weight_at(9, 5), 0.5);
  EXPECT_EQ(term.weight_at(100, 5), 0.5);
  term.schedule = LossSchedule::ramp;
  EXPECT_NEAR(term.weight_at(4, 5), 0.5 * (2 / (1 + std::exp(-5.0)) - 1), 1e-12);
  term.schedule = LossSchedule::constant;
  EXPECT_EQ(term.weight_at(0, 5), 0.5);
}

class Losses : public OnDevice {};
CFAA_TEST_ON_DEVICES(Losses);

TEST_P(Losses, AreThoseOfTheOpsByName) {
  const auto context = make_context(GetParam(), {.threads = 2});
  constexpr int64_t n = 9, d = 4;
  std::vector<Tensor<double, 2>> z, gradient;
  for (uint64_t i = 0; i < 4; ++i) {
    const std::vector<double> values = normal<double>(n * d, i + 1, 0.1, 0.5);
    z.emplace_back(*context, std::array{n, d}, values.data());
    gradient.emplace_back(*context, std::array{n, d});
    gradient.back().fill_zero();
  }
  LossInput<double> input;
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::size_t d = 0; d < 2; ++d) {
      input.z[d][s] = z[2 * s + d].view();
      input.dz[d][s] = gradient[2 * s + d].view();
    }
  }
  const std::vector<EmbeddingPair<double>> pairs = {{z[0].view(), z[1].view()},
                                                    {z[2].view(), z[3].view()}};
  const AlignmentOptions alignment;
  const Tensor<double, 1> value(*context, {1});
  input.value = value.view();
  Parameters<double> parameters;
  BatchShape shape;
  shape.n = n;

  for (const auto& loss : make_losses<double>(*context, {}, alignment, d, shape, parameters)) {
    loss->apply(*context, input);

    const Arena::Scope scope(context->scratch());
    const VectorView<double> expected =
        loss->name() == "vertical" ? vertical_loss<double>(*context, pairs, alignment).loss
                                   : horizontal_loss<double>(*context, pairs, alignment).loss;
    EXPECT_EQ(value.to_host(), to_host(*context, expected)) << loss->name();
    EXPECT_GT(std::abs(gradient[3].to_host()[0]), 0) << loss->name();
    gradient[3].fill_zero();
  }
}

}  // namespace
}  // namespace cfaa::test
