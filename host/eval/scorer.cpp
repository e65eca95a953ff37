#include "host/eval/scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/core/device_matrix.h"
#include "host/ops/top_k.h"

namespace cfaa {
namespace {

constexpr int32_t kNoItem = std::numeric_limits<int32_t>::max();

struct BlockSize {
  int64_t users, items;
};

// On the CPU a block of scores should stay in the cache until it is filtered, and be large enough
// for OpenBLAS to copy its operands seldom. On a GPU a block should fill it many times over.
BlockSize block_size(Context& context, const RankingOptions& options, int64_t users,
                     int64_t items) {
  const bool cpu = context.device() == DeviceKind::cpu;
  const int64_t cpu_rows = std::min<int64_t>(1024 * context.threads().threads(), 8192);
  const int64_t rows = options.user_block > 0 ? options.user_block : (cpu ? cpu_rows : 4096);
  const int64_t cols = options.item_block > 0 ? options.item_block : (cpu ? 2048 : 16384);
  return {std::min(rows, users), std::min(cols, items)};
}

template <class T>
View<const T, 1> upload(Context& context, const std::vector<T>& host) {
  const auto count = static_cast<int64_t>(host.size());
  auto memory = context.scratch().take<T, 1>({std::max<int64_t>(count, 1)});
  if (count > 0)
    context.runtime().copy_from_host(memory.data, host.data(), host.size() * sizeof(T));
  return {memory.data, {count}};
}

template <class T>
MatrixView<const T> as_matrix(View<const T, 1> flat, int64_t rows, int64_t cols) {
  return {flat.data, {rows, cols}};
}

// The masked items of some users, as rows 0, 1, ...
struct MaskedRows {
  std::vector<int64_t> offset;
  std::vector<int32_t> item;

  MaskedRows(const UserItems& masked, std::span<const int32_t> users) : offset{0} {
    for (const int32_t user : users) {
      const auto items = masked.of(user);
      item.insert(item.end(), items.begin(), items.end());
      offset.push_back(static_cast<int64_t>(item.size()));
    }
  }
  RowItems on_device(Context& context) const {
    return {upload(context, offset), upload(context, item)};
  }
  RowItems on_host() const {
    return {{offset.data(), {static_cast<int64_t>(offset.size())}},
            {item.data(), {static_cast<int64_t>(item.size())}}};
  }
};

Lists empty_lists(std::span<const int32_t> users, int64_t k) {
  const std::size_t cells = users.size() * static_cast<std::size_t>(k);
  Lists lists;
  lists.k = k;
  lists.user.assign(users.begin(), users.end());
  lists.item.assign(cells, -1);
  lists.score.assign(cells, -std::numeric_limits<double>::infinity());
  return lists;
}

// Copies the lists of a block of users, which may be shorter than lists.k, to their place.
void put(Lists& lists, std::size_t first_row, std::span<const int32_t> users, int64_t k,
         const std::vector<int32_t>& item, const std::vector<double>& score,
         const std::vector<int32_t>& nan_item) {
  for (std::size_t r = 0; r < users.size(); ++r) {
    if (nan_item[r] != kNoItem) throw NanScore(users[r], nan_item[r]);
    const std::size_t from = r * static_cast<std::size_t>(k);
    const std::size_t to = (first_row + r) * static_cast<std::size_t>(lists.k);
    std::copy_n(item.begin() + static_cast<std::ptrdiff_t>(from), k,
                lists.item.begin() + static_cast<std::ptrdiff_t>(to));
    std::copy_n(score.begin() + static_cast<std::ptrdiff_t>(from), k,
                lists.score.begin() + static_cast<std::ptrdiff_t>(to));
  }
}

// What the loop over blocks needs of a scorer whose float scores come in blocks.
template <class T>
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // Called once per block of users; memory may be taken from the context's arena.
  virtual DotProducts<T> start(std::span<const int32_t> users) = 0;
  virtual void fill(std::span<const int32_t> users, int64_t first, int64_t last,
                    MatrixView<float> scores) = 0;
  virtual float largest_norm(int64_t first, int64_t last) const = 0;
};

template <class T>
Lists rank_blocks(Context& context, BlockSource<T>& source, std::span<const int32_t> users,
                  int64_t items, const UserItems& masked, const RankingOptions& options) {
  CFAA_ASSERT(options.k >= 1 && options.k <= kMaxTopK);
  CFAA_ASSERT(items <= kNoItem);
  Lists lists = empty_lists(users, options.k);
  if (items == 0 || users.empty()) return lists;
  const int64_t k = std::min(options.k, items);
  const BlockSize block = block_size(context, options, static_cast<int64_t>(users.size()), items);
  Arena& arena = context.scratch();
  for (std::size_t row = 0; row < users.size(); row += static_cast<std::size_t>(block.users)) {
    const auto chosen =
        users.subspan(row, std::min(users.size() - row, static_cast<std::size_t>(block.users)));
    const auto rows = static_cast<int64_t>(chosen.size());
    const Arena::Scope scope(arena);
    const MaskedRows masked_rows(masked, chosen);
    const RowItems masked_items = masked_rows.on_device(context);
    const DotProducts<T> dots = source.start(chosen);
    const TopKCandidates candidates = top_k_candidates(context, rows, k);
    const auto memory = arena.take<float, 2>({rows, block.items});
    for (int64_t first = 0; first < items; first += block.items) {
      const int64_t last = std::min(items, first + block.items);
      const MatrixView<float> scores(memory.data, {rows, last - first});
      source.fill(chosen, first, last, scores);
      top_k_update<T>(context, scores, first, source.largest_norm(first, last), masked_items, dots,
                      candidates);
    }
    const auto item = arena.take<int32_t, 2>({rows, k});
    const auto score = arena.take<double, 2>({rows, k});
    top_k_finish<T>(context, dots, candidates, item, score);
    put(lists, row, chosen, k, to_host(context, item), to_host(context, score),
        to_host(context, candidates.nan_item));
  }
  return lists;
}

template <class T>
class DotSource final : public BlockSource<T> {
 public:
  DotSource(Context& context, MatrixView<const T> users, MatrixView<const T> items)
      : context_(context), users_(users), items_(context, items), d_(users.cols()) {
    const auto count = static_cast<std::size_t>(items.rows());
    std::vector<int32_t> exponent(count);
    std::vector<double> norm(count);
    const auto scale_into = [&](float* scaled) {
      float_rows<T>(context, items, true, {scaled, items.shape}, exponent.data(), norm.data());
    };
    if (context.device() == DeviceKind::cpu) {
      scaled_items_ = Tensor<float, 2>(context, items.shape);
      scale_into(scaled_items_.view().data);
    } else {
      std::vector<float> scaled(count * static_cast<std::size_t>(d_));
      scale_into(scaled.data());
      scaled_items_ = Tensor<float, 2>(context, items.shape, scaled.data());
    }
    item_exponent_ = count > 0 ? exponent[0] : 0;
    for (const double n : norm) {
      norms_.push_back(
          std::nextafter(static_cast<float>(n), std::numeric_limits<float>::infinity()));
    }
    item_norm_ = Tensor<float, 1>(context, {items.rows()}, norms_.data());
  }

  DotProducts<T> start(std::span<const int32_t> users) override {
    const auto rows = static_cast<int64_t>(users.size());
    // Members, since the device may read them until the block's results have been waited for.
    given_.resize(users.size() * static_cast<std::size_t>(d_));
    scaled_.resize(given_.size());
    exponent_.resize(users.size());
    bound_.resize(users.size());
    for (std::size_t r = 0; r < users.size(); ++r) {
      std::copy_n(users_.data + users[r] * users_.stride[0], d_,
                  given_.begin() + static_cast<std::ptrdiff_t>(r) * d_);
    }
    float_rows<T>(context_, {given_.data(), {rows, d_}}, false, {scaled_.data(), {rows, d_}},
                  exponent_.data(), bound_.data());
    const double gamma = dot_product_gamma(d_);
    for (double& norm : bound_) norm *= gamma;
    for (int32_t& exponent : exponent_) exponent += item_exponent_;

    block_ = as_matrix(upload(context_, scaled_), rows, d_);
    DotProducts<T> dots;
    dots.users = as_matrix(upload(context_, given_), rows, d_);
    dots.items = items_.view();
    dots.user_exponent = upload(context_, exponent_);
    dots.user_bound = upload(context_, bound_);
    dots.item_norm = item_norm_.view();
    dots.underflow = dot_product_underflow(d_);
    return dots;
  }

  void fill(std::span<const int32_t>, int64_t first, int64_t last,
            MatrixView<float> scores) override {
    const MatrixView<const float> items(scaled_items_.view().data + first * d_, {last - first, d_});
    dot_scores(context_, block_, items, scores);
  }

  float largest_norm(int64_t first, int64_t last) const override {
    return *std::max_element(norms_.begin() + first, norms_.begin() + last);
  }

 private:
  Context& context_;
  MatrixView<const T> users_;
  DeviceMatrix<T> items_;
  const int64_t d_;
  int32_t item_exponent_ = 0;
  std::vector<float> norms_;
  Tensor<float, 2> scaled_items_;
  Tensor<float, 1> item_norm_;
  std::vector<T> given_;
  std::vector<float> scaled_;
  std::vector<int32_t> exponent_;
  std::vector<double> bound_;
  MatrixView<const float> block_;
};

class FunctionSource final : public BlockSource<float> {
 public:
  FunctionSource(Context& context, const BlockFunction& block) : context_(context), block_(block) {}
  DotProducts<float> start(std::span<const int32_t>) override { return {}; }
  void fill(std::span<const int32_t> users, int64_t first, int64_t last,
            MatrixView<float> scores) override {
    block_(context_, users, first, last, scores);
  }
  float largest_norm(int64_t, int64_t) const override { return 0; }

 private:
  Context& context_;
  const BlockFunction& block_;
};

}  // namespace

NanScore::NanScore(int32_t user_row, int32_t item_row)
    : Error(fmt::format("the score of user row {} and item row {} is NaN; a ranking needs numbers "
                        "or infinities",
                        user_row, item_row)),
      user(user_row),
      item(item_row) {}

template <class T>
DotScorer<T>::DotScorer(MatrixView<const T> user_rows, MatrixView<const T> item_rows)
    : users_(user_rows), items_(item_rows) {
  CFAA_ASSERT(users_.cols() == items_.cols() && users_.contiguous() && items_.contiguous());
}

template <class T>
Lists DotScorer<T>::rank(Context& context, std::span<const int32_t> users, const UserItems& masked,
                         const RankingOptions& options) const {
  DotSource<T> source(context, users_, items_);
  return rank_blocks<T>(context, source, users, items(), masked, options);
}

template <class T>
void DotScorer<T>::score(int32_t user, std::span<const int32_t> items, double* scores) const {
  exact_scores<T>(users_.data + user * users_.stride[0], items_, items.data(),
                  static_cast<int64_t>(items.size()), scores);
}

template <class T>
MatrixScorer<T>::MatrixScorer(MatrixView<const T> scores) : scores_(scores) {
  CFAA_ASSERT(scores_.contiguous());
}

template <class T>
Lists MatrixScorer<T>::rank(Context& context, std::span<const int32_t> users,
                            const UserItems& masked, const RankingOptions& options) const {
  CFAA_ASSERT(options.k >= 1 && options.k <= kMaxTopK && items() <= kNoItem);
  Lists lists = empty_lists(users, options.k);
  if (items() == 0) return lists;
  const int64_t k = std::min(options.k, items());
  const MaskedRows masked_rows(masked, users);
  const RowItems masked_items = masked_rows.on_host();
  std::vector<int32_t> item(users.size() * static_cast<std::size_t>(k)), nan_item(users.size());
  std::vector<double> score(item.size());
  // A row at a time, since ranked users need not be neighbours in the matrix.
  context.threads().parallel_for(
      static_cast<int64_t>(users.size()), 16, [&](int64_t begin, int64_t end, int) {
        for (int64_t r = begin; r < end; ++r) {
          const int32_t user = users[static_cast<std::size_t>(r)];
          top_k_of_rows<T>(context, {scores_.data + user * scores_.stride[0], {1, items()}},
                           {{masked_items.offset.data + r, {2}}, masked_items.item}, k,
                           {item.data() + r * k, {1, k}}, {score.data() + r * k, {1, k}},
                           {nan_item.data() + r, {1}});
        }
      });
  put(lists, 0, users, k, item, score, nan_item);
  return lists;
}

template <class T>
void MatrixScorer<T>::score(int32_t user, std::span<const int32_t> items, double* scores) const {
  for (std::size_t i = 0; i < items.size(); ++i) scores[i] = scores_(user, items[i]);
}

BlockScorer::BlockScorer(int64_t users, int64_t items, BlockFunction block, PairFunction pairs)
    : users_(users), items_(items), block_(std::move(block)), pairs_(std::move(pairs)) {}

Lists BlockScorer::rank(Context& context, std::span<const int32_t> users, const UserItems& masked,
                        const RankingOptions& options) const {
  FunctionSource source(context, block_);
  return rank_blocks<float>(context, source, users, items_, masked, options);
}

template class DotScorer<float>;
template class DotScorer<double>;
template class MatrixScorer<float>;
template class MatrixScorer<double>;

}  // namespace cfaa
