#include "host/run/report/page.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "host/run/report/report.h"
#include "host/run/run_json.h"

namespace cfaa {
namespace {

using nlohmann::json;

json to_json(const std::vector<ShownItem>& items) {
  json list = json::array();
  for (const ShownItem& item : items) list.push_back({{"item", item.item}, {"title", item.title}});
  return list;
}

json to_json(const Report& report) {
  json fields = {{"version", report.version},
                 {"comparison", cfaa::to_json(report.comparison)},
                 {"curves", json::array()},
                 {"groups", json::array()},
                 {"weights", json::array()},
                 {"maps", json::array()},
                 {"listed", report.listed},
                 {"users", json::array()},
                 {"users_to_choose_from", report.users_to_choose_from}};
  // Metrics in the order asked for, which an object does not keep.
  for (const ComparedMetric& metric : report.comparison.rows[0].metrics) {
    fields["metrics"].push_back(metric.name);
  }
  for (const Curve& curve : report.curves) {
    fields["curves"].push_back({{"run", curve.run},
                                {"name", curve.name},
                                {"seed", curve.seed},
                                {"steps", curve.steps},
                                {"values", curve.values}});
  }
  for (const UserGroup& group : report.groups) {
    fields["groups"].push_back({{"run", group.run},
                                {"group", group.group},
                                {"users", group.users},
                                {"mean", group.mean},
                                {"standard_error", group.standard_error}});
  }
  for (const ShownWeights& shown : report.weights) {
    json weights = json::array();
    for (const auto& [signal, weight] : shown.weights) {
      weights.push_back({{"signal", signal}, {"weight", weight}});
    }
    fields["weights"].push_back(
        {{"run", shown.run}, {"domain", shown.domain}, {"weights", weights}});
  }
  for (const EmbeddingMap& map : report.maps) {
    json shown = {{"run", map.run},
                  {"side", map.side},
                  {"distance", map.proxy.distance},
                  {"ids", map.ids},
                  {"from_target", map.from_target},
                  {"points", json::array()}};
    // Hundredths are less than a dot.
    for (const float value : map.points) shown["points"].push_back(std::round(value * 100) / 100.0);
    fields["maps"].push_back(std::move(shown));
  }
  for (const ShownUser& user : report.users) {
    json lists = json::array();
    for (const Recommendation& list : user.lists) lists.push_back(cfaa::to_json(list)["items"]);
    fields["users"].push_back({{"user", user.user},
                               {"history", to_json(user.history)},
                               {"held_out", to_json(user.held_out)},
                               {"lists", lists}});
  }
  return fields;
}

// JSON that can stand in a script element: nothing in it can end the element or begin a comment.
std::string script_text(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&') {
      safe += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string report_page(const Report& report) {
  std::string page(kReportPage);
  const auto put = [&](std::string_view place, const std::string& text) {
    page.replace(page.find(place), place.size(), text);
  };
  put("PAGE_STYLE", std::string(kPageStyle));
  put("REPORT_SCRIPT", fmt::format("{}\n{}\n{}", kPageElements, kReportCharts, kReportScript));
  put("REPORT_DATA", script_text(to_json(report)));
  return page;
}

}  // namespace cfaa
