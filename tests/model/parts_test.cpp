// The model's parts one by one: where a batch lies in memory, what is learned and how it starts,
// what towers and scorer compute.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "host/device/make_context.h"
#include "host/model/batch.h"
#include "host/model/normal_init.h"
#include "host/model/pair_scorer.h"
#include "host/model/towers.h"
#include "tests/compare.h"
#include "tests/refusal.h"
#include "tests/small_world.h"

namespace cfaa::test {
namespace {

BatchShape small_shape() {
  BatchShape shape;
  shape.n = 4;
  shape.negatives = {1, 2};
  shape.history_entries = 3;
  shape.review_dim = 5;
  shape.losses = 2;
  shape.id_rows = {{{7, 5}, {9, 6}}};
  shape.history_rows = {{{5, 7}, {6, 9}}};
  return shape;
}

TEST(BatchLayout, GivesEveryArrayItsOwnAlignedPlace) {
  const BatchLayout<float> layout(small_shape());
  std::vector<char> memory(layout.bytes() + 256);
  char* start = memory.data() + 256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256;

  const Batch<float> batch = layout.at(start);

  std::set<const void*> places = {batch.state, batch.loss_weight.data};
  for (const DomainBatch<float>& domain : batch.domain) {
    places.insert({domain.label.data, domain.weight.data});
    for (const SideBatch<float>& side : domain.side) {
      places.insert({side.id.offset.data, side.id.touched_weight.data, side.history.index.data,
                     side.review.entity.data});
    }
  }
  EXPECT_EQ(places.size(), 2u + 2 * (2 + 2 * 4));
  for (const void* place : places) {
    const auto offset = static_cast<const char*>(place) - start;
    EXPECT_EQ(offset % 256, 0);
    EXPECT_LT(offset, static_cast<std::ptrdiff_t>(layout.bytes()));
  }
}

TEST(BatchLayout, HasTheSizesOfTheShape) {
  const BatchShape shape = small_shape();
  const Batch<float> batch = BatchLayout<float>(shape).at(nullptr);

  const DomainBatch<float>& target = batch.domain[kTarget];
  EXPECT_EQ(target.label.size(), 12);
  EXPECT_EQ(target.side[kItem].id.touched_row.size(), 6);  // no more rows than the table has
  EXPECT_EQ(target.side[kUser].history.index.size(), 3 * 12);
  EXPECT_EQ(target.side[kUser].review.share.size(), 12);
  EXPECT_EQ(batch.loss_weight.size(), 2);
}

TEST(Parameters, AreNamedAndLieApart) {
  const auto context = make_context("cpu", {});
  Parameters<float> parameters;
  const int first = parameters.add_layer("a.weight", 3, 5),
            second = parameters.add_layer("b", 1, 2);
  const int table = parameters.add_table(*context, "rows", 4, 2);
  parameters.allocate(*context);

  std::vector<std::string> names;
  parameters.for_each([&](const std::string& name, MatrixView<float>) { names.push_back(name); });

  EXPECT_EQ(names, (std::vector<std::string>{"a.weight", "adam.m.a.weight", "adam.v.a.weight", "b",
                                             "adam.m.b", "adam.v.b", "rows", "adam.m.rows",
                                             "adam.v.rows"}));
  EXPECT_GE(parameters.weight(second).data - parameters.weight(first).data, 15);
  EXPECT_EQ(parameters.bias(second).size(), 2);
  EXPECT_EQ(parameters.table(table).w.shape()[0], 4);
}

TEST(NormalInit, HasTheScaleAndDependsOnSeedAndStreamAlone) {
  const auto one = make_context("cpu", {.threads = 1}), three = make_context("cpu", {.threads = 3});
  const auto values = [](Context& context, uint64_t seed, uint64_t stream) {
    const Tensor<double, 2> array(context, {301, 7});
    fill_normal<double>(context, array.view(), 0.25, seed, stream);
    return array.to_host();
  };
  const std::vector<double> found = values(*one, 4, 1);

  double squares = 0;
  for (const double x : found) squares += x * x;

  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(found.size())), 0.25, 0.02);
  EXPECT_EQ(found, values(*three, 4, 1));
  EXPECT_NE(found, values(*one, 4, 2));
  EXPECT_NE(found, values(*one, 5, 1));
}

class PairScorers : public OnDevice {};
CFAA_TEST_ON_DEVICES(PairScorers);

// The same by plain loops.
double plain_score(const std::vector<double>& u, const std::vector<double>& v,
                   const ModelOptions& options, Context& context, Parameters<double>& parameters,
                   const PairScorer<double>& scorer) {
  double score = 0;
  for (std::size_t c = 0; options.dot() && c < u.size(); ++c) score += u[c] * v[c];
  if (!options.mlp()) return score;
  std::vector<double> x = u;
  x.insert(x.end(), v.begin(), v.end());
  for (std::size_t l = 0; l < scorer.weights().size(); ++l) {
    const std::vector<double> weight = to_host(context, parameters.weight(scorer.weights()[l])),
                              bias = to_host(context, parameters.bias(scorer.biases()[l]));
    std::vector<double> y = bias;
    for (std::size_t o = 0; o < y.size(); ++o) {
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
      if (l + 1 < scorer.weights().size()) y[o] = std::max(0.0, y[o]);
    }
    x = y;
  }
  return score + x[0];
}

TEST_P(PairScorers, ScoreAsPlainLoopsDo) {
  for (const ScorerKind kind : {ScorerKind::mlp, ScorerKind::dot, ScorerKind::mlp_dot}) {
    const auto context = make_context(GetParam(), {.threads = 2});
    ModelOptions options = small_model();
    options.scorer = kind;
    options.scorer_layers = {4, 3};
    Parameters<double> parameters;
    const auto scorer = make_pair_scorer<double>(*context, options, parameters);
    parameters.allocate(*context);
    if (options.mlp()) {
      const std::vector<double> weights = normal<double>(parameters.dense().size(), 3, 0, 0.5);
      context->runtime().copy_from_host(parameters.dense().data, weights.data(),
                                        weights.size() * sizeof(double));
      context->runtime().synchronize();  // the weights end here
    }
    constexpr int64_t rows = 5;
    const std::vector<double> z = normal<double>(rows * 2 * options.dim, 8, 0, 1);
    const Tensor<double, 2> pairs(*context, {rows, 2 * options.dim}, z.data());
    const Tensor<double, 1> scores(*context, {rows});
    const Arena::Scope scope(context->scratch());

    scorer->forward(*context, pairs.view(), scores.view(), nullptr, MathMode::fp32);

    std::vector<double> expected;
    for (int64_t r = 0; r < rows; ++r) {
      const auto u = z.begin() + 2 * r * options.dim, v = u + options.dim;
      expected.push_back(
          plain_score({u, v}, {v, v + options.dim}, options, *context, parameters, *scorer));
    }
    EXPECT_TRUE(close(expected, scores.to_host(), 1e-12)) << static_cast<int>(kind);
  }
}

TEST_P(PairScorers, MakeRowsWhoseProductsAreTheScores) {
  for (const ScorerKind kind : {ScorerKind::fm, ScorerKind::gated_product}) {
    const auto context = make_context(GetParam(), {.threads = 2});
    ModelOptions options = small_model();
    options.scorer = kind;
    options.scorer_dropout = 0.5;  // in training alone
    Parameters<double> parameters;
    const auto scorer = make_pair_scorer<double>(*context, options, parameters);
    parameters.allocate(*context);
    const std::vector<double> weights = normal<double>(parameters.dense().size(), 3, 0, 0.5);
    context->runtime().copy_from_host(parameters.dense().data, weights.data(),
                                      weights.size() * sizeof(double));
    context->runtime().synchronize();
    constexpr int64_t rows = 33;
    const int64_t width = options.z_columns(), columns = scorer->ranking_columns();
    const std::vector<double> z = normal<double>(rows * 2 * width, 8, 0, 1);
    const Tensor<double, 2> pairs(*context, {rows, 2 * width}, z.data());
    const Tensor<double, 1> scores(*context, {rows});
    PerSide<std::vector<double>> ranking;
    const Arena::Scope scope(context->scratch());

    scorer->forward(*context, pairs.view(), scores.view(), nullptr, MathMode::fp32);
    for (const std::size_t side : {kUser, kItem}) {
      const Tensor<double, 2> out(*context, {rows, columns});
      const MatrixView<double> own(pairs.view().data + static_cast<int64_t>(side) * width,
                                   {rows, width}, {2 * width, 1});
      scorer->ranking_rows(*context, side, own, out.view());
      ranking[side] = out.to_host();
    }

    std::vector<double> products(rows);
    for (std::size_t r = 0; r < products.size(); ++r) {
      for (auto c = r * static_cast<std::size_t>(columns);
           c < (r + 1) * static_cast<std::size_t>(columns); ++c) {
        products[r] += ranking[kUser][c] * ranking[kItem][c];
      }
    }
    EXPECT_TRUE(close(scores.to_host(), products, 1e-12)) << static_cast<int>(kind);
  }
}

TEST(PairScorerLayers, AnMlpWithoutAHiddenLayerIsRefused) {
  const auto context = make_context("cpu", {});
  ModelOptions options = small_model();
  options.scorer_layers = {};
  Parameters<double> parameters;
  const auto make = [&] { make_pair_scorer<double>(*context, options, parameters); };

  EXPECT_NE(error_of(make).find("scorer_layers"), std::string::npos);
}

ModelShape small_model_shape() {
  return {{{{7, 5}, {9, 6}}}, 4};
}

TEST(Towers, ShareTheirLayersWhereAsked) {
  const auto context = make_context("cpu", {});
  ModelOptions options = small_model();
  options.towers = TowerSharing::shared;
  Parameters<float> parameters;

  const Towers<float> towers(*context, options, small_model_shape(), parameters);

  const auto weights = [&](std::size_t domain, std::size_t side) {
    return towers.layers(domain, side).weight;
  };
  EXPECT_EQ(weights(kSource, kUser), weights(kTarget, kUser));
  EXPECT_NE(weights(kSource, kUser), weights(kSource, kItem));
  EXPECT_EQ(parameters.layers().size(), 8u);  // weight and bias, two layers, user and item
}

TEST(Towers, HaveATableForEveryTowersIdsAndHistory) {
  const auto context = make_context("cpu", {});
  ModelOptions options = small_model();
  options.history_labels = HistoryLabels::split;
  Parameters<float> parameters;

  const Towers<float> towers(*context, options, small_model_shape(), parameters);

  ASSERT_EQ(parameters.tables().size(), 8u);
  EXPECT_EQ(parameters.table(0).name, "source.user.id");
  EXPECT_EQ(parameters.table(0).w.shape()[0], 7);
  EXPECT_EQ(parameters.table(1).name, "source.user.history");
  EXPECT_EQ(parameters.table(1).w.shape()[0], 10);  // liked and disliked items
}

TEST(Towers, RefuseWhatCannotBeAddedToZ) {
  const auto context = make_context("cpu", {});
  ModelOptions options = small_model();
  options.residual = Residual::id;
  Parameters<float> parameters;
  const auto make = [&] { Towers<float>(*context, options, small_model_shape(), parameters); };

  EXPECT_NE(error_of(make).find("model.residual"), std::string::npos);
  options.inputs = {};
  EXPECT_NE(error_of(make).find("model.inputs is empty"), std::string::npos);
}

}  // namespace
}  // namespace cfaa::test
