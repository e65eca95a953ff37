#include "host/run/ranking_model.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/run/baseline/kept_baseline.h"
#include "host/run/directory/directory_kind.h"
#include "host/run/run.h"

namespace cfaa {

DomainEmbeddings RankingModel::embed_later(Context&, std::size_t, std::size_t,
                                           std::span<const LaterEntity>) {
  throw Error(fmt::format("{}: a baseline has no lists for newcomers; give a run that train wrote",
                          directory().name()));
}

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
