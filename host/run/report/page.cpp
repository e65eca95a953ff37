#include "host/run/report/page.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "host/run/report/report.h"
#include "host/run/run_json.h"

namespace cfaa {
namespace {

using nlohmann::json;

// Four digits are more than a picture shows.
json digits(double value) {
  return std::stod(fmt::format("{:.4g}", value));
}
template <class Values>
json digits_of(const Values& values) {
  json list = json::array();
  for (const auto value : values) list.push_back(digits(value));
  return list;
}

// Each text once: lists name items, signals and words by their place.
class Texts {
 public:
  std::size_t place(const std::string& key, json value) {
    const auto [found, made] = place_.emplace(key, place_.size());
    if (made) all_.push_back(std::move(value));
    return found->second;
  }
  const json& all() const { return all_; }

 private:
  std::map<std::string, std::size_t> place_;
  json all_ = json::array();
};

// [item, what the user wrote], by place among the items, which are [id, title, a sentence of it].
class ListsAsJson {
 public:
  // What is recommended to anybody comes first: it has a sentence, which an item of a history
  // lacks.
  explicit ListsAsJson(std::span<const ShownUser> users) {
    for (const ShownUser& user : users) {
      for (const Recommendation& list : user.lists) {
        for (const RecommendedItem& item : list.items) {
          items_.place(item.item, {item.item, item.title, item.words});
        }
      }
    }
  }

  json user(const ShownUser& user) {
    json history = json::array(), lists = json::array();
    for (const ShownItem& item : user.history) {
      history.push_back({items_.place(item.item, {item.item, item.title, ""}), item.words});
    }
    const auto places = [&](const std::vector<ShownItem>& items) {
      json list = json::array();
      for (const ShownItem& item : items) {
        list.push_back(items_.place(item.item, {item.item, item.title, ""}));
      }
      return list;
    };
    const json held_out = places(user.held_out), validation = places(user.validation);
    for (const Recommendation& list : user.lists) {
      json shown = json::array();
      for (const RecommendedItem& item : list.items) shown.push_back(entry(item));
      lists.push_back(std::move(shown));
    }
    return {user.user, history, held_out, lists, validation};
  }

  const json& items() const { return items_.all(); }
  const json& signals() const { return signals_.all(); }

 private:
  // [item, score, signal or -1, reasons: items, or words]
  json entry(const RecommendedItem& item) {
    json because = json::array();
    for (std::size_t i = 0; i < item.because.size(); ++i) {
      if (i < item.own_words.size()) {
        because.push_back(items_.place(item.because[i], {item.because[i], "", ""}));
      } else {
        because.push_back(item.because[i]);
      }
    }
    json signal = -1;
    if (!item.signal.empty()) signal = signals_.place(item.signal, item.signal);
    return {items_.place(item.item, {item.item, item.title, item.words}), digits(item.score),
            std::move(signal), std::move(because)};
  }

  Texts items_, signals_;
};

json to_json(const AttributeFigures& figures) {
  json shown = {{"run", figures.run},
                {"side", figures.side},
                {"trained", figures.trained},
                {"vertical", digits(figures.vertical)},
                {"horizontal", digits(figures.horizontal)},
                {"attributes", json::array()},
                {"edges", json::array()}};
  for (const ShownAttribute& attribute : figures.attributes) {
    shown["attributes"].push_back(
        {{"number", attribute.number},
         {"distance", digits(attribute.distance)},
         {"low", digits(attribute.low)},
         {"high", digits(attribute.high)},
         {"share", {digits_of(attribute.share[0]), digits_of(attribute.share[1])}},
         {"typical", {digits_of(attribute.typical[0]), digits_of(attribute.typical[1])}},
         {"plan", digits_of(attribute.plan)}});
  }
  for (const AttributionEdge& edge : figures.edges) {
    shown["edges"].push_back(
        {edge.from, edge.to, digits(edge.weight[kSource]), digits(edge.weight[kTarget])});
  }
  return shown;
}

json to_json(const MapSample& sample) {
  json shown = {
      {"side", sample.side}, {"sources", sample.rows[kSource].size()}, {"members", json::array()}};
  for (const MapSample::Member& member : sample.members) {
    shown["members"].push_back({member.id, member.title, member.words, member.sentence});
  }
  return shown;
}

// With the lists of the first `users`.
json to_json(const Report& report, std::size_t users) {
  json fields = {{"version", report.version},
                 {"comparison", cfaa::to_json(report.comparison)},
                 {"listed", report.listed},
                 {"users_to_choose_from", report.users_to_choose_from}};
  for (const char* name : {"curves", "sweeps", "groups", "item_classes", "item_shares", "gaps",
                           "samples", "maps", "figures", "weights", "hits", "users"}) {
    fields[name] = json::array();
  }
  // Metrics in the order asked for, which an object does not keep.
  for (const ComparedMetric& metric : report.comparison.rows[0].metrics) {
    fields["metrics"].push_back(metric.name);
  }
  for (const Curve& curve : report.curves) {
    fields["curves"].push_back({{"run", curve.run},
                                {"name", curve.name},
                                {"seed", curve.seed},
                                {"steps", curve.steps},
                                {"values", digits_of(curve.values)}});
  }
  for (const Sweep& sweep : report.sweeps) {
    json points = json::array();
    for (const Sweep::Point& point : sweep.points) {
      points.push_back({{"weight", point.weight},
                        {"run", point.run},
                        {"valid", point.valid},
                        {"test", point.test}});
    }
    fields["sweeps"].push_back({{"loss", sweep.loss},
                                {"other", sweep.other},
                                {"metric", sweep.metric},
                                {"valid_metric", sweep.valid_metric},
                                {"points", points}});
  }
  for (const UserGroup& group : report.groups) {
    fields["groups"].push_back({{"run", group.run},
                                {"group", group.group},
                                {"users", group.users},
                                {"mean", group.mean},
                                {"standard_error", group.standard_error}});
  }
  for (const ItemClass& of : report.item_classes) {
    fields["item_classes"].push_back(
        {{"name", of.name}, {"items", of.items}, {"held_out", of.held_out}});
  }
  for (const ItemShares& shares : report.item_shares) {
    fields["item_shares"].push_back({{"run", shares.run},
                                     {"top", shares.top},
                                     {"users", shares.users},
                                     {"recommended", shares.recommended},
                                     {"found", shares.found},
                                     {"coverage", shares.coverage}});
  }
  for (const DomainGap& gap : report.gaps) {
    fields["gaps"].push_back(
        {{"run", gap.run}, {"side", gap.side}, {"before", gap.before}, {"after", gap.after}});
  }
  for (const MapSample& sample : report.samples) fields["samples"].push_back(to_json(sample));
  for (const EmbeddingMap& map : report.maps) {
    json points = json::array();
    // Hundredths are less than a dot.
    for (const float value : map.points) points.push_back(std::round(value * 100) / 100.0);
    fields["maps"].push_back({{"run", map.run}, {"side", map.side}, {"points", points}});
  }
  for (const AttributeFigures& figures : report.figures) {
    fields["figures"].push_back(to_json(figures));
  }
  for (const ShownWeights& shown : report.weights) {
    json weights = json::array();
    for (const auto& [signal, weight] : shown.weights) weights.push_back({signal, weight});
    fields["weights"].push_back(
        {{"run", shown.run}, {"domain", shown.domain}, {"weights", weights}});
  }
  for (const SignalHits& hits : report.hits) {
    json of = json::array();
    for (const auto& [signal, count] : hits.hits) of.push_back({signal, count});
    fields["hits"].push_back({{"run", hits.run}, {"users", hits.users}, {"hits", of}});
  }
  const std::span<const ShownUser> some(report.users.data(), users);
  ListsAsJson lists(some);
  for (const ShownUser& user : some) fields["users"].push_back(lists.user(user));
  fields["items"] = lists.items();
  fields["signals"] = lists.signals();
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
  std::size_t users = report.users.size();
  std::string data = script_text(to_json(report, users));
  while (page.size() + data.size() > kMostPageBytes && users > 0) {
    users /= 2;
    data = script_text(to_json(report, users));
  }
  put("REPORT_DATA", data);
  return page;
}

}  // namespace cfaa
