#include "bench/report.h"

#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>

#include "host/core/terminal/terminal.h"

namespace cfaa::bench {
namespace {

using nlohmann::json;

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f}", 1e3 * seconds);
}

struct Rate {
  double value = 0, peak = 0;
  std::string unit;
};

// Of the resources that the work uses, the one nearest to its peak is the one that limits it.
Rate limiting_rate(const Result& result, const Peaks& peaks) {
  const double seconds = result.timing.median;
  const double flop_peak = result.precision == "double" ? peaks.flops_double : peaks.flops_float;
  Rate best;
  for (const Rate& rate :
       {Rate{1e-9 * result.work.bytes / seconds, 1e-9 * peaks.bytes_per_second, "GB/s"},
        Rate{1e-9 * result.work.flops / seconds, 1e-9 * flop_peak, "GFLOP/s"},
        Rate{1e-9 * result.work.exponentials / seconds, 1e-9 * peaks.exponentials, "Gexp/s"}}) {
    if (rate.value <= 0 || rate.peak <= 0) continue;
    if (best.peak == 0 || rate.value / rate.peak > best.value / best.peak) best = rate;
  }
  return best;
}

}  // namespace

std::string rate_text(const Result& result, const Peaks& peaks) {
  const Rate rate = limiting_rate(result, peaks);
  if (rate.peak == 0) return "";
  return fmt::format("{:8.2f} {:<7} {:3.0f} %", rate.value, rate.unit,
                     100 * rate.value / rate.peak);
}

void print_table(const std::vector<Result>& results, const Peaks& peaks) {
  fmt::print("{:<20} {:<6} {:>9} {:>19} {:>18}\n", "what", "type", "median ms", "10 % .. 90 %",
             "rate, of peak");
  for (const Result& r : results) {
    // A long name has a line of its own.
    if (r.name.size() > 20) fmt::print("{}\n", r.name);
    fmt::print("{:<20} {:<6} {:>9} {:>19} {}\n", r.name.size() > 20 ? "" : r.name, r.precision,
               milliseconds(r.timing.median),
               milliseconds(r.timing.low) + " .. " + milliseconds(r.timing.high),
               rate_text(r, peaks));
    fmt::print("{}\n", wrapped(fmt::format("    {}; {} runs", r.detail, r.timing.repetitions),
                               output_columns(), 4));
  }
  fmt::print("{}\n",
             wrapped(fmt::format("peaks measured in this run: {:.1f} GB/s copied, {:.1f} GFLOP/s "
                                 "float, {:.1f} GFLOP/s double, {:.2f} Gexp/s",
                                 1e-9 * peaks.bytes_per_second, 1e-9 * peaks.flops_float,
                                 1e-9 * peaks.flops_double, 1e-9 * peaks.exponentials),
                     output_columns()));
}

json to_json(const std::vector<Result>& results, const Peaks& peaks) {
  json cases = json::array();
  for (const Result& r : results) {
    json entry = {
        {"name", r.name},
        {"detail", r.detail},
        {"precision", r.precision},
        {"seconds", {{"median", r.timing.median}, {"p10", r.timing.low}, {"p90", r.timing.high}}},
        {"repetitions", r.timing.repetitions}};
    const double seconds = r.timing.median;
    if (r.work.bytes > 0) entry["bytes_per_second"] = r.work.bytes / seconds;
    if (r.work.flops > 0) entry["flops_per_second"] = r.work.flops / seconds;
    if (r.work.exponentials > 0) entry["exponentials_per_second"] = r.work.exponentials / seconds;
    const Rate rate = limiting_rate(r, peaks);
    if (rate.peak > 0) {
      entry["limit"] = {{"unit", rate.unit}, {"share_of_peak", rate.value / rate.peak}};
    }
    cases.push_back(entry);
  }
  return {{"cases", cases},
          {"peaks",
           {{"bytes_per_second", peaks.bytes_per_second},
            {"flops_float", peaks.flops_float},
            {"flops_double", peaks.flops_double},
            {"exponentials_per_second", peaks.exponentials}}}};
}

int print_comparison(const json& older, const json& newer, double threshold) {
  const auto key = [](const json& c) {
    return c["name"].get<std::string>() + '\t' + c["precision"].get<std::string>() + '\t' +
           c["detail"].get<std::string>();
  };
  std::map<std::string, double> before;
  for (const json& c : older["cases"]) before[key(c)] = c["seconds"]["median"].get<double>();
  const bool colour = takes_color(STDOUT_FILENO);
  int slower = 0;
  fmt::print("\n{:<26} {:<9} {:>10} {:>10} {:>9}\n", "what", "precision", "old ms", "new ms",
             "change");
  for (const json& c : newer["cases"]) {
    const auto found = before.find(key(c));
    if (found == before.end()) continue;
    const double now = c["seconds"]["median"].get<double>();
    const double change = now / found->second - 1;
    const bool regression = change > threshold;
    slower += regression;
    const std::string line =
        fmt::format("{:<26} {:<9} {:>10} {:>10} {:>+8.1f} %{}", c["name"].get<std::string>(),
                    c["precision"].get<std::string>(), milliseconds(found->second),
                    milliseconds(now), 100 * change, regression ? "  slower" : "");
    if (colour && regression) {
      fmt::print(fg(fmt::terminal_color::red), "{}\n", line);
    } else if (colour && change < -threshold) {
      fmt::print(fg(fmt::terminal_color::green), "{}\n", line);
    } else {
      fmt::print("{}\n", line);
    }
  }
  return slower;
}

}  // namespace cfaa::bench
