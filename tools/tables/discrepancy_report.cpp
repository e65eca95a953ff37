#include "tools/tables/discrepancy_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "host/core/terminal/terminal.h"

namespace cfaa::tools {
namespace {

std::string objective_text(const std::vector<double>& rounds) {
  return fmt::format("{:.6g} -> {:.6g}", rounds.front(), rounds.back());
}

std::string solver_text(const VerticalDiscrepancy& vertical) {
  if (vertical.solver == OtSolver::exact) {
    return fmt::format("exact, {} typical samples", vertical.k);
  }
  return fmt::format("sinkhorn, {} typical samples, {} after {} iterations (marginal error {:.1e})",
                     vertical.k, vertical.converged ? "converged" : "not converged",
                     vertical.iterations, vertical.max_marginal_error);
}

void print_how(const char* name, double loss, const std::string& how) {
  const std::string line = fmt::format("{:<12} {:<12.7g} {}", name, loss, how);
  fmt::print("{}\n", wrapped(line, output_columns(), 26));
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

void print_discrepancy(const Discrepancy& found) {
  fmt::print("{} x {} (source) against {} x {} (target), {} on {}\n\n", found.source_rows,
             found.attributes, found.target_rows, found.attributes,
             found.precision == ComparePrecision::f64 ? "double" : "float", found.device);
  fmt::print("loss         value        how\n");
  if (found.vertical) {
    const VerticalDiscrepancy& vertical = *found.vertical;
    print_how("vertical", vertical.loss, solver_text(vertical));
    fmt::print("{:26}spread kept by the samples: source {:.0f} %, target {:.0f} %\n", "",
               100 * vertical.spread_source, 100 * vertical.spread_target);
  }
  if (found.horizontal) {
    const HorizontalDiscrepancy& horizontal = *found.horizontal;
    print_how("horizontal", horizontal.loss,
              fmt::format("SLIM ({} step), {} rounds; objective: source {}, target {}",
                          horizontal.slim_step == SlimStep::exact ? "exact" : "paper",
                          horizontal.objective[0].size(), objective_text(horizontal.objective[0]),
                          objective_text(horizontal.objective[1])));
  }
  if (found.vertical) print_attributes(found.vertical->attribute_loss);
  fmt::print("\nseconds: read {:.3f}, vertical {:.3f}, horizontal {:.3f}\n", found.read_seconds,
             found.vertical_seconds, found.horizontal_seconds);
}

void print_run_discrepancy(const std::string& run, const RunDiscrepancy& found) {
  const Discrepancy &users = found.users, &items = found.items;
  fmt::print("{}: source against target by its best parameters\n\n{:<22}{:>12}{:>12}{:>12}\n", run,
             "", "users", "items", "sum");
  const auto print_row = [](const char* name, double of_users, double of_items, double sum) {
    fmt::print("{:<22}{:>12.6g}{:>12.6g}{:>12.6g}\n", name, of_users, of_items, sum);
  };
  if (found.vertical) {
    print_row("L_O (vertical)", users.vertical->loss, items.vertical->loss, *found.vertical);
  }
  if (found.horizontal) {
    print_row("L_A (horizontal)", users.horizontal->loss, items.horizontal->loss,
              *found.horizontal);
  }
  fmt::print("{:<22}{:>12.4f}{:>12.4f}\n", "proxy A-distance", users.proxy->distance,
             items.proxy->distance);
  fmt::print("{:<22}{:>12.4f}{:>12.4f}\n", "  held-out error", users.proxy->error,
             items.proxy->error);
  for (const bool is_users : {true, false}) {
    const Discrepancy& side = is_users ? users : items;
    fmt::print("\n{}: losses of {} source and {} target rows, classifier of {}",
               is_users ? "users" : "items", side.source_rows, side.target_rows, side.proxy->train);
  }
  fmt::print("\n");
}

}  // namespace cfaa::tools
