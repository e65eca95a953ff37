#include "host/model/towers.h"

#include <fmt/format.h>

#include "host/core/columns.h"
#include "host/core/error.h"
#include "host/ops/add_scaled.h"
#include "host/ops/dropout.h"
#include "host/ops/grouped_linear.h"
#include "host/ops/review_input.h"

namespace cfaa {
namespace {

// Dropout's own random numbers for every layer of every tower.
uint64_t dropout_layer(std::size_t layer, std::size_t domain, std::size_t side) {
  return 4 * layer + 2 * domain + side;
}

}  // namespace

template <class T>
void TowerRun<T>::show(const typename EncoderRun<T>::Show& show) const {
  show("x", x);
  for (std::size_t l = 0; l < hidden.size(); ++l) show("hidden" + std::to_string(l), hidden[l]);
}

template <class T>
Towers<T>::Towers(Context& context, const ModelOptions& options, const ModelShape& shape,
                  Parameters<T>& parameters)
    : options_(options), parameters_(parameters) {
  id_columns_ = options.id_columns();
  history_columns_ = options.history_columns();
  if (options.reads_vectors()) review_columns_ = shape.review_dim + 1;
  input_dim_ = id_columns_ + history_columns_ + review_columns_;
  if (input_dim_ == 0) throw Error("model.inputs is empty; a tower needs id, history or review");
  choose_skipped();

  const bool shared = options.towers == TowerSharing::shared;
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t s = 0; shape.used[d] && s < 2; ++s) {
      Tower& tower = tower_[d][s];
      const std::string name = tower_name(d, s);
      if (id_columns_ > 0) {
        tower.id = parameters.add_table(context, name + ".id", shape.count[d][s], id_columns_);
      }
      if (history_columns_ > 0) {
        tower.history = parameters.add_table(context, name + ".history",
                                             shape.history_rows(options, d, s), history_columns_);
      }
      if (shared && d == kTarget && shape.used[kSource]) {
        tower.layers = tower_[kSource][s].layers;
        continue;
      }
      if (!has_layers()) continue;
      const std::string prefix = shared ? (s == kUser ? "user" : "item") : name;
      int64_t width = input_dim_ - skipped_;
      for (std::size_t l = 0; l <= options.layers.size(); ++l) {
        const int64_t out = l < options.layers.size() ? options.layers[l] : options.z_columns();
        tower.layers.weight.push_back(
            parameters.add_layer(fmt::format("{}.layer{}.weight", prefix, l), out, width));
        tower.layers.bias.push_back(
            parameters.add_layer(fmt::format("{}.layer{}.bias", prefix, l), 1, out));
        width = out;
      }
    }
  }
  if (review_columns_ > 0) place_reviews(context, shape);
}

// Users' and items' vectors are often made from the same sums, which are most of the bytes.
template <class T>
void Towers<T>::place_reviews(Context& context, const ModelShape& shape) {
  const auto place = [&](const void* bytes, int64_t count, std::size_t size) {
    placed_.push_back(std::make_unique<PlacedBytes>(
        context, bytes, static_cast<std::size_t>(count) * size, shape.review_placement));
    return placed_.back()->data();
  };
  const auto place_floats = [&](const float* data, int64_t count) {
    return data == nullptr ? nullptr : static_cast<const float*>(place(data, count, sizeof(float)));
  };
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t s = 0; shape.used[d] && s < 2; ++s) {
      const ReviewArrays& host = shape.reviews[d][s];
      ReviewArrays& placed = tower_[d][s].reviews = host;
      placed.total.data = place_floats(host.total.data, host.total.size());
      placed.mean.data = place_floats(host.mean.data, host.mean.size());
      placed.factor.data = place_floats(host.factor.data, host.factor.size());
      if (s == kItem && host.sum == shape.reviews[d][kUser].sum) {
        placed.sum = tower_[d][kUser].reviews.sum;
      } else {
        placed.sum = static_cast<const std::byte*>(
            place(host.sum, host.reviews * host.total.cols(), size_of(host.dtype)));
      }
    }
  }
}

template <class T>
PlacedSizes Towers<T>::review_sizes() const {
  PlacedSizes sizes;
  for (const auto& placed : placed_) {
    sizes.device += placed->copied().device;
    sizes.host += placed->copied().host;
  }
  return sizes;
}

template <class T>
void Towers<T>::choose_skipped() {
  if (options_.residual == Residual::none) return;
  const int64_t histories = options_.residual == Residual::id_history ? history_columns_ : 0;
  skipped_ = id_columns_ + histories;
  const auto fits = [&](int64_t size) { return size == 0 || size == options_.z_columns(); };
  if (fits(id_columns_) && fits(histories)) return;
  throw Error(
      fmt::format("model.residual adds rows to Z, so they must have its size: set model.id_dim and "
                  "model.history_dim to 0 or {}, or model.residual to none",
                  options_.z_columns()));
}

template <class T>
MatrixView<T> Towers<T>::layers_input(const TowerRun<T>& run) const {
  return columns(run.x, skipped_, input_dim_ - skipped_);
}

template <class T>
std::unique_ptr<EncoderRun<T>> Towers<T>::prepare(Context& context, std::size_t domain,
                                                  std::size_t side, const SideBatch<T>& batch,
                                                  MatrixView<T> z) const {
  const Tower& tower = tower_[domain][side];
  auto made = std::make_unique<TowerRun<T>>(domain, side, z);
  TowerRun<T>& run = *made;
  run.x = context.scratch().template take<T, 2>({z.rows(), input_dim_});
  for (std::size_t l = 0; has_layers() && l < options_.layers.size(); ++l) {
    run.hidden.push_back(context.scratch().template take<T, 2>({z.rows(), options_.layers[l]}));
  }
  int64_t first = 0;
  if (id_columns_ > 0) {
    embedding_bag<T>(context, parameters_.table(tower.id).w, batch.id.bags(),
                     columns(run.x, first, id_columns_));
    first += id_columns_;
  }
  if (history_columns_ > 0) {
    embedding_bag<T>(context, parameters_.table(tower.history).w, batch.history.bags(),
                     columns(run.x, first, history_columns_));
    first += history_columns_;
  }
  if (review_columns_ > 0) {
    ReviewArrays reviews = tower.reviews;
    if (batch.later_reviews.data != nullptr) reviews.total = batch.later_reviews;
    review_input<T>(context, reviews, batch.review, columns(run.x, first, review_columns_));
  }
  return made;
}

template <class T>
void Towers<T>::forward(Context& context, EncoderRuns<T> runs, const StepState* state,
                        MathMode math) const {
  for (std::size_t l = 0; has_layers() && l <= options_.layers.size(); ++l) {
    const bool last = l == options_.layers.size();
    std::vector<LinearLayer<T>> layers;
    for (const auto& each : runs) {
      const TowerRun<T>& run = own(each);
      const EncoderLayers& of = tower_[run.domain][run.side].layers;
      layers.push_back({l == 0 ? layers_input(run) : run.hidden[l - 1],
                        parameters_.weight(of.weight[l]), parameters_.bias(of.bias[l]),
                        last ? run.z : run.hidden[l]});
    }
    grouped_linear<T>(context, layers, last ? Activation::none : Activation::relu, math);
    if (last || state == nullptr) continue;
    for (const auto& each : runs) {
      const TowerRun<T>& run = own(each);
      dropout<T>(context, options_.dropout, state, dropout_layer(l, run.domain, run.side),
                 run.hidden[l]);
    }
  }
  const int64_t width = options_.z_columns();
  for (const auto& run : runs) {
    for (int64_t first = 0; first < skipped_; first += width) {
      add_scaled<T>(context, nullptr, columns(own(run).x, first, width), run->z);
    }
  }
}

template <class T>
void Towers<T>::layer_backward(Context& context, EncoderRuns<T> runs,
                               std::span<const MatrixView<T>> dy, std::span<const MatrixView<T>> dx,
                               std::size_t layer, MathMode math) const {
  const bool last = layer == options_.layers.size();
  // Towers that share a layer add to the same gradient, one domain after the other.
  const bool shared = options_.towers == TowerSharing::shared;
  for (std::size_t pass = 0; pass < (shared ? 2u : 1u); ++pass) {
    std::vector<LinearLayer<T>> layers;
    std::vector<LinearGradient<T>> gradients;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const TowerRun<T>& run = own(runs[i]);
      if (shared && run.domain != pass) continue;
      const EncoderLayers& of = tower_[run.domain][run.side].layers;
      const int weight = of.weight[layer], bias = of.bias[layer];
      layers.push_back({layer == 0 ? layers_input(run) : run.hidden[layer - 1],
                        parameters_.weight(weight), parameters_.bias(bias),
                        last ? run.z : run.hidden[layer]});
      gradients.push_back({dy[i], dx.empty() ? MatrixView<T>{} : dx[i],
                           parameters_.gradient(weight), parameters_.bias_gradient(bias)});
    }
    if (layers.empty()) continue;
    grouped_linear_backward<T>(context, layers, last ? Activation::none : Activation::relu,
                               gradients, math);
  }
}

template <class T>
std::vector<TableGradient<T>> Towers<T>::backward(Context& context, EncoderRuns<T> runs,
                                                  std::span<const MatrixView<T>> dz,
                                                  const Batch<T>& batch, const StepState* state,
                                                  MathMode math) const {
  Arena& arena = context.scratch();
  std::vector<MatrixView<T>> dy(dz.begin(), dz.end()), dx;
  for (std::size_t l = options_.layers.size(); has_layers() && l > 0; --l) {
    dx.clear();
    for (const auto& run : runs) {
      dx.push_back(arena.take<T, 2>(own(run).hidden[l - 1].shape));
    }
    layer_backward(context, runs, dy, dx, l, math);
    if (state != nullptr) {
      for (std::size_t i = 0; i < runs.size(); ++i) {
        dropout<T>(context, options_.dropout, state,
                   dropout_layer(l - 1, runs[i]->domain, runs[i]->side), dx[i]);
      }
    }
    dy = dx;
  }
  // Of the input only the learned columns want a gradient: reviews are most of the width.
  const int64_t learned = id_columns_ + history_columns_ - skipped_;
  dx.clear();
  if (learned > 0) {
    for (const auto& run : runs) dx.push_back(arena.take<T, 2>({run->z.rows(), learned}));
  }
  if (has_layers()) layer_backward(context, runs, dy, dx, 0, math);

  std::vector<TableGradient<T>> tables;
  const auto add = [&](int table, const EdgeLists<T>& lists, MatrixView<T> dout) {
    const TouchedRows<T> touched = lists.touched();
    const MatrixView<T> gradient = arena.take<T, 2>({touched.row.size(), dout.cols()});
    embedding_bag_backward<T>(context, dout, touched, gradient);
    tables.push_back({table, touched, gradient});
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Tower& tower = tower_[runs[i]->domain][runs[i]->side];
    const SideBatch<T>& side = batch.domain[runs[i]->domain].side[runs[i]->side];
    const auto gradient_of = [&](int64_t first, int64_t count) {
      return first < skipped_ ? dz[i] : columns(dx[i], first - skipped_, count);
    };
    if (tower.id >= 0) add(tower.id, side.id, gradient_of(0, id_columns_));
    if (tower.history >= 0) {
      add(tower.history, side.history, gradient_of(id_columns_, history_columns_));
    }
  }
  return tables;
}

template struct TowerRun<float>;
template struct TowerRun<double>;
template class Towers<float>;
template class Towers<double>;

}  // namespace cfaa
