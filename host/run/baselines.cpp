#include "host/run/baselines.h"

#include <algorithm>
#include <cmath>

namespace cfaa {

OptionSet baseline_option_set(BaselineOptions& options) {
  OptionSet set("baseline");
  set.add("neighbours", options.neighbours, "itemknn: most similar items that vote for an item",
          at_least(1));
  set.add("shrink", options.shrink, "itemknn: added to the similarity's denominator", at_least(0));
  set.add("dim", options.dim, "mf: attributes", between(1, 4096));
  set.add("learning_rate", options.learning_rate, "mf: learning rate of Adam", positive());
  set.add("weight_decay", options.weight_decay, "mf: decoupled, times the learning rate",
          at_least(0));
  set.add("epochs", options.epochs, "mf: maximum number of epochs", at_least(1));
  set.add("batch_size", options.batch_size, "mf: positives in a step", between(1, 65536));
  set.add("negatives", options.negatives, "mf: sampled negatives of a positive", between(1, 64));
  set.add("patience", options.patience,
          "mf: validations without a better one before it stops; 0: never", at_least(0));
  set.add("seed", options.seed, "mf: random seed", at_least(0));
  return set;
}

UserItems training_positives(const Domain& domain) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  const SplitRows& train = domain.train;
  for (std::size_t row = 0; row < train.user.size(); ++row) {
    if (train.label[row] > 0) pairs.emplace_back(train.user[row], train.item[row]);
  }
  return make_user_items(domain.users.size(), std::move(pairs));
}

DomainEmbeddings popularity_embeddings(const Domain& domain) {
  DomainEmbeddings embeddings;
  embeddings.dim = 1;
  embeddings.count = {domain.users.size(), domain.items.size()};
  embeddings.z[kUser].assign(static_cast<std::size_t>(domain.users.size()), 1.0f);
  embeddings.z[kItem].assign(static_cast<std::size_t>(domain.items.size()), 0.0f);
  for (const int32_t item : training_positives(domain).item) {
    embeddings.z[kItem][static_cast<std::size_t>(item)] += 1.0f;
  }
  return embeddings;
}

ItemNeighbours::ItemNeighbours(Context& context, const Domain& domain,
                               const BaselineOptions& options)
    : items_(domain.items.size()), liked_(training_positives(domain)) {
  std::vector<std::pair<int32_t, int32_t>> turned;
  for (int32_t user = 0; user < liked_.users(); ++user) {
    for (const int32_t item : liked_.of(user)) turned.emplace_back(item, user);
  }
  const UserItems likers = make_user_items(items_, std::move(turned));

  // Each item's neighbours, by one pass over its users' items.
  std::vector<std::vector<Similar>> neighbours(static_cast<std::size_t>(items_));
  context.threads().parallel_for(items_, 64, [&](int64_t begin, int64_t end, int) {
    std::vector<int32_t> together(static_cast<std::size_t>(items_)), met;
    for (int64_t i = begin; i < end; ++i) {
      met.clear();
      for (const int32_t user : likers.of(i)) {
        for (const int32_t j : liked_.of(user)) {
          if (j != i && together[static_cast<std::size_t>(j)]++ == 0) met.push_back(j);
        }
      }
      std::vector<Similar>& similar = neighbours[static_cast<std::size_t>(i)];
      const auto n_i = static_cast<double>(likers.of(i).size());
      for (const int32_t j : met) {
        const auto n_j = static_cast<double>(likers.of(j).size());
        int32_t& both = together[static_cast<std::size_t>(j)];
        similar.push_back({j, static_cast<float>(both / (std::sqrt(n_i * n_j) + options.shrink))});
        both = 0;
      }
      const auto kept = static_cast<std::ptrdiff_t>(
          std::min(options.neighbours, static_cast<int64_t>(similar.size())));
      std::partial_sort(similar.begin(), similar.begin() + kept, similar.end(),
                        [](const Similar& a, const Similar& b) {
                          return a.similarity != b.similarity ? a.similarity > b.similarity
                                                              : a.item < b.item;
                        });
      similar.resize(static_cast<std::size_t>(kept));
      similar.shrink_to_fit();
    }
  });

  offset_.assign(static_cast<std::size_t>(items_) + 1, 0);
  for (const auto& similar : neighbours) {
    for (const Similar& s : similar) ++offset_[static_cast<std::size_t>(s.item) + 1];
  }
  for (std::size_t i = 1; i < offset_.size(); ++i) offset_[i] += offset_[i - 1];
  voted_for_.resize(static_cast<std::size_t>(offset_.back()));
  std::vector<int64_t> next(offset_.begin(), offset_.end() - 1);
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    for (const Similar& s : neighbours[i]) {
      voted_for_[static_cast<std::size_t>(next[static_cast<std::size_t>(s.item)]++)] = {
          static_cast<int32_t>(i), s.similarity};
    }
  }
}

void ItemNeighbours::add_votes(int32_t user, int64_t first, int64_t last, double* votes) const {
  for (const int32_t j : liked_.of(user)) {
    const auto begin = voted_for_.begin() + offset_[static_cast<std::size_t>(j)];
    const auto end = voted_for_.begin() + offset_[static_cast<std::size_t>(j) + 1];
    auto at = std::lower_bound(begin, end, first,
                               [](const Similar& s, int64_t item) { return s.item < item; });
    for (; at != end && at->item < last; ++at) votes[at->item - first] += at->similarity;
  }
}

std::unique_ptr<Scorer> ItemNeighbours::scorer() const {
  const auto block = [this](Context& context, std::span<const int32_t> users, int64_t first,
                            int64_t last, MatrixView<float> scores) {
    const int64_t width = last - first;
    std::vector<float> filled(users.size() * static_cast<std::size_t>(width));
    context.threads().parallel_for(
        static_cast<int64_t>(users.size()), 16, [&](int64_t begin, int64_t end, int) {
          std::vector<double> votes(static_cast<std::size_t>(width));
          for (int64_t r = begin; r < end; ++r) {
            std::fill(votes.begin(), votes.end(), 0.0);
            add_votes(users[static_cast<std::size_t>(r)], first, last, votes.data());
            std::copy(votes.begin(), votes.end(), filled.begin() + r * width);
          }
        });
    context.runtime().copy_from_host(scores.data, filled.data(), filled.size() * sizeof(float));
    context.runtime().synchronize();
  };
  const auto pairs = [this](int32_t user, std::span<const int32_t> items, double* scores) {
    std::vector<double> votes(static_cast<std::size_t>(items_));
    add_votes(user, 0, items_, votes.data());
    for (std::size_t i = 0; i < items.size(); ++i) {
      scores[i] = static_cast<float>(votes[static_cast<std::size_t>(items[i])]);
    }
  };
  return std::make_unique<BlockScorer>(liked_.users(), items_, block, pairs);
}

}  // namespace cfaa
