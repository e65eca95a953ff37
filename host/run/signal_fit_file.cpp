#include "host/run/signal_fit_file.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 2> kDomainNames = {"source", "target"};

// JSON has no infinity: the source alone is "only", as in the configuration.
json prior_to_json(double edges) {
  return std::isfinite(edges) ? json(edges) : json("only");
}

double prior_from_json(const json& value) {
  return value.is_string() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

}  // namespace

void write_signal_fit(const RunDirectory& run, const SignalFit& fit) {
  json file;
  for (const std::size_t d : {kSource, kTarget}) {
    json& weights = file["weights"][kDomainNames[d]] = json::array();
    for (const SignalWeight& w : fit.weights[d]) {
      weights.push_back({{"signal", name_of(w.name)}, {"weight", w.weight}});
    }
  }
  for (const SignalFit::Tried& tried : fit.tried) {
    file["tried"].push_back({{"prior", prior_to_json(tried.edges)},
                             {"valid_ndcg", tried.valid},
                             {"ahead_of_100", tried.ahead},
                             {"standard_error", tried.error}});
  }
  file["prior"] = prior_to_json(fit.prior);
  if (fit.beside_popularity) {
    file["beside_popularity"] = {{"ahead", fit.beside_popularity->ahead},
                                 {"standard_error", fit.beside_popularity->error},
                                 {"popularity_taken", fit.beside_popularity->taken}};
  }
  if (fit.residual) {
    json& residual = file["residual"] = {{"beta", fit.residual->beta}, {"tried", json::array()}};
    for (const ResidualShare::Tried& tried : fit.residual->tried) {
      residual["tried"].push_back({{"beta", tried.beta},
                                   {"valid_ndcg", tried.valid},
                                   {"ahead_of_0", tried.ahead},
                                   {"standard_error", tried.error}});
    }
  }
  write_file(run.signals().string(), file.dump(2) + "\n");
}

SignalFit read_signal_fit(const RunDirectory& run) {
  const std::string path = run.signals().string();
  const json file = read_json(path);
  try {
    SignalFit fit;
    for (const std::size_t d : {kSource, kTarget}) {
      for (const json& w : file.at("weights").at(kDomainNames[d])) {
        fit.weights[d].push_back(
            {signal_by_name(w.at("signal").get<std::string>()), w.at("weight").get<double>()});
      }
    }
    for (const json& tried : file.at("tried")) {
      fit.tried.push_back({prior_from_json(tried.at("prior")), tried.value("valid_ndcg", 0.0),
                           tried.value("ahead_of_100", 0.0), tried.value("standard_error", 0.0)});
    }
    fit.prior = prior_from_json(file.at("prior"));
    if (file.contains("beside_popularity")) {
      const json& beside = file.at("beside_popularity");
      fit.beside_popularity = {beside.at("ahead").get<double>(),
                               beside.at("standard_error").get<double>(),
                               beside.at("popularity_taken").get<bool>()};
    }
    if (file.contains("residual")) {
      const json& residual = file.at("residual");
      fit.residual = ResidualShare{residual.at("beta").get<double>(), {}};
      for (const json& tried : residual.at("tried")) {
        fit.residual->tried.push_back(
            {tried.at("beta").get<double>(), tried.at("valid_ndcg").get<double>(),
             tried.at("ahead_of_0").get<double>(), tried.at("standard_error").get<double>()});
      }
    }
    return fit;
  } catch (const json::exception&) {
    throw Error(path + ": is not what train writes; train again with --fresh");
  }
}

}  // namespace cfaa
