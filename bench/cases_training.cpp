#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/cases.h"
#include "bench/reference/bags.h"
#include "bench/reference/inputs.h"
#include "bench/reference/layers.h"
#include "bench/validate.h"
#include "host/core/instantiate.h"
#include "host/core/tensor.h"
#include "host/ops/adam.h"
#include "host/ops/embedding_bag.h"
#include "host/ops/pair_scores.h"

namespace cfaa::bench {
namespace {

using reference::normal;

constexpr int64_t kTableColumns = 64;
constexpr int64_t kLongestHistory = 50;
constexpr int64_t kNegatives = 4;

template <class T>
constexpr double kTolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;

template <class T>
std::vector<double> widened(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

// The histories of a batch's users and its negatives' over the items of the ranking's size.
template <class T>
struct Histories {
  Histories(Context& context, const Sizes& sizes)
      : context(context),
        rows(195 * sizes.n),
        lists(reference::random_bags((1 + kNegatives) * sizes.n, rows, kLongestHistory, 90)),
        bags(context, lists),
        touched(static_cast<int64_t>(reference::by_row(lists).row.size())),
        host_table(normal<T>(rows * kTableColumns, 91, 0, 1)),
        host_dout(normal<T>(lists.bags() * kTableColumns, 92, 0, 1)),
        table(context, {rows, kTableColumns}, host_table.data()),
        first(context, {rows, kTableColumns}),
        second(context, {rows, kTableColumns}),
        out(context, {lists.bags(), kTableColumns}),
        dout(context, {lists.bags(), kTableColumns}, host_dout.data()),
        gradient(context, {touched, kTableColumns}) {
    first.fill_zero();
    second.fill_zero();
  }

  double entries() const { return static_cast<double>(lists.index.size()); }
  double bytes_of_rows(double count) const { return count * kTableColumns * sizeof(T); }

  Context& context;
  int64_t rows;
  reference::BagLists lists;
  reference::DeviceBags<T> bags;
  int64_t touched;
  std::vector<T> host_table, host_dout;
  Tensor<T, 2> table, first, second, out, dout, gradient;
};

template <class T>
Case bag_case(const std::shared_ptr<Histories<T>>& h) {
  Case c;
  c.name = "embedding_bag";
  c.detail = fmt::format("{} bags, {} entries of {} columns", h->lists.bags(),
                         h->lists.index.size(), kTableColumns);
  c.work.bytes = h->bytes_of_rows(h->entries() + static_cast<double>(h->lists.bags()));
  c.work.flops = 2 * h->entries() * kTableColumns;
  c.run = [h] { embedding_bag<T>(h->context, h->table, h->bags.bags(), h->out); };
  c.validate = [h, run = c.run]() -> std::string {
    run();
    const double error =
        relative_error(widened(h->out.to_host()),
                       reference::bag_sums(h->lists, widened(h->host_table), kTableColumns));
    return error <= kTolerance<T> ? "" : fmt::format("off by {:.1e} from plain loops", error);
  };
  return c;
}

// The gradient of the rows that occur, in the order of `touched`.
template <class T>
std::vector<double> expected_gradient(const Histories<T>& h) {
  const auto whole =
      reference::table_gradient(h.lists, widened(h.host_dout), h.rows, kTableColumns);
  std::vector<double> gradient;
  for (const int32_t row : reference::by_row(h.lists).row) {
    const auto begin = whole.begin() + int64_t{row} * kTableColumns;
    gradient.insert(gradient.end(), begin, begin + kTableColumns);
  }
  return gradient;
}

template <class T>
Case bag_backward_case(const std::shared_ptr<Histories<T>>& h) {
  Case c;
  c.name = "embedding_bag_backward";
  c.detail = fmt::format("{} rows touched by {} entries", h->touched, h->lists.index.size());
  c.work.bytes = h->bytes_of_rows(h->entries() + static_cast<double>(h->touched));
  c.work.flops = 2 * h->entries() * kTableColumns;
  c.run = [h] { embedding_bag_backward<T>(h->context, h->dout, h->bags.touched(), h->gradient); };
  c.validate = [h, run = c.run]() -> std::string {
    run();
    const double error = relative_error(widened(h->gradient.to_host()), expected_gradient(*h));
    return error <= kTolerance<T> ? "" : fmt::format("off by {:.1e} from plain loops", error);
  };
  return c;
}

// With zero moments and corrections of the first step the update is rate * sign(gradient), but for
// epsilon.
template <class T>
Case adam_rows_case(Context& context, const std::shared_ptr<Histories<T>>& h) {
  StepState state;
  state.embedding_rate = 1e-3;
  state.correction1 = 1 / (1 - state.beta1);
  state.correction2 = 1 / (1 - state.beta2);
  const auto on_device =
      std::make_shared<Tensor<StepState, 1>>(context, std::array<int64_t, 1>{1}, &state);
  Case c;
  c.name = "adam_rows";
  c.detail = fmt::format("{} of {} rows of {} columns", h->touched, h->rows, kTableColumns);
  c.work.bytes = h->bytes_of_rows(7.0 * static_cast<double>(h->touched));
  c.work.flops = 14.0 * static_cast<double>(h->touched * kTableColumns);
  c.run = [h, on_device] {
    adam_rows<T>(h->context, on_device->view().data, h->bags.touched(), h->gradient, h->table,
                 h->first, h->second);
  };
  c.validate = [h, run = c.run, state]() -> std::string {
    embedding_bag_backward<T>(h->context, h->dout, h->bags.touched(), h->gradient);
    const auto before = h->table.to_host();
    h->first.fill_zero();
    h->second.fill_zero();
    run();
    const auto after = h->table.to_host();
    auto expected = widened(before);
    const auto gradient = expected_gradient(*h);
    std::size_t i = 0;
    for (const int32_t row : reference::by_row(h->lists).row) {
      for (int64_t column = 0; column < kTableColumns; ++column, ++i) {
        const double g = gradient[i];
        expected[static_cast<std::size_t>(row * kTableColumns + column)] -=
            state.embedding_rate * g / (std::abs(g) + state.epsilon);
      }
    }
    const double error = relative_error(widened(after), expected);
    return error <= kTolerance<T> ? "" : fmt::format("off by {:.1e} from plain loops", error);
  };
  return c;
}

// The MLP scorer with one hidden layer, as evaluation calls it.
template <class T>
Case pair_scores_case(Context& context, const Sizes& sizes) {
  struct Scorer {
    reference::Mlp<T> mlp;
    std::vector<T> host_users, host_items;
    Tensor<T, 2> users, items, weight, scores;
    Tensor<T, 1> bias;
  };
  const int64_t users = sizes.n, items = 16 * sizes.n, units = sizes.d;
  const auto s = std::make_shared<Scorer>();
  s->mlp = reference::random_mlp<T>({units});
  s->host_users = normal<T>(users * units, 93);
  s->host_items = normal<T>(items * units, 94);
  s->users = Tensor<T, 2>(context, {users, units}, s->host_users.data());
  s->items = Tensor<T, 2>(context, {items, units}, s->host_items.data());
  s->weight = Tensor<T, 2>(context, {1, units}, s->mlp.layers[0].weight.data());
  s->bias = Tensor<T, 1>(context, {1}, s->mlp.layers[0].bias.data());
  s->scores = Tensor<T, 2>(context, {users, items});
  Case c;
  c.name = "pair_scores";
  c.detail = fmt::format("{} users x {} items, {} hidden units", users, items, units);
  c.work.flops = 3.0 * static_cast<double>(users * items * units);
  c.run = [s, &context] {
    const PairLayer<T> layer{s->weight, s->bias};
    pair_scores<T>(context, s->users, s->items, {&layer, 1}, false, s->scores);
  };
  c.validate = [s, run = c.run, users, items, units]() -> std::string {
    run();
    const auto scores = s->scores.to_host();
    for (const int64_t user : {int64_t{0}, users - 1}) {
      const auto first = s->host_users.begin() + user * units;
      const double error = relative_error(
          {scores.begin() + user * items, scores.begin() + (user + 1) * items},
          reference::mlp_scores(s->mlp, std::vector<T>(first, first + units), s->host_items));
      if (!(error <= kTolerance<T>)) return fmt::format("off by {:.1e} from plain loops", error);
    }
    return "";
  };
  return c;
}

}  // namespace

template <class T>
std::vector<Case> training_cases(Context& context, const Sizes& sizes) {
  const auto histories = std::make_shared<Histories<T>>(context, sizes);
  std::vector<Case> cases;
  cases.push_back(bag_case(histories));
  cases.push_back(bag_backward_case(histories));
  cases.push_back(adam_rows_case(context, histories));
  cases.push_back(pair_scores_case<T>(context, sizes));
  return cases;
}

CFAA_FOR_FLOAT_AND_DOUBLE(training_cases);

}  // namespace cfaa::bench
