#pragma once

// Runs, or kept baselines, opened to be asked by many: each domain's Recommender is shared by all
// workers, each of which has a Context of its own. A run that was replaced on disk is opened beside
// the one that is served and then takes its place; requests that run finish with the old one.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/serve/counters.h"
#include "host/serve/served.h"

namespace cfaa {

struct ServedRunsOptions {
  std::vector<std::string> runs;  // directories; a run is known by the last part of its path
  std::vector<std::string> domains = {"target"};  // "target", "source"
  std::string data;                               // overrides where the runs say that it is
  std::string encoder;  // folder of the model that reads newcomers' reviews, where a run needs one
  std::string device = "auto";
  int workers = 0;  // 0: as many as there are cores; a GPU has one
};

class ServedRuns final : public Served {
 public:
  // Error where a run cannot be opened.
  explicit ServedRuns(const ServedRunsOptions& options);
  ~ServedRuns() override;

  // Opens what was replaced since. A run that cannot be opened is named in the log once, and the
  // old one stays. Called by one thread.
  void reload(Counters& counters);

  int workers() const override;
  std::vector<ServedRun> runs() const override;
  Recommendation recommend(int worker, const Place& place, const std::string& user, int64_t top,
                           bool reasons) override;
  NewcomerList recommend(int worker, const Place& place, const std::vector<WrittenReview>& reviews,
                         int64_t top, bool reasons) override;
  std::vector<SimilarItem> similar(const Place& place, const std::string& item,
                                   int64_t top) override;
  std::vector<HistoryItem> history(const Place& place, const std::string& user) override;
  std::vector<NamedId> find(const Place& place, bool items, const std::string& text,
                            int64_t top) override;

 private:
  struct OpenRun;
  struct Slot;
  std::shared_ptr<const OpenRun> run(const std::string& name) const;

  ServedRunsOptions options_;
  std::unique_ptr<Context> opening_;  // of models, which keep it
  std::vector<std::unique_ptr<Context>> contexts_;
  mutable std::mutex mutex_;  // of what slots_ point to
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace cfaa
