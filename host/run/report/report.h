#pragma once

// What there is to see of one or several runs on the same data, collected for a page: the
// comparison, groups of users, learning curves, maps of embeddings, weights of signals, lists.
//
//   const Report report = make_report(*context, {.runs = {"run", "baseline"}});
//   write(report_page(report));   // one HTML file that loads nothing

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "host/core/context.h"
#include "host/run/compare.h"
#include "host/run/recommend.h"
#include "host/run/report/embedding_map.h"

namespace cfaa {

struct ReportRequest {
  std::vector<std::string> runs;  // as for compare_runs()
  std::vector<std::string> metrics = {"NDCG@10", "Recall@10", "HR@10", "MRR@10"};
  std::string domain = "target";
  std::string data;         // overrides where the runs say that their data is
  int64_t users = 200;      // whose lists are shown, drawn at random where there are more
  RecommendRequest list{};  // its length
};

// A value of metrics.jsonl by step, of one training.
struct Curve {
  std::string run, name;  // "loss/vertical", "norm/gradient", "valid/NDCG@10"
  int64_t seed = 0;
  std::vector<double> steps, values;
};

// The first metric of the request, over users who have about as much of a history.
struct UserGroup {
  std::string run, group;  // "1 to 4 interactions"
  int64_t users = 0;
  double mean = 0, standard_error = 0;
};

struct ShownWeights {
  std::string run, domain;
  std::vector<std::pair<std::string, double>> weights;  // of the signals, none of which is negative
};

struct ShownItem {
  std::string item, title;
};

struct ShownUser {
  std::string user;
  std::vector<ShownItem> history, held_out;  // of training, and of the test split
  std::vector<Recommendation> lists;         // in the order of Report::listed
};

struct Report {
  std::string version;
  Comparison comparison;
  std::vector<Curve> curves;
  std::vector<UserGroup> groups;
  std::vector<ShownWeights> weights;
  std::vector<EmbeddingMap> maps;   // of runs that embed both domains
  std::vector<std::string> listed;  // runs that can be opened again, of several seeds the first
  std::vector<ShownUser> users;     // drawn from those with something held out
  int64_t users_to_choose_from = 0;
};

// Error as compare_runs() has them, and where the data is no longer what a run was trained on.
Report make_report(Context& context, const ReportRequest& request);

// The report as one HTML page, which holds its data, script and style. Whatever a user or an item
// is called, and whatever a review says, stays text.
std::string report_page(const Report& report);

// How such a page begins, for whom it may be replaced.
inline constexpr const char* kReportBeginning = "<!doctype html>\n<!-- cfaa_gpu report -->";

}  // namespace cfaa
