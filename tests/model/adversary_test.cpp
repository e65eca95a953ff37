#include "host/model/adversary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

constexpr int64_t kN = 5, kD = 3;

// Embeddings of both domains as a step has them, users and items side by side, and an adversary.
class Against {
 public:
  Against(Context& context, const AdversaryOptions& options)
      : context_(context), adversary_(context, options, kD, kN, parameters_) {
    parameters_.allocate(context);
    const VectorView<double> layers = parameters_.dense(adversary_.group());
    const std::vector<double> start = normal<double>(layers.size(), 7, 0, 0.5);
    context.runtime().copy_from_host(layers.data, start.data(), start.size() * sizeof(double));
    for (std::size_t d = 0; d < 2; ++d) {
      const std::vector<double> z = normal<double>(2 * kN * kD, d + 1, 0.3 * double(d), 0.8);
      z_[d] = Tensor<double, 2>(context, {kN, 2 * kD}, z.data());
      dz_[d] = Tensor<double, 2>(context, {kN, 2 * kD});
    }
    value_ = Tensor<double, 1>(context, {1});
    context.runtime().synchronize();
  }

  // L; gradients are those of this call alone.
  double apply() {
    const VectorView<double> layers = parameters_.dense_gradient(adversary_.group());
    context_.runtime().fill_zero(layers.data,
                                 static_cast<std::size_t>(layers.size()) * sizeof(double));
    LossInput<double> input;
    for (std::size_t d = 0; d < 2; ++d) {
      dz_[d].fill_zero();
      for (std::size_t s = 0; s < 2; ++s) {
        const int64_t first = static_cast<int64_t>(s) * kD;
        input.z[d][s] = {z_[d].view().data + first, {kN, kD}, {2 * kD, 1}};
        input.dz[d][s] = {dz_[d].view().data + first, {kN, kD}, {2 * kD, 1}};
      }
    }
    input.value = value_.view();
    adversary_.apply(context_, input);
    return value_.to_host()[0];
  }

  // dL/dx for every element of an array in the host's reach, by central differences.
  std::vector<double> differences(double* x, int64_t count) {
    std::vector<double> found;
    for (int64_t i = 0; i < count; ++i) {
      const double value = x[i], nudge = 1e-6;
      x[i] = value + nudge;
      const double above = apply();
      x[i] = value - nudge;
      const double below = apply();
      x[i] = value;
      found.push_back((above - below) / (2 * nudge));
    }
    return found;
  }

  void clear_layers() {
    const VectorView<double> layers = parameters_.dense(adversary_.group());
    context_.runtime().fill_zero(layers.data,
                                 static_cast<std::size_t>(layers.size()) * sizeof(double));
  }
  void exchange_domains() { std::swap(z_[kSource], z_[kTarget]); }

  VectorView<double> layers() { return parameters_.dense(adversary_.group()); }
  std::vector<double> layer_gradient() {
    return to_host(context_, parameters_.dense_gradient(adversary_.group()));
  }
  Tensor<double, 2>& z(std::size_t domain) { return z_[domain]; }
  std::vector<double> dz(std::size_t domain) { return dz_[domain].to_host(); }

 private:
  Context& context_;
  Parameters<double> parameters_;
  Adversary<double> adversary_;
  PerDomain<Tensor<double, 2>> z_, dz_;
  Tensor<double, 1> value_;
};

std::vector<double> negated(std::vector<double> values) {
  for (double& value : values) value = -value;
  return values;
}

AdversaryOptions small_adversary() {
  AdversaryOptions options;
  options.layers = {4, 3};
  return options;
}

class AdversaryLoss : public OnDevice {
 protected:
  // What the CPU finds by differences, or another device by what the CPU finds.
  void expect_right(const AdversaryOptions& options) {
    const auto cpu = make_context("cpu", {.threads = 2});
    Against expected(*cpu, options);
    expected.apply();
    const std::vector<double> layers = expected.layer_gradient();
    const PerDomain<std::vector<double>> dz = {expected.dz(kSource), expected.dz(kTarget)};
    if (GetParam() == "cpu") {
      EXPECT_TRUE(close(expected.differences(expected.layers().data, expected.layers().size()),
                        layers, 1e-6));
      if (options.goal == AdversaryGoal::reverse) {
        EXPECT_TRUE(close(negated(expected.differences(expected.z(kTarget).view().data,
                                                       expected.z(kTarget).view().size())),
                          dz[kTarget], 1e-6));
      }
      return;
    }
    const auto context = make_context(GetParam(), {.threads = 2});
    Against found(*context, options);
    found.apply();
    EXPECT_TRUE(close(layers, found.layer_gradient(), 1e-12));
    EXPECT_TRUE(close(dz[kSource], found.dz(kSource), 1e-12));
    EXPECT_TRUE(close(dz[kTarget], found.dz(kTarget), 1e-12));
  }
};
CFAA_TEST_ON_DEVICES(AdversaryLoss);

TEST_P(AdversaryLoss, LayersDescendItAndEmbeddingsAscendIt) {
  expect_right(small_adversary());
}

TEST_P(AdversaryLoss, IsRightOnUsersAndItemsSideBySide) {
  AdversaryOptions options = small_adversary();
  options.input = AdversaryInput::pair;
  expect_right(options);
}

TEST_P(AdversaryLoss, IsTwiceLogTwoWhereTheDiscriminatorsKnowNothing) {
  const auto context = make_context(GetParam(), {.threads = 2});
  Against blind(*context, small_adversary());
  blind.clear_layers();

  EXPECT_TRUE(close(blind.apply(), 2 * std::log(2.0), 1e-12));
}

TEST_P(AdversaryLoss, TheTargetConfusesByTheOthersLabel) {
  const auto context = make_context(GetParam(), {.threads = 2});
  AdversaryOptions options = small_adversary();
  options.input = AdversaryInput::pair;
  Against reversed(*context, options);
  options.goal = AdversaryGoal::confuse;
  options.against = AdversarySide::target;
  Against confused(*context, options);

  // With the domains exchanged, the target's rows have the label that it wants to have.
  reversed.exchange_domains();
  reversed.apply();
  confused.apply();

  EXPECT_TRUE(close(negated(reversed.dz(kSource)), confused.dz(kTarget), 1e-9));
  EXPECT_EQ(confused.dz(kSource), std::vector<double>(2 * kN * kD, 0.0));
}

}  // namespace
}  // namespace cfaa::test
