#include "host/model/convolution.h"

#include "host/core/columns.h"
#include "host/ops/add_scaled.h"
#include "host/ops/bag_attention.h"
#include "host/ops/bag_max.h"
#include "host/ops/dropout.h"
#include "host/ops/embedding_bag.h"
#include "host/ops/relu.h"
#include "host/ops/text_convolution.h"

namespace cfaa {
namespace {

constexpr double kFilterBias = 0.1;

template <class T>
VectorView<T> flat(MatrixView<T> column) {
  return {column.data, {column.size()}};
}

template <class T>
MatrixView<T> zeros(Context& context, std::array<int64_t, 2> shape) {
  const MatrixView<T> taken = context.scratch().template take<T, 2>(shape);
  context.runtime().fill_zero(taken.data, static_cast<std::size_t>(taken.size()) * sizeof(T));
  return taken;
}

// Dropout's own random numbers for every side.
uint64_t dropout_layer(std::size_t domain, std::size_t side) {
  return 2 * domain + side;
}

template <class T>
TableGradient<T> table_gradient(Context& context, int table, const EdgeLists<T>& lists,
                                MatrixView<T> dout) {
  const TouchedRows<T> touched = lists.touched();
  const MatrixView<T> gradient =
      context.scratch().template take<T, 2>({touched.row.size(), dout.cols()});
  embedding_bag_backward<T>(context, dout, touched, gradient);
  return {table, touched, gradient};
}

}  // namespace

template <class T>
void ConvolutionRun<T>::show(const typename EncoderRun<T>::Show& show) const {
  show("words", words);
  show("pooled", pooled);
  show("x", x);
}

template <class T>
Convolution<T>::Convolution(Context& context, const ModelOptions& options, const ModelShape& shape,
                            Parameters<T>& parameters)
    : options_(options), parameters_(parameters) {
  const bool shared = options.towers == TowerSharing::shared;
  for (std::size_t d = 0; d < 2; ++d) {
    if (!shape.used[d]) continue;
    const MatrixView<const float> words = shape.words[d];
    words_[d] = Tensor<T, 2>(context, words.shape,
                             std::vector<T>(words.data, words.data + words.size()).data());
    for (std::size_t s = 0; s < 2; ++s) {
      Side& side = sides_[d][s];
      const std::string name = tower_name(d, s);
      if (options.has("id")) {
        side.id =
            parameters.add_table(context, name + ".id", shape.count[d][s], options.id_columns());
      }
      if (attends()) {
        side.counterpart = parameters.add_table(context, name + ".counterpart",
                                                shape.count[d][1 - s], options.attention);
      }
      if (shared && d == kTarget && shape.used[kSource]) {
        side.layers = sides_[kSource][s].layers;
      } else {
        add_layers(shared ? (s == kUser ? "user" : "item") : name, words.cols(), side);
      }
    }
  }
  no_bias_ = Tensor<T, 1>(context, {options.window * options.filters});
  no_bias_.fill_zero();
}

template <class T>
void Convolution<T>::add_layers(const std::string& prefix, int64_t word_width, Side& side) {
  const auto add = [&](const std::string& name, int64_t out, int64_t in, int64_t biases) {
    side.layers.weight.push_back(parameters_.add_layer(prefix + name + ".weight", out, in));
    if (biases == 0) return;
    side.layers.bias.push_back(parameters_.add_layer(prefix + name + ".bias", 1, biases));
  };
  const int64_t filters = options_.filters, attention = options_.attention;
  add(".filters", options_.window * filters, word_width, filters);
  if (attends()) {
    add(".attention", attention, filters + attention, attention);
    add(".logit", 1, attention, 0);
  }
  add(".layer0", options_.dim, filters, options_.dim);
}

template <class T>
bool Convolution<T>::has_bias(const Side& side, std::size_t place) const {
  return place == kAttention || place + 1 == side.layers.weight.size();
}

template <class T>
int Convolution<T>::bias(const Side& side, std::size_t place) const {
  return place + 1 == side.layers.weight.size() ? side.layers.bias.back() : side.layers.bias[place];
}

template <class T>
void Convolution<T>::start(Context& context) {
  const std::vector<T> biases(static_cast<std::size_t>(options_.filters),
                              static_cast<T>(kFilterBias));
  for (const PerSide<Side>& domain : sides_) {
    for (const Side& side : domain) {
      if (side.layers.bias.empty()) continue;
      context.runtime().copy_from_host(parameters_.bias(side.layers.bias[kFilters]).data,
                                       biases.data(), biases.size() * sizeof(T));
    }
  }
  context.runtime().synchronize();
}

template <class T>
LinearLayer<T> Convolution<T>::layer(const Side& side, std::size_t place, MatrixView<T> x,
                                     MatrixView<T> y) const {
  return {x, parameters_.weight(side.layers.weight[place]),
          has_bias(side, place) ? parameters_.bias(bias(side, place))
                                : VectorView<T>(no_bias_.view().data, {y.cols()}),
          y};
}

template <class T>
void Convolution<T>::layer_backward(Context& context, const Side& side, std::size_t place,
                                    MatrixView<T> x, MatrixView<T> y, MatrixView<T> dy,
                                    MatrixView<T> dx, Activation activation, MathMode math) const {
  const LinearLayer<T> own = layer(side, place, x, y);
  const LinearGradient<T> gradient{dy, dx, parameters_.gradient(side.layers.weight[place]),
                                   has_bias(side, place)
                                       ? parameters_.bias_gradient(bias(side, place))
                                       : flat(zeros<T>(context, {1, y.cols()}))};
  grouped_linear_backward<T>(context, std::span(&own, 1), activation, std::span(&gradient, 1),
                             math);
}

template <class T>
std::unique_ptr<EncoderRun<T>> Convolution<T>::prepare(Context& context, std::size_t domain,
                                                       std::size_t side, const SideBatch<T>& batch,
                                                       MatrixView<T> z) const {
  Arena& arena = context.scratch();
  const int64_t filters = options_.filters, rows = z.rows(), texts = batch.text.offset.size() - 1;
  auto run = std::make_unique<ConvolutionRun<T>>(domain, side, z);
  run->batch = &batch;
  run->words = words_[domain].view();
  run->product = arena.take<T, 2>({run->words.rows(), options_.window * filters});
  run->joined = arena.take<T, 2>({texts, filters + (attends() ? options_.attention : 0)});
  run->text = columns(run->joined, 0, filters);
  run->position = arena.take<int32_t, 2>({texts, filters});
  run->pooled = arena.take<T, 2>({rows, filters});
  run->x = zeros<T>(context, {rows, filters});
  if (attends()) {
    run->hidden = arena.take<T, 2>({texts, options_.attention});
    run->logit = arena.take<T, 2>({texts, 1});
    run->softmax = arena.take<T, 2>({rows, 2});
  } else {
    run->from = arena.take<int32_t, 2>({rows, filters});
  }
  return run;
}

template <class T>
void Convolution<T>::pool(Context& context, const Side& side, const ConvolutionRun<T>& run,
                          MathMode math) const {
  const TextBatch<T>& text = run.batch->text;
  if (!attends()) {
    bag_max<T>(context, run.text, text.reviews.bags(), run.pooled, run.from);
    return;
  }
  const MatrixView<T> counterpart = columns(run.joined, options_.filters, options_.attention);
  embedding_bag<T>(context, parameters_.table(side.counterpart).w, text.counterpart.bags(),
                   counterpart);
  relu<T>(context, counterpart);
  const LinearLayer<T> hidden = layer(side, kAttention, run.joined, run.hidden);
  grouped_linear<T>(context, std::span(&hidden, 1), Activation::relu, math);
  const LinearLayer<T> logit = layer(side, kLogit, run.hidden, run.logit);
  grouped_linear<T>(context, std::span(&logit, 1), Activation::none, math);
  bag_attention<T>(context, run.text, flat(run.logit), text.reviews.bags(), run.pooled,
                   run.softmax);
}

template <class T>
void Convolution<T>::forward(Context& context, EncoderRuns<T> runs, const StepState* state,
                             MathMode math) const {
  for (const auto& each : runs) {
    const auto& run = static_cast<const ConvolutionRun<T>&>(*each);
    const Side& side = sides_[run.domain][run.side];
    const LinearLayer<T> product = layer(side, kFilters, run.words, run.product);
    grouped_linear<T>(context, std::span(&product, 1), Activation::none, math);
    text_convolution<T>(context, run.product, parameters_.bias(side.layers.bias[kFilters]),
                        options_.window, run.batch->text.texts(), run.text, run.position);
    pool(context, side, run, math);
    add_scaled<T>(context, nullptr, run.pooled, run.x);
    if (state != nullptr) {
      dropout<T>(context, options_.dropout, state, dropout_layer(run.domain, run.side), run.x);
    }
    const LinearLayer<T> last =
        layer(side, side.layers.weight.size() - 1, run.x, columns(run.z, 0, options_.dim));
    grouped_linear<T>(context, std::span(&last, 1), Activation::none, math);
    if (side.id < 0) continue;
    const MatrixView<T> rows = context.scratch().template take<T, 2>({run.z.rows(), run.z.cols()});
    embedding_bag<T>(context, parameters_.table(side.id).w, run.batch->id.bags(), rows);
    add_scaled<T>(context, nullptr, rows, run.z);
  }
}

template <class T>
MatrixView<T> Convolution<T>::pool_backward(Context& context, const Side& side,
                                            const ConvolutionRun<T>& run, MatrixView<T> dx,
                                            MathMode math,
                                            std::vector<TableGradient<T>>& tables) const {
  Arena& arena = context.scratch();
  const TextBatch<T>& text = run.batch->text;
  const MatrixView<T> dtext = zeros<T>(context, run.text.shape);
  if (!attends()) {
    bag_max_backward<T>(context, dx, run.from, text.reviews.touched(), dtext);
    return dtext;
  }
  const MatrixView<T> dlogit = zeros<T>(context, run.logit.shape);
  bag_attention_backward<T>(context, run.text, flat(run.logit), run.pooled, run.softmax, dx,
                            text.reviews.touched(), dtext, flat(dlogit));
  const MatrixView<T> dhidden = arena.take<T, 2>(run.hidden.shape);
  layer_backward(context, side, kLogit, run.hidden, run.logit, dlogit, dhidden, Activation::none,
                 math);
  const MatrixView<T> djoined = arena.take<T, 2>(run.joined.shape);
  layer_backward(context, side, kAttention, run.joined, run.hidden, dhidden, djoined,
                 Activation::relu, math);
  const int64_t filters = options_.filters, attention = options_.attention;
  add_scaled<T>(context, nullptr, columns(djoined, 0, filters), dtext);
  const MatrixView<T> dcounterpart = columns(djoined, filters, attention);
  relu_backward<T>(context, columns(run.joined, filters, attention), dcounterpart);
  tables.push_back(table_gradient(context, side.counterpart, text.counterpart, dcounterpart));
  return dtext;
}

template <class T>
std::vector<TableGradient<T>> Convolution<T>::backward(Context& context, EncoderRuns<T> runs,
                                                       std::span<const MatrixView<T>> dz,
                                                       const Batch<T>&, const StepState* state,
                                                       MathMode math) const {
  Arena& arena = context.scratch();
  std::vector<TableGradient<T>> tables;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& run = static_cast<const ConvolutionRun<T>&>(*runs[i]);
    const Side& side = sides_[run.domain][run.side];
    if (side.id >= 0) tables.push_back(table_gradient(context, side.id, run.batch->id, dz[i]));
    const MatrixView<T> dx = arena.take<T, 2>(run.x.shape);
    layer_backward(context, side, side.layers.weight.size() - 1, run.x,
                   columns(run.z, 0, options_.dim), columns(dz[i], 0, options_.dim), dx,
                   Activation::none, math);
    if (state != nullptr) {
      dropout<T>(context, options_.dropout, state, dropout_layer(run.domain, run.side), dx);
    }
    const MatrixView<T> dtext = pool_backward(context, side, run, dx, math, tables);
    const MatrixView<T> dproduct = arena.take<T, 2>(run.product.shape);
    text_convolution_backward<T>(context, dtext, run.position, options_.window,
                                 run.batch->text.occurrences(), dproduct,
                                 parameters_.bias_gradient(side.layers.bias[kFilters]));
    layer_backward(context, side, kFilters, run.words, run.product, dproduct, {}, Activation::none,
                   math);
  }
  return tables;
}

template struct ConvolutionRun<float>;
template struct ConvolutionRun<double>;
template class Convolution<float>;
template class Convolution<double>;

}  // namespace cfaa
