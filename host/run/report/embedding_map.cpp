#include "host/run/report/embedding_map.h"

#include <numeric>

#include "host/eval/tsne.h"
#include "host/run/report/drawn_rows.h"

namespace cfaa {
namespace {

std::vector<int64_t> all_rows(const IdList& ids) {
  std::vector<int64_t> rows(static_cast<std::size_t>(ids.size()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

}  // namespace

std::vector<EmbeddingMap> map_embeddings(Context& context, RankingModel& model, int64_t most) {
  if (model.domains().size() != 2) return {};
  const bool of_signals = model.signals(kTarget) != nullptr && model.residual_share() == 0;
  if (of_signals) return {};
  const DomainEmbeddings embeddings[2] = {model.embed(kSource), model.embed(kTarget)};
  if (embeddings[kSource].dim == 0 || embeddings[kTarget].dim == 0) return {};

  std::vector<EmbeddingMap> maps;
  for (const std::size_t side : {kUser, kItem}) {
    EmbeddingMap& map = maps.emplace_back();
    map.side = side == kUser ? "users" : "items";
    map.proxy =
        proxy_distance(context, embeddings[kSource].view(side), embeddings[kTarget].view(side));
    std::vector<float> rows;
    for (const std::size_t which : {kSource, kTarget}) {
      const Domain& domain = model.domain(which);
      const IdList& ids = side == kUser ? domain.users : domain.items;
      const MatrixView<const float> all = embeddings[which].view(side);
      const KeyedDraw draw("map", domain.name, 0);
      for (const int64_t row : drawn_rows(all_rows(ids), ids, draw, most)) {
        map.ids.emplace_back(ids[row]);
        map.from_target.push_back(which == kTarget);
        rows.insert(rows.end(), all.data + row * all.shape[1], all.data + (row + 1) * all.shape[1]);
      }
    }
    map.points =
        tsne(context, {rows.data(), {std::ssize(map.ids), embeddings[kTarget].dim}}).points;
  }
  return maps;
}

}  // namespace cfaa
