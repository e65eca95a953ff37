#include "host/run/report/attribute_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"
#include "host/run/discrepancy.h"

namespace cfaa {
namespace {

constexpr int64_t kRows = 2048;         // of each set, drawn at random
constexpr std::size_t kAttributes = 4;  // shown
constexpr std::size_t kEdges = 18;      // of each kind
constexpr const char* kSides[] = {"users", "items"};

struct Sets {
  Sets(Context& context, const PerDomain<DomainEmbeddings>& embeddings, std::size_t side)
      : source(compared_rows<float>(context, embeddings[kSource].view(side), kRows, 2 * side)),
        target(compared_rows<float>(context, embeddings[kTarget].view(side), kRows, 2 * side + 1)),
        pair{source.view(), target.view()},
        values{to_host(context, source.view()), to_host(context, target.view())},
        dim(embeddings[kTarget].dim) {}

  std::vector<double> column(std::size_t domain, int64_t attribute) const {
    std::vector<double> result;
    for (auto at = static_cast<std::size_t>(attribute); at < values[domain].size();
         at += static_cast<std::size_t>(dim)) {
      result.push_back(values[domain][at]);
    }
    return result;
  }

  Tensor<float, 2> source, target;
  EmbeddingPair<float> pair;
  PerDomain<std::vector<float>> values;
  int64_t dim;
};

// The middle 99 % of both columns, and how many of each are in which of the bins; what lies outside
// counts in the first and the last.
void count_rows(const Sets& sets, ShownAttribute& shown) {
  const PerDomain<std::vector<double>> column = {sets.column(kSource, shown.number),
                                                 sets.column(kTarget, shown.number)};
  std::vector<double> both = column[0];
  both.insert(both.end(), column[1].begin(), column[1].end());
  std::sort(both.begin(), both.end());
  const auto quantile = [&](double part) {
    return both[static_cast<std::size_t>(part * static_cast<double>(both.size() - 1))];
  };
  shown.low = quantile(0.005);
  shown.high = quantile(0.995);
  const double width = (shown.high - shown.low) / ShownAttribute::kBins;
  for (const std::size_t domain : {kSource, kTarget}) {
    shown.share[domain].assign(ShownAttribute::kBins, 0);
    for (const double value : column[domain]) {
      const double bin = width > 0 ? (value - shown.low) / width : 0;
      const double inside = std::clamp(bin, 0.0, static_cast<double>(ShownAttribute::kBins - 1));
      shown.share[domain][static_cast<std::size_t>(inside)] +=
          1 / static_cast<double>(column[domain].size());
    }
  }
}

// Every attribute, with its typical samples and plan; the rows are counted of those shown.
std::vector<ShownAttribute> all_attributes(Context& context, const Sets& sets,
                                           AlignmentOptions options, double& loss) {
  const Arena::Scope scope(context.scratch());
  const int64_t smallest = std::min(sets.source.shape()[0], sets.target.shape()[0]);
  options.typical.k = std::min(ShownAttribute::kTypical, smallest);
  options.coupling.scale = OtScale::transport;
  const VerticalLoss<float> forward = vertical_loss<float>(context, {&sets.pair, 1}, options, true);
  context.check_faults();
  loss = to_host(context, forward.loss)[0];
  const auto samples = to_host(context, forward.typical.samples);
  const auto plan = to_host(context, forward.plan);
  const auto distance = to_host(context, forward.coupling.loss);
  const auto deviation = to_host(context, forward.typical.column_std);
  const auto k = static_cast<std::size_t>(options.typical.k),
             d = static_cast<std::size_t>(sets.dim);
  std::vector<ShownAttribute> all(d);
  for (std::size_t q = 0; q < d; ++q) {
    ShownAttribute& shown = all[q];
    shown.number = static_cast<int64_t>(q);
    const double variance = (std::pow(deviation[q], 2) + std::pow(deviation[d + q], 2)) / 2;
    shown.distance = variance > 0 ? distance[q] / variance : 0;
    for (const std::size_t domain : {kSource, kTarget}) {
      const auto first = samples.begin() + static_cast<std::ptrdiff_t>((domain * d + q) * k);
      shown.typical[domain].assign(first, first + static_cast<std::ptrdiff_t>(k));
    }
    const auto first = plan.begin() + static_cast<std::ptrdiff_t>(q * k * k);
    shown.plan.assign(first, first + static_cast<std::ptrdiff_t>(k * k));
  }
  return all;
}

std::vector<std::size_t> most_different(const std::vector<ShownAttribute>& all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].distance > all[b].distance; });
  order.resize(std::min(order.size(), kAttributes));
  return order;
}

// (|B| + |B'|) / 2, above the diagonal.
std::vector<AttributionEdge> all_edges(Context& context, const Sets& sets,
                                       const AlignmentOptions& options, double& loss) {
  if (sets.dim < 2) return {};
  const Arena::Scope scope(context.scratch());
  const HorizontalLoss<float> forward = horizontal_loss<float>(context, {&sets.pair, 1}, options);
  context.check_faults();
  loss = to_host(context, forward.loss)[0];
  const auto b = to_host(context, forward.slim.b);
  const auto d = static_cast<std::size_t>(sets.dim);
  std::vector<AttributionEdge> edges;
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = i + 1; j < d; ++j) {
      AttributionEdge& edge = edges.emplace_back();
      edge.from = static_cast<int64_t>(i);
      edge.to = static_cast<int64_t>(j);
      for (const std::size_t domain : {kSource, kTarget}) {
        const double* of = b.data() + domain * d * d;
        edge.weight[domain] = (std::abs(of[i * d + j]) + std::abs(of[j * d + i])) / 2;
      }
    }
  }
  return edges;
}

std::vector<AttributionEdge> shown_edges(const std::vector<AttributionEdge>& all) {
  std::set<std::size_t> chosen;
  std::vector<std::size_t> order(all.size());
  const auto take = [&](const auto& size) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return size(all[a]) > size(all[b]); });
    chosen.insert(order.begin(),
                  order.begin() + static_cast<std::ptrdiff_t>(std::min(kEdges, order.size())));
  };
  take([](const AttributionEdge& edge) { return edge.weight[kSource]; });
  take([](const AttributionEdge& edge) { return edge.weight[kTarget]; });
  take([](const AttributionEdge& edge) {
    return std::abs(edge.weight[kSource] - edge.weight[kTarget]);
  });
  std::vector<AttributionEdge> shown;
  for (const std::size_t edge : chosen) shown.push_back(all[edge]);
  return shown;
}

}  // namespace

std::vector<AttributeFigures> draw_attributes(Context& context,
                                              const PerDomain<DomainEmbeddings>& before,
                                              const PerDomain<DomainEmbeddings>& after,
                                              AlignmentOptions options) {
  std::vector<AttributeFigures> figures;
  for (const std::size_t side : {kUser, kItem}) {
    std::vector<std::size_t> chosen;
    for (const PerDomain<DomainEmbeddings>* stage : {&before, &after}) {
      if ((*stage)[kTarget].dim == 0) continue;
      const Sets sets(context, *stage, side);
      AttributeFigures& figure = figures.emplace_back();
      figure.side = kSides[side];
      figure.trained = stage == &after;
      const auto all = all_attributes(context, sets, options, figure.vertical);
      if (chosen.empty()) chosen = most_different(all);
      for (const std::size_t q : chosen) {
        count_rows(sets, figure.attributes.emplace_back(all[q]));
      }
      figure.edges = shown_edges(all_edges(context, sets, options, figure.horizontal));
    }
  }
  return figures;
}

}  // namespace cfaa
