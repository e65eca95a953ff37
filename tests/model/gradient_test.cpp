// Every parameter of a small model, nudged: the hand-written backward against central differences
// in double. The alignment losses hold Psi, the plans and Phi fixed, so their part of the check is
// split at Z: their gradients with respect to Z are tested with those frozen (tests/ops), and here
// the gradient of <dL/dZ, Z(parameters)>, with dL/dZ as the step found it, must be the step's.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "host/device/make_context.h"
#include "host/model/cfaa.h"
#include "tests/compare.h"
#include "tests/small_world.h"

namespace cfaa::test {
namespace {

using Arrays = std::map<std::string, std::vector<double>>;

// A model, a batch and a step that changes nothing: its learning rate is next to 0.
class FrozenStep {
 public:
  // With `offsets` the scores have random ones.
  FrozenStep(Context& context, const ModelOptions& options, TrainOptions train, bool offsets)
      : context_(context),
        loss_(train.loss),
        assembler_(world_.data(), options, frozen(train)),
        layout_(with_offsets(assembler_.shape(), offsets)),
        host_(static_cast<char*>(std::aligned_alloc(256, (layout_.bytes() + 255) / 256 * 256)),
              std::free),
        host_batch_(layout_.at(host_.get())),
        model_(context, options, {}, model_shape(world_.data()), layout_.shape()) {
    assembler_.assemble(3, host_batch_);
    for (const DomainBatch<double>& domain : host_batch_.domain) {
      if (domain.offset.data == nullptr) continue;
      const std::vector<double> values = normal<double>(domain.offset.size(), 17);
      std::copy(values.begin(), values.end(), domain.offset.data);
    }
    device_ = Tensor<char, 1>(context, {static_cast<int64_t>(layout_.bytes())}, host_.get());
    batch_ = layout_.at(device_.view().data);
    model_.initialize(context, batch_, 11);
    // Away from the kinks: a row whose units are all off would leave the next layer at its bias, 0.
    uint64_t seed = 1;
    model_.parameters().for_each([&](const std::string& name, MatrixView<double> array) {
      if (name.starts_with("adam.") || !name.ends_with(".bias")) return;
      const std::vector<double> biases = normal<double>(array.size(), seed++, 0, 0.1);
      context.runtime().copy_from_host(array.data, biases.data(), biases.size() * sizeof(double));
      context.runtime().synchronize();
    });
  }

  // Every array that the step shows.
  Arrays run() {
    Arrays arrays;
    NamedArrays<double> named(model_.parameters(), [&](const std::string& name,
                                                       MatrixView<const double> array,
                                                       VectorView<const int32_t> rows) {
      const int64_t count = rows.data == nullptr ? array.rows() : touched(name).size();
      std::vector<double>& copy = arrays[name];
      copy.resize(static_cast<std::size_t>(count * array.cols()));
      for (int64_t r = 0; r < count; ++r) {
        context_.runtime().copy_to_host(copy.data() + r * array.cols(),
                                        array.data + r * array.stride[0],
                                        static_cast<std::size_t>(array.cols()) * sizeof(double));
      }
      context_.runtime().synchronize();
    });
    model_.step(context_, batch_, loss_, MathMode::fp32, &named);
    return arrays;
  }

  // The rows of the table whose gradient is called `gradient`.
  VectorView<int32_t> touched(const std::string& gradient) const {
    for (std::size_t d = 0; d < 2; ++d) {
      for (std::size_t s = 0; s < 2; ++s) {
        const SideBatch<double>& side = host_batch_.domain[d].side[s];
        for (const auto& [part, lists] :
             {std::pair(".id", &side.id), std::pair(".history", &side.history),
              std::pair(".counterpart", &side.text.counterpart), std::pair(".query", &side.id),
              std::pair(".key", &side.text.words)}) {
          if (gradient != "gradient." + tower_name(d, s) + part) continue;
          return {lists->touched_row.data, {lists->touched_count.data[0]}};
        }
      }
    }
    return {};
  }

  Parameters<double>& parameters() { return model_.parameters(); }

 private:
  static TrainOptions& frozen(TrainOptions& train) {
    train.learning_rate = train.embedding_rate = 1e-300;
    return train;
  }

  static BatchShape with_offsets(BatchShape shape, bool offsets) {
    shape.offsets = {offsets, offsets};
    return shape;
  }

  Context& context_;
  ScoreLoss loss_;
  SmallWorld world_;
  BatchAssembler<double> assembler_;
  BatchLayout<double> layout_;
  std::unique_ptr<char, decltype(&std::free)> host_;
  Batch<double> host_batch_, batch_;
  Tensor<char, 1> device_;
  Cfaa<double> model_;
};

// On the CPU, where parameters are in reach.
void expect_gradients(const ModelOptions& options, const TrainOptions& train, bool offsets) {
  const auto context = make_context("cpu", {.threads = 2, .seed = 5});
  FrozenStep step(*context, options, train, offsets);
  const Arrays base = step.run();
  const std::vector<double>& dz = base.at("gradient.z");
  const auto surrogate = [&](const std::string& name) {
    const Arrays now = step.run();
    const std::vector<double>& losses = now.at("loss.score");
    if (name.starts_with("adversary")) return now.at("loss.adversary")[0];
    if (name.starts_with("scorer")) {
      const auto more = now.find("loss.self_training");
      const double weight = options.losses.term("self_training").weight;
      return losses[0] + losses[1] + (more == now.end() ? 0 : weight * more->second[0]);
    }
    double sum = 0;
    for (std::size_t i = 0; i < dz.size(); ++i) sum += dz[i] * now.at("z")[i];
    return sum;
  };

  int checked = 0;
  step.parameters().for_each([&](const std::string& name, MatrixView<double> array) {
    if (name.starts_with("adam.")) return;
    const VectorView<int32_t> touched = step.touched("gradient." + name);
    const int64_t rows = touched.data == nullptr ? array.rows() : touched.size();
    std::vector<double> expected;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < array.cols(); ++c) {
        double& place = array(touched.data == nullptr ? r : touched.data[r], c);
        const double value = place, nudge = 1e-6;
        place = value + nudge;
        const double above = surrogate(name);
        place = value - nudge;
        const double below = surrogate(name);
        place = value;
        expected.push_back((above - below) / (2 * nudge));
      }
    }
    EXPECT_TRUE(close(expected, base.at("gradient." + name), 1e-6)) << name;
    ++checked;
  });
  EXPECT_GE(checked, 8);
}

class ModelGradient : public OnDevice {
 protected:
  // By differences on the CPU; any other device shows what the CPU shows.
  void expect_right(const ModelOptions& options, const TrainOptions& train, bool offsets = false) {
    if (GetParam() == "cpu") return expect_gradients(options, train, offsets);
    const auto cpu = make_context("cpu", {.threads = 2, .seed = 5});
    const auto device = make_context(GetParam(), {.threads = 2, .seed = 5});
    const Arrays expected = FrozenStep(*cpu, options, train, offsets).run();
    const Arrays found = FrozenStep(*device, options, train, offsets).run();
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, array] : expected) {
      EXPECT_TRUE(close(array, found.at(name), 1e-9)) << name;
    }
  }
};
CFAA_TEST_ON_DEVICES(ModelGradient);

TEST_P(ModelGradient, IsRightForTheDefaultModel) {
  expect_right(small_model(), small_training());
}

TEST_P(ModelGradient, IsRightForTheResidualOfSignals) {
  ModelOptions options = small_model();
  TrainOptions train = small_training();
  expect_right(options, train, true);
  options.scorer = ScorerKind::dot;
  train.loss = ScoreLoss::bpr;
  expect_right(options, train, true);
}

TEST_P(ModelGradient, IsRightForSharedLinearTowersAndProducts) {
  ModelOptions options = small_model();
  options.towers = TowerSharing::shared;
  options.layers = {};
  options.scorer = ScorerKind::dot;
  options.history_labels = HistoryLabels::split;
  options.history_pooling = HistoryPooling::sum;
  options.losses.choose(Variant::v);
  TrainOptions train = small_training();
  train.loss = ScoreLoss::bpr;
  expect_right(options, train);
}

TEST_P(ModelGradient, IsRightForResidualTowers) {
  ModelOptions options = small_model();
  options.residual = Residual::id;
  options.id_dim = options.dim;
  expect_right(options, small_training());
  options.residual = Residual::id_history;
  options.history_dim = options.dim;
  expect_right(options, small_training());
  options.inputs = {"id", "history"};  // nothing is left for layers to read
  expect_right(options, small_training());
  options.scorer = ScorerKind::dot;  // matrix factorisation
  expect_right(options, small_training());
}

TEST_P(ModelGradient, IsRightForPairsOfTheSourceAlone) {
  TrainOptions train = small_training();
  train.loss = ScoreLoss::bpr;
  train.target_supervision = Supervision::none;
  ModelOptions options = small_model();
  options.scorer = ScorerKind::dot;  // a pair does not see the MLP's last bias
  expect_right(options, train);
}

// The discriminators descend their loss; the towers and the scorer see all of the others.
TEST_P(ModelGradient, IsRightForTheLossesOfTheBaselines) {
  ModelOptions options = small_model();
  options.losses.choose(Variant::base);
  for (const char* name : {"coral", "center", "self_training", "adversary"}) {
    options.losses.term(name).weight = 0.7;
  }
  options.losses.self_training = {0.5, 0.5};
  options.losses.adversary.layers = {3};
  options.losses.adversary.learning_rate = 1e-300;
  expect_right(options, small_training());
}

TEST_P(ModelGradient, IsRightForTheTargetAlone) {
  ModelOptions options = small_model();
  options.losses.choose(Variant::base);
  TrainOptions train = small_training();
  train.domains = TrainedDomains::target;
  expect_right(options, train);
}

TEST_P(ModelGradient, IsRightForTheScorersOfTheBaselines) {
  ModelOptions options = small_model();
  options.losses.choose(Variant::base);
  options.scorer_dropout = 0.3;
  for (const ScorerKind kind : {ScorerKind::mlp, ScorerKind::fm, ScorerKind::gated_product}) {
    options.scorer = kind;
    expect_right(options, small_training());
  }
}

TEST_P(ModelGradient, IsRightForConvolutionsOverWords) {
  for (const ReviewPooling pooling : {ReviewPooling::max, ReviewPooling::attention}) {
    ModelOptions options = small_convolution(pooling);
    TrainOptions train = small_training();
    expect_right(options, train);
    options.towers = TowerSharing::shared;
    expect_right(options, train);
    train.domains = TrainedDomains::target;
    expect_right(options, train);
  }
}

TEST_P(ModelGradient, IsRightForAMemoryOfWords) {
  ModelOptions options = small_word_memory();
  options.losses.term("adversary").weight = 0.7;
  options.losses.adversary.layers = {3};
  options.losses.adversary.learning_rate = 1e-300;
  expect_right(options, small_training());
}

TEST_P(ModelGradient, IsRightAsPublished) {
  ModelOptions options = small_model();
  options.towers = TowerSharing::separate;
  options.scorer = ScorerKind::mlp;
  options.scorer_layers = {4, 3};
  options.layers = {5, 4};
  options.dropout = 0;
  TrainOptions train = small_training();
  train.target_supervision = Supervision::positives;
  train.reduction = Reduction::sum;
  expect_right(options, train);
}

}  // namespace
}  // namespace cfaa::test
