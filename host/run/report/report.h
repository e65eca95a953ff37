#pragma once

// What there is to see of one or several runs on the same data, collected for a page: the
// comparison, groups of users and of items, learning curves, sweeps, how far apart the domains are
// before and after training and in which attributes, maps of embeddings, weights of signals, lists.
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
#include "host/run/report/attribute_figures.h"
#include "host/run/report/curves.h"
#include "host/run/report/embedding_map.h"
#include "host/run/report/item_shares.h"

namespace cfaa {

struct ReportRequest {
  std::vector<std::string> runs;  // as for compare_runs()
  std::vector<std::string> metrics = {"NDCG@10", "Recall@10", "HR@10", "MRR@10"};
  std::string domain = "target";
  std::string data;         // overrides where the runs say that their data is
  std::string sweep;        // a folder of runs that differ in the weight of a loss; "": none
  int64_t users = 200;      // whose lists are shown, drawn at random where there are more
  RecommendRequest list{};  // its length
};

// The first metric of the request, over users who have about as much of a history.
struct UserGroup {
  std::string run, group;  // "3 or 4 interactions"
  int64_t users = 0;
  double mean = 0, standard_error = 0;
};

// How well a classifier tells the domains apart, by seed.
struct DomainGap {
  std::string run, side;              // "users", "items"
  std::vector<double> before, after;  // proxy A-distances of the embeddings, untrained and trained
};

struct EmbeddingMap {
  std::string run, side;
  std::vector<float> points;  // (members of the side's sample, 2)
};

struct ShownWeights {
  std::string run, domain;
  std::vector<std::pair<std::string, double>> weights;  // of the signals, none of which is negative
};

// Held-out items in the lists of some users, by what raised them most.
struct SignalHits {
  std::string run;
  int64_t users = 0;
  std::vector<std::pair<std::string, int64_t>> hits;  // the most first
};

struct ShownItem {
  std::string item, title;
  std::string words;  // what the user wrote of it
};

struct ShownUser {
  std::string user;
  std::vector<ShownItem> history, validation, held_out;  // of the three splits, what was liked
  std::vector<Recommendation> lists;                     // in the order of Report::listed
};

struct Report {
  std::string version;
  Comparison comparison;
  std::vector<Curve> curves;
  std::vector<Sweep> sweeps;
  std::vector<UserGroup> groups;
  std::vector<ItemClass> item_classes;
  std::vector<ItemShares> item_shares;
  // Of runs that embed both domains; of several seeds the first, the gaps aside.
  std::vector<DomainGap> gaps;
  std::vector<MapSample> samples;  // users, items
  std::vector<EmbeddingMap> maps;
  std::vector<AttributeFigures> figures;
  std::vector<ShownWeights> weights;
  std::vector<SignalHits> hits;
  std::vector<std::string> listed;  // runs that can be opened again, of several seeds the first
  std::vector<ShownUser> users;     // drawn from those with something held out
  int64_t users_to_choose_from = 0;
};

// Error as compare_runs() and read_sweeps() have them, and where the data is no longer what a run
// was trained on.
Report make_report(Context& context, const ReportRequest& request);

// A page is at most this long: users at the end are left out of the lists of one that would not be.
inline constexpr std::size_t kMostPageBytes = 10'000'000;

// The report as one HTML page, which holds its data, script and style. Whatever a user or an item
// is called, and whatever a review says, stays text.
std::string report_page(const Report& report);

// How such a page begins, for whom it may be replaced.
inline constexpr const char* kReportBeginning = "<!doctype html>\n<!-- cfaa_gpu report -->";

}  // namespace cfaa
