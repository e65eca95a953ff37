#include "host/signals/signal_scores.h"

#include <algorithm>

#include "host/ops/grouped_linear.h"

namespace cfaa {
namespace {

std::size_t index(int64_t i) {
  return static_cast<std::size_t>(i);
}

// row (columns) as entries; `row` is zero again afterwards.
std::vector<SparseEntry> take_entries(std::vector<double>& row, std::vector<int32_t>& touched) {
  if (!std::is_sorted(touched.begin(), touched.end())) {  // rows of more than one matrix
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  }
  std::vector<SparseEntry> entries;
  entries.reserve(touched.size());
  for (const int32_t column : touched) {
    double& x = row[index(column)];
    if (x != 0) entries.push_back({column, static_cast<float>(x)});
    x = 0;
  }
  touched.clear();
  return entries;
}

// Row r of the weighted sum of the matrices that `part` chooses, for r < rows.
template <class Chosen>
void append_weighted(Context& context, int64_t rows, int64_t columns,
                     std::span<const Signal> signals, std::span<const double> weights,
                     Chosen chosen, std::vector<std::vector<SparseEntry>>& out) {
  const std::size_t first = out.size();
  out.resize(first + index(rows));
  context.threads().parallel_for(rows, 64, [&](int64_t begin, int64_t end, int) {
    std::vector<double> sum(index(columns));
    std::vector<int32_t> touched;
    for (int64_t r = begin; r < end; ++r) {
      for (std::size_t s = 0; s < signals.size(); ++s) {
        const SparseRows& matrix = chosen(signals[s]);
        if (matrix.rows() == 0) continue;
        const auto at = matrix.columns_of(r);
        const auto values = matrix.values_of(r);
        for (std::size_t e = 0; e < at.size(); ++e) {
          sum[index(at[e])] += weights[s] * double{values[e]};
          touched.push_back(at[e]);
        }
      }
      out[first + index(r)] = take_entries(sum, touched);
    }
  });
}

}  // namespace

SignalScores::SignalScores(Context& context, const Evidence& evidence,
                           std::span<const Signal> signals, std::span<const double> weights,
                           std::span<const double> user_scale) {
  const int64_t items = evidence.items();
  const std::vector<float>* factors = nullptr;
  const SparseRows* words = nullptr;
  std::vector<float> bias(index(items));
  for (std::size_t s = 0; s < signals.size(); ++s) {
    const Signal& signal = signals[s];
    for (std::size_t i = 0; i < signal.bias.size(); ++i) {
      bias[i] += static_cast<float>(weights[s] * double{signal.bias[i]});
    }
    if (signal.user_words.rows() > 0) words = &signal.user_words;
    if (signal.dim > 0) {
      CFAA_ASSERT(dim_ == 0);
      dim_ = signal.dim;
      factor_weight_ = weights[s];
      item_factors_ = signal.item_factors;
      factors = &signal.user_factors;
    }
  }
  const int64_t terms = words == nullptr ? 0 : words->columns;

  std::vector<std::vector<SparseEntry>> right;
  append_weighted(
      context, items, items, signals, weights,
      [](const Signal& s) -> const SparseRows& { return s.votes; }, right);
  right.emplace_back();
  for (int64_t i = 0; i < items; ++i) {
    if (bias[index(i)] != 0) right.back().push_back({static_cast<int32_t>(i), bias[index(i)]});
  }
  append_weighted(
      context, terms, items, signals, weights,
      [](const Signal& s) -> const SparseRows& { return s.word_items; }, right);
  right_ = join_rows(items, right);

  users_ = make_users(context, evidence.liked, words,
                      factors == nullptr ? std::vector<float>() : *factors, user_scale);
  device_right_ = DeviceRows(context, right_);
  if (dim_ > 0) {
    device_item_factors_ = Tensor<float, 2>(context, {items, dim_}, item_factors_.data());
    no_bias_ = Tensor<float, 1>(context, {items});
    no_bias_.fill_zero();
  }
}

SignalScores::Users SignalScores::make_users(Context& context, const SparseRows& liked,
                                             const SparseRows* words, std::vector<float> factors,
                                             std::span<const double> user_scale) const {
  const auto scale = [&](std::size_t user) { return user_scale.empty() ? 1 : user_scale[user]; };
  const int64_t items = right_.columns;
  // What a user liked, the bias, the user's words.
  Users users;
  SparseRows& left = users.left;
  left.columns = right_.rows();
  for (int64_t u = 0; u < liked.rows(); ++u) {
    const std::size_t own = words == nullptr ? 0 : words->columns_of(u).size();
    left.offset.push_back(left.offset.back() +
                          static_cast<int64_t>(liked.columns_of(u).size() + 1 + own));
  }
  left.column.resize(index(left.offset.back()));
  left.value.resize(left.column.size());
  context.threads().parallel_for(liked.rows(), 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t u = begin; u < end; ++u) {
      int32_t* column = left.column.data() + left.offset[index(u)];
      float* value = left.value.data() + left.offset[index(u)];
      const auto one = static_cast<float>(scale(index(u)));
      const auto add = [&](int32_t at, float x) { *column++ = at, *value++ = x; };
      for (const int32_t j : liked.columns_of(u)) add(j, one);
      add(static_cast<int32_t>(items), one);
      if (words == nullptr) continue;
      const auto at = words->columns_of(u);
      const auto values = words->values_of(u);
      for (std::size_t e = 0; e < at.size(); ++e) {
        add(static_cast<int32_t>(items + 1) + at[e], one * values[e]);
      }
    }
  });
  for (std::size_t x = 0; x < factors.size(); ++x) {
    factors[x] = static_cast<float>(factor_weight_ * scale(x / index(dim_)) * double{factors[x]});
  }
  users.device_left = DeviceRows(context, users.left);
  users.factors = std::move(factors);
  return users;
}

SignalScores::Users SignalScores::users_of(Context& context, const LaterUsers& later,
                                           std::span<const double> user_scale) const {
  CFAA_ASSERT(later.dim == dim_);
  const bool words = later.words.columns > 0;
  return make_users(context, later.liked, words ? &later.words : nullptr, later.factors,
                    user_scale);
}

void SignalScores::fill(Context& context, std::span<const int32_t> users, int64_t first,
                        int64_t last, MatrixView<float> scores) const {
  fill(context, users_, users, first, last, scores);
}

void SignalScores::fill(Context& context, const Users& who, std::span<const int32_t> users,
                        int64_t first, int64_t last, MatrixView<float> scores) const {
  const auto count = static_cast<int64_t>(users.size());
  const Arena::Scope scope(context.scratch());
  const auto rows = context.scratch().take<int32_t, 1>({count});
  context.runtime().copy_from_host(rows.data, users.data(), users.size_bytes());
  std::vector<float> factors;
  if (dim_ > 0) {
    for (const int32_t user : users) {
      const float* row = who.factors.data() + user * dim_;
      factors.insert(factors.end(), row, row + dim_);
    }
    const auto chosen = context.scratch().take<float, 2>({count, dim_});
    context.runtime().copy_from_host(chosen.data, factors.data(), factors.size() * sizeof(float));
    const MatrixView<const float> items(device_item_factors_.view().data + first * dim_,
                                        {last - first, dim_});
    const VectorView<const float> bias(no_bias_.view().data + first, {last - first});
    const LinearLayer<float> layer{chosen, items, bias, scores};
    grouped_linear<float>(context, {&layer, 1}, Activation::none);
  }
  sparse_product<float>(context, who.device_left.view(), rows, device_right_.view(), 1, first,
                        dim_ > 0, scores);
  context.runtime().synchronize();
}

void SignalScores::score(int32_t user, std::span<const int32_t> items, double* scores) const {
  score(users_, user, items, scores);
}

void SignalScores::score(const Users& who, int32_t user, std::span<const int32_t> items,
                         double* scores) const {
  std::vector<float> row(index(this->items()));
  if (dim_ > 0) {
    const float* w = who.factors.data() + user * dim_;
    for (const int32_t item : items) {
      const float* h = item_factors_.data() + item * dim_;
      float sum = 0;
      for (int64_t q = 0; q < dim_; ++q) sum += w[q] * h[q];
      row[index(item)] = sum;
    }
  }
  const auto at = who.left.columns_of(user);
  const auto weights = who.left.values_of(user);
  for (std::size_t e = 0; e < at.size(); ++e) {
    const auto columns = right_.columns_of(at[e]);
    const auto values = right_.values_of(at[e]);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      row[index(columns[c])] += weights[e] * values[c];
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i) scores[i] = row[index(items[i])];
}

}  // namespace cfaa
