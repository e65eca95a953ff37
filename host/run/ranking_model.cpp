#include "host/run/ranking_model.h"

#include "host/run/baseline/kept_baseline.h"
#include "host/run/directory/directory_kind.h"
#include "host/run/run.h"

namespace cfaa {

bool is_model(const std::filesystem::path& path) {
  const RunDirectory place(path);
  return place.is_run() || std::filesystem::exists(place.baseline());
}

std::unique_ptr<RankingModel> open_model(Context& context, const std::filesystem::path& path,
                                         const std::string& data) {
  const RunDirectory place(path);
  if (!place.is_run() && std::filesystem::exists(place.baseline())) {
    return std::make_unique<KeptBaseline>(context, place, data);
  }
  require_run(path);
  return std::make_unique<Run>(context, path, data);
}

}  // namespace cfaa
