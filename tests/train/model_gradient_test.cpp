// Every parameter of a small model, nudged: the hand-written backward against central differences
// in double. The alignment losses hold Psi, the plans and Phi fixed, so their part of the check is
// split at Z: their gradients with respect to Z are tested with those frozen (tests/ops), and here
// the gradient of <dL/dZ, Z(parameters)>, with dL/dZ as the step found it, must be the step's.

#include <gtest/gtest.h>

#include <map>

#include "host/model/cfaa.h"
#include "tests/compare.h"
#include "tests/train/small_world.h"

namespace cfaa::test {
namespace {

using Arrays = std::map<std::string, std::vector<double>>;

class ModelGradient : public OnDevice {
 protected:
  // A step that changes nothing (its learning rate is 0), and all it showed.
  Arrays traced_step(Cfaa<double>& model, const Batch<double>& batch, ScoreLoss loss) {
    Arrays arrays;
    const Trace<double> trace = [&](const std::string& name, MatrixView<const double> array,
                                    VectorView<const int32_t>) {
      std::vector<double>& copy = arrays[name];
      copy.resize(static_cast<std::size_t>(array.size()));
      for (int64_t r = 0; r < array.rows(); ++r) {
        context().runtime().copy_to_host(copy.data() + r * array.cols(),
                                         array.data + r * array.stride[0],
                                         static_cast<std::size_t>(array.cols()) * sizeof(double));
      }
      context().runtime().synchronize();
    };
    model.step(context(), batch, loss, MathMode::fp32, &trace);
    return arrays;
  }

  void expect_gradients(const ModelOptions& options, TrainOptions train) {
    const SmallWorld world;
    train.learning_rate = 1e-300;
    BatchAssembler<double> assembler(world.data(), options, train);
    const BatchLayout<double> layout(assembler.shape());
    std::vector<char> host(layout.bytes() + 256);
    void* aligned = host.data() + (256 - reinterpret_cast<uintptr_t>(host.data()) % 256);
    const Batch<double> host_batch = layout.at(aligned);
    assembler.assemble(3, host_batch);
    const Tensor<char, 1> device(context(), {static_cast<int64_t>(layout.bytes())},
                                 static_cast<const char*>(aligned));
    const Batch<double> batch = layout.at(device.view().data);

    Cfaa<double> model(context(), options, {}, model_shape(world.data()), assembler.shape());
    model.initialize(context(), batch, 11);
    // Away from the kinks: a row whose units are all off would leave the next layer at its bias, 0.
    uint64_t seed = 1;
    model.parameters().for_each([&](const std::string& name, MatrixView<double> array) {
      if (name.starts_with("adam.") || !name.ends_with(".bias")) return;
      const std::vector<double> biases = normal<double>(array.size(), seed++, 0, 0.1);
      context().runtime().copy_from_host(array.data, biases.data(), biases.size() * sizeof(double));
      context().runtime().synchronize();
    });
    const Arrays base = traced_step(model, batch, train.loss);
    const std::vector<double>& dz = base.at("gradient.z");

    const auto surrogate = [&](const std::string& name) {
      const Arrays now = traced_step(model, batch, train.loss);
      const std::vector<double>& losses = now.at("loss.score");
      if (name.starts_with("scorer")) return losses[0] + losses[1];
      double sum = 0;
      for (std::size_t i = 0; i < dz.size(); ++i) sum += dz[i] * now.at("z")[i];
      return sum;
    };

    int checked = 0;
    model.parameters().for_each([&](const std::string& name, MatrixView<double> array) {
      if (name.starts_with("adam.")) return;
      std::vector<double> expected, found = base.at("gradient." + name);
      const std::vector<int64_t> rows = touched_rows(name, host_batch, array.rows());
      for (const int64_t row : rows) {
        for (int64_t c = 0; c < array.cols(); ++c) {
          double* place = array.data + row * array.cols() + c;
          const double value = get(place), step = 1e-6;
          put(place, value + step);
          const double above = surrogate(name);
          put(place, value - step);
          const double below = surrogate(name);
          put(place, value);
          expected.push_back((above - below) / (2 * step));
        }
      }
      found.resize(expected.size());
      EXPECT_TRUE(close(expected, found, 1e-6)) << name;
      ++checked;
    });
    EXPECT_GT(checked, 10);
  }

 private:
  // A table's gradient has the touched rows only, in order.
  static std::vector<int64_t> touched_rows(const std::string& name, const Batch<double>& batch,
                                           int64_t rows) {
    for (std::size_t d = 0; d < 2; ++d) {
      for (std::size_t s = 0; s < 2; ++s) {
        const SideBatch<double>& side = batch.domain[d].side[s];
        for (const auto& [part, lists] :
             {std::pair(".id", &side.id), std::pair(".history", &side.history)}) {
          if (name != tower_name(d, s) + part) continue;
          return {lists->touched_row.data, lists->touched_row.data + lists->touched_count.data[0]};
        }
      }
    }
    std::vector<int64_t> all;
    for (int64_t r = 0; r < rows; ++r) all.push_back(r);
    return all;
  }
  double get(const double* place) {
    double value;
    context().runtime().copy_to_host(&value, place, sizeof(value));
    context().runtime().synchronize();
    return value;
  }
  void put(double* place, double value) {
    context().runtime().copy_from_host(place, &value, sizeof(value));
    context().runtime().synchronize();
  }
};
CFAA_TEST_ON_DEVICES(ModelGradient);

TEST_P(ModelGradient, IsRightForTheDefaultModel) {
  expect_gradients(small_model(), small_training());
}

TEST_P(ModelGradient, IsRightForSharedLinearTowersAndProducts) {
  ModelOptions options = small_model();
  options.towers = TowerSharing::shared;
  options.layers = {};
  options.scorer = ScorerKind::dot;
  options.history_labels = HistoryLabels::split;
  options.history_pooling = HistoryPooling::sum;
  options.variant = Variant::v;
  TrainOptions train = small_training();
  train.loss = ScoreLoss::bpr;
  expect_gradients(options, train);
}

TEST_P(ModelGradient, IsRightForTheLetterOfThePaper) {
  ModelOptions options = small_model();
  options.towers = TowerSharing::separate;
  options.scorer = ScorerKind::mlp;
  options.scorer_layers = {4, 3};
  options.layers = {5, 4};
  options.dropout = 0;
  TrainOptions train = small_training();
  train.target_supervision = Supervision::positives;
  train.reduction = Reduction::sum;
  expect_gradients(options, train);
}

}  // namespace
}  // namespace cfaa::test
