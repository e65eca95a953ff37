#include "tools/discrepancy_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace cfaa::tools {
namespace {

using nlohmann::json;

std::string objective_text(const json& rounds) {
  return fmt::format("{:.6g} -> {:.6g}", rounds.front().get<double>(), rounds.back().get<double>());
}

void print_attributes(const std::vector<double>& loss) {
  std::vector<std::size_t> order(loss.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return loss[a] > loss[b]; });
  order.resize(std::min<std::size_t>(order.size(), 10));
  const double total = std::accumulate(loss.begin(), loss.end(), 0.0);
  fmt::print("\nattributes that differ most   distance   share of the loss\n");
  for (const std::size_t q : order) {
    fmt::print("  {:>25} {:>11.5g} {:>17.1f} %\n", q, loss[q],
               total > 0 ? 100 * loss[q] / total : 0.0);
  }
}

}  // namespace

void print_comparison(const ComparisonReport& report) {
  const json& f = report.fields;
  const json& shape = f["shape"];
  fmt::print("{} x {} (source) against {} x {} (target), {} on {}\n\n",
             shape["source"].get<int64_t>(), shape["attributes"].get<int64_t>(),
             shape["target"].get<int64_t>(), shape["attributes"].get<int64_t>(),
             f["precision"].get<std::string>(), f["device"].get<std::string>());
  fmt::print("loss         value        how\n");
  if (f.contains("vertical")) {
    const json& v = f["vertical"];
    const bool entropic = v["solver"] == "sinkhorn";
    const std::string how =
        entropic
            ? fmt::format(
                  "sinkhorn, {} typical samples, {} after {} iterations (marginal "
                  "error {:.1e})",
                  v["k"].get<int64_t>(), v["converged"].get<bool>() ? "converged" : "not converged",
                  v["iterations"].get<int64_t>(), v["max_marginal_error"].get<double>())
            : fmt::format("exact, {} typical samples", v["k"].get<int64_t>());
    fmt::print("vertical     {:<12.7g} {}\n", v["loss"].get<double>(), how);
    fmt::print("{:26}spread kept by the samples: source {:.0f} %, target {:.0f} %\n", "",
               100 * v["spread_source"].get<double>(), 100 * v["spread_target"].get<double>());
  }
  if (f.contains("horizontal")) {
    const json& h = f["horizontal"];
    fmt::print(
        "horizontal   {:<12.7g} SLIM ({} step), {} rounds; objective: source {}, target {}\n",
        h["loss"].get<double>(), h["slim_step"].get<std::string>(), h["objective"]["source"].size(),
        objective_text(h["objective"]["source"]), objective_text(h["objective"]["target"]));
  }
  if (f.contains("vertical")) print_attributes(report.attribute_loss);
  const json& s = f["seconds"];
  fmt::print("\nseconds: read {:.3f}, vertical {:.3f}, horizontal {:.3f}\n",
             s["read"].get<double>(), s["vertical"].get<double>(), s["horizontal"].get<double>());
}

void print_run_comparison(const json& fields) {
  fmt::print("{}: source against target by its best parameters\n\n{:<22}{:>12}{:>12}{:>12}\n",
             fields["run"].get<std::string>(), "", "users", "items", "sum");
  for (const char* loss : {"vertical", "horizontal"}) {
    if (!fields.contains(loss)) continue;
    fmt::print("{:<22}{:>12.6g}{:>12.6g}{:>12.6g}\n",
               loss[0] == 'v' ? "L_O (vertical)" : "L_A (horizontal)",
               fields["users"][loss]["loss"].get<double>(),
               fields["items"][loss]["loss"].get<double>(), fields[loss].get<double>());
  }
  const json &users = fields["users"]["proxy_distance"], &items = fields["items"]["proxy_distance"];
  fmt::print("{:<22}{:>12.4f}{:>12.4f}\n", "proxy A-distance", users["distance"].get<double>(),
             items["distance"].get<double>());
  fmt::print("{:<22}{:>12.4f}{:>12.4f}\n", "  held-out error", users["error"].get<double>(),
             items["error"].get<double>());
  for (const char* side : {"users", "items"}) {
    const json& shape = fields[side]["shape"];
    fmt::print("\n{}: losses of {} source and {} target rows, classifier of {}", side,
               shape["source"].get<int64_t>(), shape["target"].get<int64_t>(),
               fields[side]["proxy_distance"]["train"].get<int64_t>());
  }
  fmt::print("\n");
}

}  // namespace cfaa::tools
