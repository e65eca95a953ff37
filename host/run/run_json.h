#pragma once

// The structs of host/run as JSON: what --json prints, result.json keeps, and a server answers.
// Apart from them, so that whoever links the library needs no JSON.

#include <nlohmann/json.hpp>

#include "host/run/baseline/measure_baseline.h"
#include "host/run/compare.h"
#include "host/run/discrepancy.h"
#include "host/run/evaluate.h"
#include "host/run/export.h"
#include "host/run/newcomers.h"
#include "host/run/recommend.h"
#include "host/run/result.h"

namespace cfaa {

nlohmann::json to_json(const RunResult& result);
nlohmann::json to_json(const EvaluationReport& report);
nlohmann::json to_json(const BaselineReport& report);
nlohmann::json to_json(const Comparison& comparison);
nlohmann::json to_json(const Discrepancy& discrepancy);
nlohmann::json to_json(const RunDiscrepancy& discrepancy);
nlohmann::json to_json(const Recommendation& list);
nlohmann::json to_json(const NewUserLists& made, const std::string& domain);
nlohmann::json to_json(const ExportReport& report);

}  // namespace cfaa
