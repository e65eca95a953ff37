#include "host/train/trained_model.h"

#include <algorithm>
#include <array>
#include <optional>

#include "host/core/device_matrix.h"
#include "host/core/error.h"
#include "host/ops/grouped_linear.h"
#include "host/ops/pair_scores.h"
#include "host/ops/top_k.h"

namespace cfaa {
namespace {

constexpr int64_t kBlockRows = 512;  // entities embedded at a time

// Blocks of a side's entities on their way: while a GPU embeds one the host assembles the next, and
// reads the rows of the one before. Each has memory of its own for its batch and its rows; those on
// the device and the host are the same on the CPU.
template <class T>
class EntityBlocks {
 public:
  // `shape` is of a batch with this side alone.
  EntityBlocks(Context& context, const Cfaa<T>& model, const BatchShape& shape, std::size_t domain,
               std::size_t side)
      : context_(context), model_(model), layout_(shape), domain_(domain), side_(side) {
    DeviceRuntime& runtime = context.runtime();
    for (Block& block : blocks_) {
      block.host = runtime.allocate_host(layout_.bytes());
      block.device = is_gpu() ? runtime.allocate(layout_.bytes()) : block.host;
      add_rows(block, model.options().z_columns());
      if (model.scorer().ranking_columns() > 0) add_rows(block, model.scorer().ranking_columns());
    }
  }
  ~EntityBlocks() {
    DeviceRuntime& runtime = context_.runtime();
    runtime.synchronize();
    for (const Block& block : blocks_) {
      for (const Rows& rows : block.rows) runtime.release_host(rows.host);
      if (block.device != block.host) runtime.release(block.device);
      runtime.release_host(block.host);
    }
  }
  EntityBlocks(const EntityBlocks&) = delete;
  EntityBlocks& operator=(const EntityBlocks&) = delete;

  // Appends the rows of `count` entities to z and, where the scorer has such, to ranking.
  // `assemble(first, count, batch)` fills a batch of kBlockRows with some of them. `later_reviews`:
  // of those that training never saw.
  template <class Assemble>
  void run(const Assemble& assemble, int64_t count, std::vector<float>& z,
           std::vector<float>& ranking, MatrixView<const float> later_reviews = {}) {
    later_reviews_ = later_reviews;
    const std::array<std::vector<float>*, 2> all = {&z, &ranking};
    for (int64_t first = 0; first < count; first += kBlockRows) {
      Block& block = blocks_[static_cast<std::size_t>(first / kBlockRows) % blocks_.size()];
      finish(block, all);
      block.filled = std::min(kBlockRows, count - first);
      assemble(first, block.filled, side_of(block.host));
      start(block);
    }
    const std::size_t next = static_cast<std::size_t>((count + kBlockRows - 1) / kBlockRows);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      finish(blocks_[(next + i) % blocks_.size()], all);
    }
  }

 private:
  struct Rows {
    Tensor<T, 2> device;
    T* host;
  };
  struct Block {
    void* host = nullptr;
    void* device = nullptr;
    std::vector<Rows> rows;  // of Z, and to rank with
    int64_t filled = 0;      // with entities; 0: nothing is under way
    std::uint64_t done = 0;  // mark behind the copies of its rows
  };

  bool is_gpu() const { return context_.device() != DeviceKind::cpu; }
  SideBatch<T> side_of(void* memory) const {
    return layout_.at(memory).domain[domain_].side[side_];
  }
  void add_rows(Block& block, int64_t columns) {
    Tensor<T, 2> device(context_, {kBlockRows, columns});
    auto* host = static_cast<T*>(context_.runtime().allocate_host(device.bytes()));
    block.rows.push_back({std::move(device), host});
  }

  void start(Block& block) {
    DeviceRuntime& runtime = context_.runtime();
    if (is_gpu()) runtime.copy_from_host(block.device, block.host, layout_.bytes());
    SideBatch<T> batch = side_of(block.device);
    batch.later_reviews = later_reviews_;
    model_.embed(context_, domain_, side_, batch, block.rows[0].device.view());
    if (block.rows.size() > 1) {
      model_.scorer().ranking_rows(context_, side_, block.rows[0].device.view(),
                                   block.rows[1].device.view());
    }
    for (const Rows& rows : block.rows) {
      runtime.copy_to_host(rows.host, rows.device.view().data, rows.device.bytes());
    }
    block.done = runtime.mark();
  }

  void finish(Block& block, const std::array<std::vector<float>*, 2>& all) {
    if (block.filled == 0) return;
    context_.runtime().wait_for(block.done);
    for (std::size_t i = 0; i < block.rows.size(); ++i) {
      const Rows& rows = block.rows[i];
      all[i]->insert(all[i]->end(), rows.host, rows.host + block.filled * rows.device.shape()[1]);
    }
    block.filled = 0;
  }

  Context& context_;
  const Cfaa<T>& model_;
  BatchLayout<T> layout_;
  std::size_t domain_, side_;
  MatrixView<const float> later_reviews_{};
  std::array<Block, 2> blocks_;
};

// Of a batch of one side's entities.
BatchShape entity_shape(BatchShape shape, std::size_t domain, std::size_t side) {
  shape.n = kBlockRows;
  shape.negatives = {0, 0};
  shape.used = {domain == kSource, domain == kTarget};
  shape.id_rows[domain][1 - side] = shape.history_rows[domain][1 - side] = 0;
  return shape;
}

// Rows of some users, from host memory to the device.
Tensor<float, 2> gather(Context& context, std::span<const int32_t> rows, const float* array,
                        int64_t width) {
  std::vector<float> chosen(rows.size() * static_cast<std::size_t>(width));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::copy_n(array + static_cast<int64_t>(rows[r]) * width, width,
                chosen.data() + static_cast<int64_t>(r) * width);
  }
  return {context, {static_cast<int64_t>(rows.size()), width}, chosen.data()};
}

MatrixView<const float> slice(MatrixView<const float> matrix, int64_t first, int64_t last) {
  return {matrix.data + first * matrix.stride[0], {last - first, matrix.cols()}, matrix.stride};
}

// Dot products of ranking rows.
class DotBlocks {
 public:
  DotBlocks(Context& context, const DomainEmbeddings& embeddings)
      : users_(embeddings.ranking_view(kUser)),
        host_items_(embeddings.ranking_view(kItem)),
        items_(context, host_items_),
        no_bias_(context, {host_items_.rows()}) {
    no_bias_.fill_zero();
  }

  void block(Context& context, std::span<const int32_t> users, int64_t first, int64_t last,
             MatrixView<float> scores) {
    if (!std::equal(users.begin(), users.end(), chosen_.begin(), chosen_.end())) {
      chosen_.assign(users.begin(), users.end());
      chosen_rows_ = gather(context, users, users_.data, users_.cols());
    }
    const VectorView<const float> bias(no_bias_.view().data + first, {last - first});
    const LinearLayer<float> layer{chosen_rows_.view(), slice(items_.view(), first, last), bias,
                                   scores};
    grouped_linear<float>(context, {&layer, 1}, Activation::none);
  }

  void pairs(int32_t user, std::span<const int32_t> items, double* scores) const {
    exact_scores<float>(users_.data + user * users_.stride[0], host_items_, items.data(),
                        static_cast<int64_t>(items.size()), scores);
  }

 private:
  MatrixView<const float> users_, host_items_;
  DeviceMatrix<float> items_;
  Tensor<float, 1> no_bias_;     // (items)
  std::vector<int32_t> chosen_;  // users whose rows are on the device
  Tensor<float, 2> chosen_rows_;
};

// Layers of an MLP scorer on the device, and every user's and item's part of the first.
class MlpBlocks {
 public:
  MlpBlocks(Context& context, const DomainEmbeddings& embeddings, const ScorerArrays& arrays)
      : embeddings_(embeddings), arrays_(arrays) {
    const ScorerLayer& first = arrays.layers[0];
    CFAA_ASSERT(first.in == 2 * embeddings.dim);
    for (std::size_t side = 0; side < 2; ++side) {
      part_[side] = first_layer(context, side);
    }
    items_.emplace(context, embeddings.view(kItem));
    item_parts_.emplace(context, MatrixView<const float>(part_[kItem].data(),
                                                         {embeddings.count[kItem], first.out}));
    for (std::size_t l = 1; l < arrays.layers.size(); ++l) {
      const ScorerLayer& layer = arrays.layers[l];
      weight_.emplace_back(context, std::array{layer.out, layer.in}, layer.weight.data());
      bias_.emplace_back(context, std::array{layer.out}, layer.bias.data());
    }
  }

  // Scores of `users` and items first .. last - 1.
  void block(Context& context, std::span<const int32_t> users, int64_t first, int64_t last,
             MatrixView<float> scores) {
    const Arena::Scope scope(context.scratch());
    choose(context, users);
    if (arrays_.dot) {
      dot_scores(context, chosen_z_.view(), slice(items_->view(), first, last), scores);
    }
    std::vector<PairLayer<float>> layers;
    for (std::size_t l = 0; l < weight_.size(); ++l) {
      layers.push_back({weight_[l].view(), bias_[l].view()});
    }
    pair_scores<float>(context, chosen_part_.view(), slice(item_parts_->view(), first, last),
                       layers, arrays_.dot, scores);
  }

  // The same of one user and some items, on the host.
  void pairs(int32_t user, std::span<const int32_t> items, double* scores) const {
    const auto dim = static_cast<std::size_t>(embeddings_.dim);
    const auto width = static_cast<std::size_t>(arrays_.layers[0].out);
    std::vector<float> x, y;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto item = static_cast<std::size_t>(items[i]);
      double score = 0;
      if (arrays_.dot) {
        const float* u = embeddings_.z[kUser].data() + static_cast<std::size_t>(user) * dim;
        const float* v = embeddings_.z[kItem].data() + item * dim;
        for (std::size_t c = 0; c < dim; ++c) score += static_cast<double>(u[c]) * v[c];
      }
      x.resize(width);
      for (std::size_t h = 0; h < width; ++h) {
        x[h] = std::max(0.0f, part_[kUser][static_cast<std::size_t>(user) * width + h] +
                                  part_[kItem][item * width + h]);
      }
      for (std::size_t l = 1; l < arrays_.layers.size(); ++l) {
        const ScorerLayer& layer = arrays_.layers[l];
        const auto in = static_cast<std::size_t>(layer.in);
        y.assign(static_cast<std::size_t>(layer.out), 0);
        for (std::size_t o = 0; o < y.size(); ++o) {
          double sum = layer.bias[o];
          for (std::size_t k = 0; k < in; ++k) {
            sum += static_cast<double>(layer.weight[o * in + k]) * x[k];
          }
          y[o] = static_cast<float>(sum);
          if (l + 1 < arrays_.layers.size()) y[o] = std::max(0.0f, y[o]);
        }
        x.swap(y);
      }
      scores[i] = score + x[0];
    }
  }

 private:
  std::vector<float> first_layer(Context& context, std::size_t side) const {
    const ScorerLayer& layer = arrays_.layers[0];
    const int64_t count = embeddings_.count[side], dim = embeddings_.dim;
    const DeviceMatrix<float> z(context, embeddings_.view(side));
    const Tensor<float, 2> weight(context, {layer.out, layer.in}, layer.weight.data());
    // The bias goes with the users' part.
    const std::vector<float> zeros(static_cast<std::size_t>(layer.out));
    const Tensor<float, 1> bias(context, {layer.out},
                                side == kUser ? layer.bias.data() : zeros.data());
    const Tensor<float, 2> out(context, {count, layer.out});
    const MatrixView<const float> half(weight.view().data + static_cast<int64_t>(side) * dim,
                                       {layer.out, dim}, {layer.in, 1});
    const LinearLayer<float> linear{z.view(), half, bias.view(), out.view()};
    grouped_linear<float>(context, std::span(&linear, 1), Activation::none);
    return out.to_host();
  }

  // Brings the rows of these users to the device, where they stay for all blocks of items: only
  // other users are waited for.
  void choose(Context& context, std::span<const int32_t> users) {
    if (std::equal(users.begin(), users.end(), chosen_.begin(), chosen_.end())) return;
    chosen_.assign(users.begin(), users.end());
    if (arrays_.dot) {
      chosen_z_ = gather(context, users, embeddings_.z[kUser].data(), embeddings_.dim);
    }
    chosen_part_ = gather(context, users, part_[kUser].data(), arrays_.layers[0].out);
  }

  const DomainEmbeddings& embeddings_;
  ScorerArrays arrays_;
  PerSide<std::vector<float>> part_;
  std::vector<int32_t> chosen_;  // users whose rows are on the device
  Tensor<float, 2> chosen_z_, chosen_part_;
  std::optional<DeviceMatrix<float>> items_, item_parts_;
  std::vector<Tensor<float, 2>> weight_;
  std::vector<Tensor<float, 1>> bias_;
};

}  // namespace

template <class T>
DomainEmbeddings embed_domain(Context& context, const Cfaa<T>& model, BatchAssembler<T>& assembler,
                              std::size_t domain) {
  DomainEmbeddings result;
  result.dim = model.options().z_columns();
  result.ranking_dim = model.scorer().ranking_columns();
  for (std::size_t side = 0; side < 2; ++side) {
    const int64_t count = assembler.count(domain, side);
    result.count[side] = count;
    result.z[side].reserve(static_cast<std::size_t>(count * result.dim));
    EntityBlocks<T> blocks(context, model, entity_shape(assembler.shape(), domain, side), domain,
                           side);
    const auto assemble = [&](int64_t first, int64_t rows, const SideBatch<T>& batch) {
      assembler.assemble_entities(domain, side, first, rows, kBlockRows, batch);
    };
    blocks.run(assemble, count, result.z[side], result.ranking[side]);
  }
  return result;
}

template <class T>
DomainEmbeddings embed_later(Context& context, const Cfaa<T>& model, BatchAssembler<T>& assembler,
                             std::size_t domain, std::size_t side,
                             std::span<const LaterEntity> entities) {
  BatchShape shape = entity_shape(assembler.shape(), domain, side);
  if (shape.history_entries > 0) {
    shape.history_entries =
        std::max(shape.history_entries, assembler.later_history_entries(entities));
  }
  const auto count = std::ssize(entities);
  const auto width = static_cast<std::size_t>(shape.review_dim);
  std::vector<float> sums(entities.size() * width);
  for (std::size_t e = 0; e < entities.size(); ++e) {
    const std::vector<float>& sum = entities[e].review;
    CFAA_ASSERT(sum.size() == width || entities[e].sentences == 0);
    std::copy_n(sum.begin(), std::min(sum.size(), width), sums.data() + e * width);
  }
  std::optional<Tensor<float, 2>> reviews;
  if (width > 0) reviews.emplace(context, std::array{count, shape.review_dim}, sums.data());
  DomainEmbeddings result;
  result.dim = model.options().z_columns();
  result.ranking_dim = model.scorer().ranking_columns();
  result.count[side] = count;
  EntityBlocks<T> blocks(context, model, shape, domain, side);
  blocks.run(
      [&](int64_t first, int64_t rows, const SideBatch<T>& batch) {
        assembler.assemble_later(domain, side, entities, first, rows, kBlockRows, batch);
      },
      count, result.z[side], result.ranking[side],
      reviews ? MatrixView<const float>(reviews->view()) : MatrixView<const float>{});
  return result;
}

template <class T>
ScorerArrays scorer_arrays(Context& context, Cfaa<T>& model) {
  ScorerArrays arrays;
  arrays.dot = model.options().dot();
  if (!model.options().mlp()) return arrays;
  const PairScorer<T>& scorer = model.scorer();
  for (std::size_t l = 0; l < scorer.weights().size(); ++l) {
    const MatrixView<T> weight = model.parameters().weight(scorer.weights()[l]);
    const std::vector<T> values = to_host(context, weight);
    const std::vector<T> bias = to_host(context, model.parameters().bias(scorer.biases()[l]));
    arrays.layers.push_back(
        {weight.rows(), weight.cols(), {values.begin(), values.end()}, {bias.begin(), bias.end()}});
  }
  return arrays;
}

BlockScores block_scores(Context& context, const DomainEmbeddings& embeddings,
                         const ScorerArrays& arrays) {
  const auto of = [](auto blocks) {
    return BlockScores{
        [blocks](Context& where, std::span<const int32_t> users, int64_t first, int64_t last,
                 MatrixView<float> scores) { blocks->block(where, users, first, last, scores); },
        [blocks](int32_t user, std::span<const int32_t> items, double* scores) {
          blocks->pairs(user, items, scores);
        }};
  };
  if (arrays.layers.empty()) return of(std::make_shared<DotBlocks>(context, embeddings));
  return of(std::make_shared<MlpBlocks>(context, embeddings, arrays));
}

std::unique_ptr<Scorer> make_scorer(Context& context, const DomainEmbeddings& embeddings,
                                    const ScorerArrays& arrays) {
  if (arrays.layers.empty()) {
    return std::make_unique<DotScorer<float>>(embeddings.ranking_view(kUser),
                                              embeddings.ranking_view(kItem));
  }
  BlockScores scores = block_scores(context, embeddings, arrays);
  return std::make_unique<BlockScorer>(embeddings.count[kUser], embeddings.count[kItem],
                                       std::move(scores.block), std::move(scores.pairs));
}

#define CFAA_INSTANTIATE(T)                                                               \
  template DomainEmbeddings embed_domain<T>(Context&, const Cfaa<T>&, BatchAssembler<T>&, \
                                            std::size_t);                                 \
  template DomainEmbeddings embed_later<T>(Context&, const Cfaa<T>&, BatchAssembler<T>&,  \
                                           std::size_t, std::size_t,                      \
                                           std::span<const LaterEntity>);                 \
  template ScorerArrays scorer_arrays<T>(Context&, Cfaa<T>&);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
