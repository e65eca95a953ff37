// The alignment losses against the golden cases: an independent float64 implementation with
// automatic differentiation. Small cases lie in tests/fixtures; the paper's size only beside the
// project.

#include <gtest/gtest.h>

#include <cstdlib>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/io/npy.h"
#include "host/ops/alignment_config.h"
#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"
#include "tests/compare.h"
#include "tests/on_device.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

// What float mode and double mode must reach, norm-wise; `paper`'s gradients are stored in float32.
template <class T>
double loss_tolerance() {
  return std::is_same_v<T, double> ? 1e-9 : 2e-4;
}
template <class T>
double gradient_tolerance(const std::string& name) {
  if (std::is_same_v<T, float>) return 2e-3;
  return name == "paper" ? 1e-7 : 1e-9;
}

template <class T>
class GoldenCase {
 public:
  GoldenCase(Context& context, const std::string& name) : context_(context), name_(name) {
    folder_ = fixture_path("alignment/" + name);
    if (!std::filesystem::exists(folder_)) {
      folder_ = golden_path("fixtures/alignment/" + name);
    }
    if (!exists()) return;
    case_ = nlohmann::json::parse(read_text(folder_ + "/case.json"));
    alignment_option_set(options_).read(case_["parameters"], name, {"name"});
    source_ = load("zs");
    target_ = load("zt");
    pair_ = {source_.view(), target_.view()};
  }

  bool exists() const { return std::filesystem::exists(folder_); }

  void check_vertical(OtSolver solver, const std::string& key) {
    options_.coupling.solver = solver;
    const Arena::Scope scope(context_.scratch());
    const auto forward = vertical_loss<T>(context_, {&pair_, 1}, options_);

    EXPECT_TRUE(close(loss(forward.loss), expected(key), loss_tolerance<T>())) << name_;
    check_samples(forward.typical.samples[0], "typical_s");
    check_samples(forward.typical.samples[1], "typical_t");
    check_gradients(key, [&](GradientPair<T> gradient) {
      vertical_loss_backward<T>(context_, {&pair_, 1}, forward, 1.0, {&gradient, 1});
    });
  }

  void check_horizontal(SlimStep step, Solver solver, const std::string& key,
                        const std::string& gradient_prefix) {
    options_.slim.step = step;
    options_.slim.solver = solver;
    const Arena::Scope scope(context_.scratch());
    const auto forward = horizontal_loss<T>(context_, {&pair_, 1}, options_);
    context_.check_faults();

    EXPECT_TRUE(close(loss(forward.loss), expected(key), loss_tolerance<T>())) << name_;
    if (step == SlimStep::exact) {
      const double tolerance = name_ == "paper" ? 1e-6 : 1e-8;  // paper's B is stored in float32
      EXPECT_TRUE(close(to_host(context_, forward.slim.b[0]), golden("slim_b_s"), tolerance));
      EXPECT_TRUE(close(to_host(context_, forward.slim.b[1]), golden("slim_b_t"), tolerance));
    }
    check_gradients(gradient_prefix, [&](GradientPair<T> gradient) {
      horizontal_loss_backward<T>(context_, {&pair_, 1}, options_, forward, 1.0, {&gradient, 1});
    });
  }

 private:
  std::vector<double> golden(const std::string& file) const {
    return NpyFile(folder_ + "/" + file + ".npy").read<double>();
  }
  Tensor<T, 2> load(const std::string& file) const {
    const NpyFile npy(folder_ + "/" + file + ".npy");
    return Tensor<T, 2>(context_, {npy.shape()[0], npy.shape()[1]}, npy.read<T>().data());
  }
  double expected(const std::string& key) const { return case_["expected"][key].get<double>(); }
  double loss(VectorView<T> value) const { return to_host(context_, value)[0]; }

  // The fixture is (K, D), the op's samples (D, K).
  void check_samples(MatrixView<T> samples, const std::string& file) {
    const auto values = to_host(context_, samples);
    std::vector<double> turned(values.size());
    const auto d = static_cast<std::size_t>(samples.rows());
    const auto k = static_cast<std::size_t>(samples.cols());
    for (std::size_t q = 0; q < d; ++q) {
      for (std::size_t j = 0; j < k; ++j) turned[j * d + q] = values[q * k + j];
    }
    const double tolerance = std::is_same_v<T, float> ? 1e-4 : name_ == "paper" ? 1e-6 : 1e-9;
    EXPECT_TRUE(close(turned, golden(file), tolerance)) << name_ << " " << file;
  }

  template <class Backward>
  void check_gradients(const std::string& prefix, Backward backward) {
    Tensor<T, 2> source(context_, source_.shape()), target(context_, target_.shape());
    source.fill_zero();
    target.fill_zero();
    backward({source.view(), target.view()});
    context_.check_faults();

    const double tolerance = gradient_tolerance<T>(name_);
    EXPECT_TRUE(close(source.to_host(), golden(prefix + "_grad_zs"), tolerance))
        << name_ << " " << prefix;
    EXPECT_TRUE(close(target.to_host(), golden(prefix + "_grad_zt"), tolerance))
        << name_ << " " << prefix;
  }

  Context& context_;
  std::string name_, folder_;
  nlohmann::json case_;
  AlignmentOptions options_;
  Tensor<T, 2> source_, target_;
  EmbeddingPair<T> pair_;
};

class GoldenCases : public OnDevice {
 protected:
  std::vector<Solver> solvers() {
    if (context().device() == DeviceKind::cpu) return {Solver::gemm};
    return {Solver::gemm, Solver::cusolver};
  }

  template <class T>
  void check(const std::string& name) {
    GoldenCase<T> golden(context(), name);
    if (!golden.exists()) GTEST_SKIP() << "the case '" << name << "' is not on this machine";
    golden.check_vertical(OtSolver::sinkhorn, "vertical_sinkhorn");
    golden.check_vertical(OtSolver::exact, "vertical_exact");
    for (const Solver solver : solvers()) {
      golden.check_horizontal(SlimStep::exact, solver, "horizontal_exact", "horizontal");
      golden.check_horizontal(SlimStep::paper, solver, "horizontal_paper", "horizontal_paper");
    }
  }
};
CFAA_TEST_ON_DEVICES(GoldenCases);

TEST_P(GoldenCases, TinyInDouble) {
  check<double>("tiny");
}
TEST_P(GoldenCases, TinyInFloat) {
  check<float>("tiny");
}
TEST_P(GoldenCases, SmallInDouble) {
  check<double>("small");
}
TEST_P(GoldenCases, SmallInFloat) {
  check<float>("small");
}
TEST_P(GoldenCases, CollapseInDouble) {
  check<double>("collapse");
}
TEST_P(GoldenCases, CollapseInFloat) {
  check<float>("collapse");
}
// Minutes on the emulated device: tools/test --full asks for them.
bool too_long_for(const std::string& device) {
  return device == "cuda" && std::getenv("CFAA_LONG_TESTS") == nullptr;
}
TEST_P(GoldenCases, PaperSizeInDouble) {
  if (too_long_for(GetParam())) GTEST_SKIP() << "runs where CFAA_LONG_TESTS is set";
  check<double>("paper");
}
TEST_P(GoldenCases, PaperSizeInFloat) {
  if (too_long_for(GetParam())) GTEST_SKIP() << "runs where CFAA_LONG_TESTS is set";
  check<float>("paper");
}

}  // namespace
}  // namespace cfaa::test
