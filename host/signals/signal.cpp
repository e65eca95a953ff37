#include "host/signals/signal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <numbers>

#include "host/core/error.h"
#include "host/device/room.h"
#include "host/ops/grouped_linear.h"
#include "host/ops/spd_inverse.h"
#include "host/signals/device_rows.h"

namespace cfaa {
namespace {

constexpr std::array<const char*, kSignalNames> kNames = {
    "popularity", "content", "encoder", "text", "itemknn", "rp3beta", "ease", "cease", "ials"};

constexpr int64_t kBlockColumns = 256;  // of an item-item matrix, held dense at once
constexpr int64_t kSpreadUsers = 2000;

std::size_t index(int64_t i) {
  return static_cast<std::size_t>(i);
}

// The column's entries: all, or the `keep` largest by absolute value, equal ones in ascending
// order. Zeros are no entries.
void keep_largest(std::vector<SparseEntry>& column, int64_t keep) {
  std::erase_if(column, [](const SparseEntry& e) { return e.value == 0; });
  if (keep == 0 || static_cast<int64_t>(column.size()) <= keep) return;
  std::nth_element(column.begin(), column.begin() + keep - 1, column.end(),
                   [](const SparseEntry& a, const SparseEntry& b) {
                     const float x = std::abs(a.value), y = std::abs(b.value);
                     return x != y ? x > y : a.column < b.column;
                   });
  column.resize(index(keep));
  std::sort(column.begin(), column.end(),
            [](const SparseEntry& a, const SparseEntry& b) { return a.column < b.column; });
}

// votes, column by column. fill(first, block): columns first ... of the item-item matrix as the
// rows of `block` (columns, items), on the host. weigh(i, j, x): the vote of j for i, from x.
SparseRows make_votes(Context& context, int64_t items, int64_t keep,
                      const std::function<void(int64_t, MatrixView<double>)>& fill,
                      const std::function<double(int64_t, int64_t, double)>& weigh) {
  std::vector<std::vector<SparseEntry>> columns(index(items));
  std::vector<double> held(index(std::min(kBlockColumns, items) * items));
  for (int64_t first = 0; first < items; first += kBlockColumns) {
    const int64_t width = std::min(kBlockColumns, items - first);
    const MatrixView<double> block(held.data(), {width, items});
    fill(first, block);
    context.threads().parallel_for(width, 4, [&](int64_t begin, int64_t end, int) {
      std::vector<SparseEntry> column;
      for (int64_t c = begin; c < end; ++c) {
        const int64_t i = first + c;
        column.clear();
        for (int64_t j = 0; j < items; ++j) {
          const double x = block(c, j);
          if (j == i || x == 0) continue;
          column.push_back({static_cast<int32_t>(j), static_cast<float>(weigh(i, j, x))});
        }
        keep_largest(column, keep);
        columns[index(i)] = column;
      }
    });
  }
  return transpose(join_rows(items, columns));
}

// fill for a = left right: rows first ... of the product.
auto product_rows(Context& context, const DeviceRows& left, const DeviceRows& right) {
  return [&context, &left, &right](int64_t first, MatrixView<double> block) {
    std::vector<int32_t> rows(index(block.rows()));
    for (std::size_t r = 0; r < rows.size(); ++r)
      rows[r] = static_cast<int32_t>(first) + static_cast<int32_t>(r);
    const Arena::Scope scope(context.scratch());
    const auto which = context.scratch().take<int32_t, 1>({block.rows()});
    const auto out = context.scratch().take<double, 2>(block.shape);
    context.runtime().copy_from_host(which.data, rows.data(), rows.size() * sizeof(int32_t));
    sparse_product<double>(context, left.view(), which, right.view(), 1, 0, false, out);
    context.runtime().copy_to_host(block.data, out.data, index(block.size()) * sizeof(double));
    context.runtime().synchronize();
  };
}

double as_it_is(int64_t, int64_t, double x) {
  return x;
}

std::vector<double> likers_of(const Evidence& evidence) {
  std::vector<double> count(index(evidence.items()));
  for (int64_t i = 0; i < evidence.items(); ++i) {
    count[index(i)] = static_cast<double>(evidence.likers.columns_of(i).size());
  }
  return count;
}

SparseRows content_votes(Context& context, const Evidence& evidence, int64_t keep) {
  const DeviceRows items(context, evidence.text.items);
  const DeviceRows terms(context, transpose(evidence.text.items));
  return make_votes(context, evidence.items(), keep, product_rows(context, items, terms), as_it_is);
}

SparseRows encoder_votes(Context& context, const Evidence& evidence, int64_t keep) {
  if (evidence.width == 0) {
    throw Error("the signal `encoder` needs review vectors; run cfaa_gpu embed first");
  }
  const int64_t items = evidence.items(), width = evidence.width;
  const Tensor<float, 2> vectors(context, {items, width}, evidence.item_vectors.data());
  Tensor<float, 1> no_bias(context, {items});
  no_bias.fill_zero();
  const auto fill = [&](int64_t first, MatrixView<double> block) {
    const Arena::Scope scope(context.scratch());
    const auto out = context.scratch().take<float, 2>(block.shape);
    const MatrixView<const float> rows(vectors.view().data + first * width, {block.rows(), width});
    const LinearLayer<float> layer{rows, vectors.view(), no_bias.view(), out};
    grouped_linear<float>(context, {&layer, 1}, Activation::none);
    const std::vector<float> host = to_host(context, out);
    std::copy(host.begin(), host.end(), block.data);
  };
  return make_votes(context, items, keep, fill, as_it_is);
}

SparseRows neighbour_votes(Context& context, const Evidence& evidence, int64_t keep,
                           const SignalOptions& options) {
  const DeviceRows likers(context, evidence.likers), liked(context, evidence.liked);
  const std::vector<double> n = likers_of(evidence);
  keep = keep == 0 ? options.knn_neighbours : std::min(keep, options.knn_neighbours);
  return make_votes(context, evidence.items(), keep, product_rows(context, likers, liked),
                    [&](int64_t i, int64_t j, double both) {
                      return both / (std::sqrt(n[index(i)] * n[index(j)]) + options.knn_shrink);
                    });
}

SparseRows walk_votes(Context& context, const Evidence& evidence, int64_t keep,
                      const SignalOptions& options) {
  SparseRows steps = evidence.likers;  // item to user, by what the user's next step is worth
  for (std::size_t e = 0; e < steps.value.size(); ++e) {
    const auto liked = static_cast<double>(evidence.liked.columns_of(steps.column[e]).size());
    steps.value[e] = static_cast<float>(std::pow(liked, -options.rp3_alpha));
  }
  const DeviceRows likers(context, steps), liked(context, evidence.liked);
  const std::vector<double> n = likers_of(evidence);
  return make_votes(context, evidence.items(), keep, product_rows(context, likers, liked),
                    [&](int64_t i, int64_t j, double walks) {
                      return walks * std::pow(n[index(j)], -options.rp3_alpha) *
                             std::pow(n[index(i)], -options.rp3_beta);
                    });
}

// The memory that can still be had, in bytes: the GPU's, or the machine's; very much where the
// system does not say.
int64_t free_memory(Context& context) {
  if (const auto room = room_of(context)) return static_cast<int64_t>(room->free);
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    int64_t kilobytes = 0;
    if (!(file >> kilobytes)) break;
    std::getline(file, unit);
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return std::numeric_limits<int64_t>::max();
}

// What a signal needs while it is made, where that grows with the square of the items; else 0. On
// a GPU cuSOLVER wants a workspace, which counts as much again.
int64_t quadratic_bytes(Context& context, SignalName name, int64_t items) {
  const bool closed_form = name == SignalName::ease || name == SignalName::cease;
  const int64_t matrices = context.device() == DeviceKind::cpu ? 1 : 2;
  return closed_form ? 8 * matrices * items * items : 0;
}

void check_memory(Context& context, SignalName name, int64_t items) {
  if (fits_in_memory(context, name, items)) return;
  throw Error(fmt::format(
      "{}: an inverse over {} items needs {:.1f} GB and {:.1f} GB of memory are free{}; leave the "
      "signal out, or keep fewer items (prepare --core)",
      name_of(name), items, static_cast<double>(quadratic_bytes(context, name, items)) / 1e9,
      static_cast<double>(free_memory(context)) / 1e9,
      context.device() == DeviceKind::cpu ? "" : " on the GPU"));
}

SparseRows closed_form_votes(Context& context, const Evidence& evidence, SignalName name,
                             int64_t keep, double lambda, double omega) {
  const int64_t items = evidence.items();
  check_memory(context, name, items);
  Tensor<double, 2> p(context, {items, items});
  {
    const DeviceRows likers(context, evidence.likers), liked(context, evidence.liked);
    sparse_product<double>(context, likers.view(), {}, liked.view(), 1, 0, false, p.view());
    if (omega > 0) {
      const DeviceRows rows(context, evidence.text.items);
      const DeviceRows terms(context, transpose(evidence.text.items));
      sparse_product<double>(context, rows.view(), {}, terms.view(), omega, 0, true, p.view());
    }
    std::vector<std::vector<SparseEntry>> identity(index(items));
    for (int64_t i = 0; i < items; ++i) identity[index(i)] = {{static_cast<int32_t>(i), 1.0f}};
    const DeviceRows one(context, join_rows(items, identity));
    sparse_product<double>(context, one.view(), {}, one.view(), lambda, 0, true, p.view());
    context.runtime().synchronize();
  }
  if (const int64_t minor = spd_inverse<double>(context, p.view())) {
    throw Error(
        fmt::format("{}: the matrix over items is not positive definite (leading minor {});"
                    " use a larger lambda",
                    name_of(name), minor));
  }
  std::vector<double> diagonal(index(items));
  const auto fill = [&](int64_t first, MatrixView<double> block) {
    context.runtime().copy_to_host(block.data, p.view().data + first * items,
                                   index(block.size()) * sizeof(double));
    context.runtime().synchronize();
    for (int64_t c = 0; c < block.rows(); ++c) diagonal[index(first + c)] = block(c, first + c);
  };
  return make_votes(context, items, keep, fill,
                    [&](int64_t i, int64_t, double x) { return -x / diagonal[index(i)]; });
}

// N(0, (0.1 / sqrt(d))^2) by Box and Muller: element i from words 0 and 1 of Philox(i, stream).
std::vector<float> small_normal(int64_t rows, int64_t d, uint64_t seed) {
  constexpr uint64_t kStream = 0x69414C53;  // of this use alone
  const Philox random{seed};
  std::vector<float> values(index(rows * d));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Philox::Block block = random(i, kStream);
    const double u = (block.word[0] + 0.5) * 0x1p-32, v = (block.word[1] + 0.5) * 0x1p-32;
    values[i] =
        static_cast<float>(0.1 / std::sqrt(static_cast<double>(d)) * std::sqrt(-2 * std::log(u)) *
                           std::cos(2 * std::numbers::pi * v));
  }
  return values;
}

// Ends on the users' half-sweep, so that a newcomer's row is solved for in the same way.
void alternate(Context& context, const Evidence& evidence, const SignalOptions& options,
               Signal& signal) {
  const int64_t d = signal.dim = options.ials_dim;
  const DeviceRows likers(context, evidence.likers), liked(context, evidence.liked);
  Tensor<float, 2> users(context, {evidence.users(), d});
  Tensor<float, 2> items(context, {evidence.items(), d},
                         small_normal(evidence.items(), d, options.seed).data());
  const AlsOptions als = als_options(options);
  als_half_sweep<float>(context, liked.view(), als, items.view(), users.view());
  for (int64_t sweep = 0; sweep < options.ials_sweeps; ++sweep) {
    als_half_sweep<float>(context, likers.view(), als, users.view(), items.view());
    signal.als_diagonal =
        als_half_sweep<float>(context, liked.view(), als, items.view(), users.view());
  }
  signal.user_factors = users.to_host();
  signal.item_factors = items.to_host();
}

}  // namespace

const char* name_of(SignalName name) {
  return kNames[static_cast<std::size_t>(name)];
}

SignalName signal_by_name(const std::string& name) {
  for (std::size_t s = 0; s < kNames.size(); ++s) {
    if (kNames[s] == name) return static_cast<SignalName>(s);
  }
  const std::string nearest = nearest_name(name, {kNames.begin(), kNames.end()});
  throw Error(fmt::format("there is no signal `{}`{}", name,
                          nearest.empty() ? "" : fmt::format("; did you mean `{}`?", nearest)));
}

bool fits_in_memory(Context& context, SignalName name, int64_t items) {
  return quadratic_bytes(context, name, items) <= free_memory(context);
}

Signal make_signal(Context& context, const Evidence& evidence, SignalName name,
                   const SignalOptions& options) {
  Signal signal;
  signal.name = name;
  const int64_t keep = options.neighbours;
  switch (name) {
    case SignalName::popularity:
      for (const double n : likers_of(evidence)) {
        signal.bias.push_back(static_cast<float>(std::log1p(n)));
      }
      break;
    case SignalName::content:
      signal.votes = content_votes(context, evidence, keep);
      break;
    case SignalName::encoder:
      signal.votes = encoder_votes(context, evidence, keep);
      break;
    case SignalName::text:
      signal.user_words = evidence.text.users;
      signal.word_items = transpose(evidence.text.items);
      break;
    case SignalName::itemknn:
      signal.votes = neighbour_votes(context, evidence, keep, options);
      break;
    case SignalName::rp3beta:
      signal.votes = walk_votes(context, evidence, keep, options);
      break;
    case SignalName::ease:
      signal.votes = closed_form_votes(context, evidence, name, keep, options.ease_lambda, 0);
      break;
    case SignalName::cease:
      signal.votes = closed_form_votes(context, evidence, name, keep, options.cease_lambda,
                                       options.cease_omega);
      break;
    case SignalName::ials:
      alternate(context, evidence, options, signal);
      break;
  }
  return signal;
}

AlsOptions als_options(const SignalOptions& options) {
  return {options.ials_alpha, options.ials_lambda, 1};
}

SignalUser signal_user(const Signal& signal, const Evidence& evidence, int32_t user) {
  SignalUser of;
  of.liked = evidence.liked.columns_of(user);
  if (signal.user_words.rows() > 0) {
    of.terms = signal.user_words.columns_of(user);
    of.term_weights = signal.user_words.values_of(user);
  }
  of.factors = std::span(signal.user_factors).subspan(index(user * signal.dim), index(signal.dim));
  return of;
}

void add_signal_row(const Signal& signal, const SignalUser& user, double scale, double* row) {
  for (std::size_t i = 0; i < signal.bias.size(); ++i) row[i] += scale * signal.bias[i];
  const auto add = [&](const SparseRows& right, int32_t k, double factor) {
    const auto columns = right.columns_of(k);
    const auto values = right.values_of(k);
    for (std::size_t e = 0; e < columns.size(); ++e) row[columns[e]] += factor * values[e];
  };
  if (signal.votes.rows() > 0) {
    for (const int32_t j : user.liked) add(signal.votes, j, scale);
  }
  if (signal.word_items.rows() > 0) {
    for (std::size_t t = 0; t < user.terms.size(); ++t) {
      add(signal.word_items, user.terms[t], scale * user.term_weights[t]);
    }
  }
  if (signal.dim > 0) {
    const float* w = user.factors.data();
    const int64_t items = std::ssize(signal.item_factors) / signal.dim;
    for (int64_t i = 0; i < items; ++i) {
      const float* h = signal.item_factors.data() + i * signal.dim;
      double sum = 0;
      for (int64_t q = 0; q < signal.dim; ++q) sum += double{w[q]} * double{h[q]};
      row[i] += scale * sum;
    }
  }
}

double spread_within_rows(Context& context, const Signal& signal, const Evidence& evidence) {
  const int64_t users = evidence.users(), items = evidence.items();
  const int64_t step = std::max<int64_t>(1, (users + kSpreadUsers - 1) / kSpreadUsers);
  std::vector<double> variance(index((users + step - 1) / step));
  context.threads().parallel_for(
      static_cast<int64_t>(variance.size()), 16, [&](int64_t begin, int64_t end, int) {
        std::vector<double> row(index(items));
        for (int64_t k = begin; k < end; ++k) {
          std::fill(row.begin(), row.end(), 0.0);
          add_signal_row(signal, signal_user(signal, evidence, static_cast<int32_t>(k * step)), 1,
                         row.data());
          double sum = 0, square = 0;
          for (const double x : row) sum += x;
          const double mean = sum / static_cast<double>(items);
          for (const double x : row) square += (x - mean) * (x - mean);
          variance[index(k)] = square / static_cast<double>(items);
        }
      });
  double sum = 0;
  for (const double v : variance) sum += v;
  return variance.empty() ? 0 : std::sqrt(sum / static_cast<double>(variance.size()));
}

}  // namespace cfaa
