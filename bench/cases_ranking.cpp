#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "bench/cases.h"
#include "bench/reference/inputs.h"
#include "bench/reference/rankings.h"
#include "bench/validate.h"
#include "host/core/tensor.h"
#include "host/eval/scorer.h"
#include "host/ops/top_k.h"
#include "host/train/trained_model.h"

namespace cfaa::bench {
namespace {

using reference::normal;

constexpr int64_t kListLength = 20;
constexpr int64_t kMostMaskedItems = 20;  // of a user

struct RankingData {
  RankingData(int64_t users, int64_t items, int64_t d)
      : factors(reference::random_factors<float>(users, items, d, 80)),
        scorer(factors.scorer()),
        all(reference::all_users(users)),
        masked(reference::random_items(users, items, kMostMaskedItems, 81)) {}

  reference::Factors<float> factors;
  DotScorer<float> scorer;
  std::vector<int32_t> all;
  UserItems masked;
};

Case ranking_case(Context& context, const std::shared_ptr<RankingData>& data) {
  Case c;
  c.name = "ranking";
  c.detail = fmt::format("{} users x {} items, exact top {}", data->scorer.users(),
                         data->scorer.items(), kListLength);
  c.run = [data, &context] {
    data->scorer.rank(context, data->all, data->masked, {.k = kListLength});
  };
  c.validate = [data, &context]() -> std::string {
    const Lists lists = data->scorer.rank(context, data->all, data->masked, {.k = kListLength});
    for (const std::size_t user : {std::size_t{0}, lists.user.size() - 1}) {
      const auto list = lists.of(user);
      const Lists expected = reference::sorted_lists(
          {lists.user[user]}, data->factors.items, data->masked, kListLength,
          [&](int32_t row, int32_t item) { return data->factors.score(row, item); });
      if (!std::equal(list.begin(), list.end(), expected.item.begin(), expected.item.end())) {
        return fmt::format("the list of user {} differs from sorting", lists.user[user]);
      }
    }
    return "";
  };
  return c;
}

// The products alone, a block of items at a time over all users.
Case products_case(Context& context, const std::shared_ptr<RankingData>& data, int64_t d) {
  struct Matrices {
    Tensor<float, 2> u, v, scores;
  };
  const int64_t users = data->scorer.users(), items = data->scorer.items();
  const int64_t block = std::min<int64_t>(items, 4096);
  const auto matrices =
      std::make_shared<Matrices>(Matrices{{context, {users, d}, data->factors.u.data()},
                                          {context, {items, d}, data->factors.v.data()},
                                          {context, {users, block}}});
  Case c;
  c.name = "ranking_products";
  c.detail = fmt::format("the bare GEMM of {} x {} x {}", users, items, d);
  c.run = [matrices, &context, users, items, block, d] {
    for (int64_t first = 0; first < items; first += block) {
      const int64_t count = std::min(block, items - first);
      dot_scores(context, matrices->u.view(), {matrices->v.view().data + first * d, {count, d}},
                 {matrices->scores.view().data, {users, count}});
    }
  };
  c.validate = [matrices, data, run = c.run, items, block]() -> std::string {
    run();
    const int64_t first = (items - 1) / block * block;
    std::vector<int32_t> last(static_cast<std::size_t>(items - first));
    std::iota(last.begin(), last.end(), static_cast<int32_t>(first));
    std::vector<double> expected(last.size());
    data->scorer.score(0, last, expected.data());
    const auto scores = matrices->scores.to_host();
    const std::vector<double> found(scores.begin(),
                                    scores.begin() + static_cast<std::ptrdiff_t>(last.size()));
    const double error = relative_error(found, expected);
    return error <= 1e-5 ? "" : fmt::format("off by {:.1e} from double", error);
  };
  return c;
}

// The default scorer, an MLP of one hidden layer with the dot product, as `evaluate run/` ranks.
struct MlpRanking {
  MlpRanking(int64_t users, int64_t items, int64_t d) : all(static_cast<std::size_t>(users)) {
    std::iota(all.begin(), all.end(), 0);
    embeddings.dim = d;
    embeddings.count = {users, items};
    embeddings.z = {normal<float>(users * d, 82, 0, 0.4), normal<float>(items * d, 83, 0, 0.4)};
    const double spread = 1 / std::sqrt(static_cast<double>(d));
    arrays.dot = true;
    arrays.layers = {{kHidden, 2 * d, normal<float>(kHidden * 2 * d, 84, 0, spread),
                      normal<float>(kHidden, 85, 0, 0.1)},
                     {1, kHidden, normal<float>(kHidden, 86, 0, 1), {0.1f}}};
    nothing.offset.assign(static_cast<std::size_t>(users) + 1, 0);
  }

  // The first layer's halves included.
  Lists rank(Context& context) const {
    return make_scorer(context, embeddings, arrays)
        ->rank(context, all, nothing, {.k = kListLength});
  }

  static constexpr int64_t kHidden = 64;
  std::vector<int32_t> all;
  DomainEmbeddings embeddings;
  ScorerArrays arrays;
  UserItems nothing;  // masked
};

// Scores are in float, so neighbours in a list may stand the other way round than in double.
std::string check_mlp_lists(Context& context, const MlpRanking& data) {
  const Lists lists = data.rank(context);
  const auto scorer = make_scorer(context, data.embeddings, data.arrays);
  std::vector<int32_t> items(static_cast<std::size_t>(scorer->items()));
  std::iota(items.begin(), items.end(), 0);
  std::vector<double> best(items.size()), listed(static_cast<std::size_t>(kListLength));
  for (const std::size_t user : {std::size_t{0}, lists.user.size() - 1}) {
    scorer->score(lists.user[user], items, best.data());
    scorer->score(lists.user[user], lists.of(user), listed.data());
    std::sort(best.begin(), best.end(), std::greater<>());
    for (std::size_t i = 0; i < listed.size(); ++i) {
      if (!(std::abs(listed[i] - best[i]) <= 1e-4 * std::abs(best[i]))) {
        return fmt::format("place {} of user {} has the score {} where sorting has {}", i,
                           lists.user[user], listed[i], best[i]);
      }
    }
  }
  return "";
}

Case mlp_ranking_case(Context& context, int64_t users, int64_t items, int64_t d) {
  const auto data = std::make_shared<MlpRanking>(users, items, d);
  Case c;
  c.name = "ranking_mlp";
  c.detail = fmt::format("{} users x {} items, {} hidden units and dot, top {}", users, items,
                         MlpRanking::kHidden, kListLength);
  c.work.flops =
      static_cast<double>(users * items) * static_cast<double>(2 * d + 3 * MlpRanking::kHidden);
  c.run = [data, &context] { data->rank(context); };
  c.validate = [data, &context] { return check_mlp_lists(context, *data); };
  return c;
}

}  // namespace

std::vector<Case> ranking_cases(Context& context, const Sizes& sizes) {
  const int64_t users = 16 * sizes.n, items = 195 * sizes.n;
  const auto data = std::make_shared<RankingData>(users, items, sizes.d);
  std::vector<Case> cases = {ranking_case(context, data), products_case(context, data, sizes.d)};
  for (Case& c : cases) c.work.flops = 2.0 * static_cast<double>(users * items * sizes.d);
  cases.push_back(mlp_ranking_case(context, 39 * sizes.n, 31 * sizes.n, sizes.d));
  return cases;
}

}  // namespace cfaa::bench
