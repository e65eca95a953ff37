#include <fmt/format.h>

#include <cmath>
#include <map>

#include "bench/cases.h"
#include "bench/step_world.h"
#include "host/core/stopwatch.h"
#include "host/train/step_runner.h"

namespace cfaa::bench {
namespace {

constexpr int64_t kReviewDim = 768;
constexpr int64_t kNarrow = 64;
constexpr int64_t kCheckedSteps = 3;
constexpr double kTolerance = 1e-3;  // of the losses after kCheckedSteps, float against double

using PartSeconds = std::map<std::string, std::vector<double>, std::less<>>;

// The seconds of each part of a step.
template <class T>
class PartTimer final : public StepObserver<T> {
 public:
  explicit PartTimer(PartSeconds& seconds) : seconds_(seconds) {}

  void part_done(std::string_view part, const StepArrays<T>&) override {
    seconds_[std::string(part)].push_back(watch_.seconds());
    watch_ = Stopwatch();
  }

 private:
  PartSeconds& seconds_;
  Stopwatch watch_;
};

// A model in training on a world.
template <class T>
struct Training {
  Training(Context& where, const StepWorld& world, const ModelOptions& model_options,
           const TrainOptions& train_options, const AlignmentOptions& alignment)
      : context(where),
        options(model_options),
        train(train_options),
        assembler(world.data(), options, train),
        model(context, options, alignment, model_shape(world.data()), assembler.shape()),
        runner(context, model, assembler, train) {
    runner.load(0);
    model.initialize(context, runner.batch(), 1);
  }

  void run() { runner.run(step++); }

  // One step, and the seconds of each of its parts.
  void run_by_parts(PartSeconds& seconds) {
    runner.load(step++);
    PartTimer<T> timer(seconds);
    model.step(context, runner.batch(), train.loss, MathMode::fp32, &timer);
  }

  std::vector<double> losses_after(int64_t steps) {
    while (step < steps) run();
    const StepMeasures found = runner.measures();
    std::vector<double> values = {found.score[kSource], found.score[kTarget], found.gradient_norm};
    for (const StepMeasures::Loss& loss : found.losses) values.push_back(loss.value);
    return values;
  }

  Context& context;
  ModelOptions options;
  TrainOptions train;
  BatchAssembler<T> assembler;
  Cfaa<T> model;
  StepRunner<T> runner;
  int64_t step = 0;
};

// A world and a model in training on it, made when first asked for: they take gigabytes.
class StepBench {
 public:
  StepBench(Context& context, const Sizes& sizes, DomainSize source, DomainSize target,
            bool reviews)
      : context_(context), alignment_(sizes.alignment), source_(source), target_(target) {
    model_.dim = sizes.d;
    model_.layers = {sizes.d};
    train_.batch_size = sizes.n;
    if (reviews) return;
    // Narrow tables: at full width a million rows with their moments, checked in double, would not
    // fit into most machines.
    model_.inputs = {"id", "history"};
    model_.id_dim = model_.history_dim = kNarrow;
    model_.residual = Residual::none;
  }

  std::string detail() const {
    return fmt::format("{} + {} users, {} + {} items, {} + {} interactions{}", source_.users,
                       target_.users, source_.items, target_.items, source_.interactions,
                       target_.interactions,
                       model_.has("review") ? fmt::format(", {} review columns", kReviewDim) : "");
  }

  void run() { training().run(); }

  std::string validate() {
    const std::vector<double> expected = fresh<double>()->losses_after(kCheckedSteps);
    const std::vector<double> found = fresh<float>()->losses_after(kCheckedSteps);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double error = std::abs(found[i] - expected[i]) / std::abs(expected[i]);
      if (!(error <= kTolerance)) {
        return fmt::format("loss {} is {} in float and {} in double", i, found[i], expected[i]);
      }
    }
    return "";
  }

  std::vector<Part> parts(const Plan& plan) {
    Training<float>& training = this->training();
    const BatchLayout<float> layout(training.assembler.shape());
    const Tensor<char, 1> memory(context_, {static_cast<int64_t>(layout.bytes())});
    PartSeconds seconds;
    for (int i = 0; i < std::max(plan.least_repetitions, static_cast<int>(10 * plan.seconds));
         ++i) {
      training.run_by_parts(seconds);
      training.runner.pause();
      if (context_.device() != DeviceKind::cpu) continue;
      const Stopwatch watch;
      training.assembler.assemble(training.step, layout.at(memory.view().data));
      seconds["assemble"].push_back(watch.seconds());
    }
    std::vector<Part> result;
    for (const char* name :
         {"assemble", "towers", "scorer", "vertical", "horizontal", "backward", "update"}) {
      if (!seconds[name].empty()) result.push_back({name, summarize(seconds[name])});
    }
    return result;
  }

 private:
  const StepWorld& world() {
    if (world_ == nullptr) {
      world_ = std::make_unique<StepWorld>(source_, target_, model_.has("review") ? kReviewDim : 0,
                                           model_.review_scale);
    }
    return *world_;
  }
  template <class T>
  std::unique_ptr<Training<T>> fresh() {
    return std::make_unique<Training<T>>(context_, world(), model_, train_, alignment_);
  }
  Training<float>& training() {
    if (training_ == nullptr) training_ = fresh<float>();
    return *training_;
  }

  Context& context_;
  AlignmentOptions alignment_;
  DomainSize source_, target_;
  ModelOptions model_;
  TrainOptions train_;
  std::unique_ptr<StepWorld> world_;
  std::unique_ptr<Training<float>> training_;
};

Case step_case(std::string name, const std::shared_ptr<StepBench>& bench) {
  Case c;
  c.name = std::move(name);
  c.detail = bench->detail();
  c.back_to_back = true;
  c.run = [bench] { bench->run(); };
  c.validate = [bench] { return bench->validate(); };
  return c;
}

}  // namespace

std::vector<Case> step_cases(Context& context, const Sizes& sizes) {
  const int64_t n = sizes.n;
  const DomainSize source{484 * n, 195 * n, 6640 * n}, target{43 * n, 31 * n, 430 * n};
  const auto paper = std::make_shared<StepBench>(context, sizes, source, target, true);
  std::vector<Case> cases = {step_case("train_step", paper)};
  cases[0].parts = [paper](const Plan& plan) { return paper->parts(plan); };
  for (const int64_t scale : {40, 400, 4000}) {
    const DomainSize large{scale * n, scale * n / 4, 10 * scale * n};
    cases.push_back(step_case(fmt::format("step_at_{}_rows", scale * n),
                              std::make_shared<StepBench>(context, sizes, large, target, false)));
  }
  return cases;
}

}  // namespace cfaa::bench
