#pragma once

// Numbers of trainings as lines: by step, and by the weight of a loss.

#include <cstdint>
#include <string>
#include <vector>

#include "host/run/compare.h"
#include "host/run/directory/run_directory.h"

namespace cfaa {

// A run, or the seeds of a folder of runs.
std::vector<RunDirectory> trainings(const std::string& run);

// A value of metrics.jsonl by step, of one training.
struct Curve {
  std::string run, name;  // "loss/vertical", "norm/gradient", "valid/NDCG@10"
  int64_t seed = 0;
  std::vector<double> steps, values;
};

// Of every training of every row that kept a log.
std::vector<Curve> read_curves(const Comparison& comparison);

// Runs that are alike but for the weight of one of the paper's losses (Figure 7).
struct Sweep {
  struct Point {
    double weight = 0;
    std::string run;
    std::vector<double> valid, test;  // by seed; `valid` is empty where it was not kept
  };
  std::string loss;    // "vertical": lambda_O, "horizontal": lambda_A
  double other = 0;    // the weight of the other
  std::string metric;  // of the test, the first of the request
  std::string valid_metric;
  std::vector<Point> points;  // two or more, by weight
};

// Of the runs in a folder (each a run, or a folder of seeds), which must be of the data of
// `request.runs`. Error where there is none, or none of them differ in such a weight alone.
std::vector<Sweep> read_sweeps(const std::string& folder, const CompareRequest& request);

}  // namespace cfaa
