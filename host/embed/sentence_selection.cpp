#include "host/embed/sentence_selection.h"

#include <algorithm>
#include <limits>

#include "host/core/error.h"
#include "host/core/philox.h"

namespace cfaa {
namespace {

// Streams of the entity's random numbers: the index is the number of the draw.
constexpr uint64_t kSelectionStream = uint64_t{0x5e1} << 48;

// K centroids, column by column, so that the distances of a sentence to all of them are sums over
// adjacent numbers, always added in the same order.
class Clusters {
 public:
  Clusters(MatrixView<const float> vectors, int64_t clusters)
      : x_(vectors),
        k_(clusters),
        centroid_(static_cast<std::size_t>(clusters * vectors.cols())),
        cluster_of_(static_cast<std::size_t>(vectors.rows()), -1),
        distance_(static_cast<std::size_t>(clusters)) {}

  // k-means++: each further centroid is a sentence drawn by its squared distance from those there.
  void start(const Philox& random, uint64_t stream) {
    const int64_t n = x_.rows();
    std::vector<double> nearest(static_cast<std::size_t>(n),
                                std::numeric_limits<double>::infinity());
    auto chosen = static_cast<int64_t>(random.below(static_cast<uint64_t>(n), 0, stream));
    for (int64_t k = 0;; ++k) {
      set(k, chosen);
      if (k + 1 == k_) return;
      double total = 0;
      for (int64_t i = 0; i < n; ++i) {
        auto& known = nearest[static_cast<std::size_t>(i)];
        known = std::min(known, between(i, chosen));
        total += known;
      }
      const double wanted =
          static_cast<double>(random.uniform(static_cast<uint64_t>(k) + 1, stream)) * total;
      double passed = 0;
      chosen = 0;  // where all sentences are equal to some centroid
      for (int64_t i = 0; i < n; ++i) {
        const double share = nearest[static_cast<std::size_t>(i)];
        if (share <= 0) continue;
        chosen = i;
        passed += share;
        if (passed > wanted) break;
      }
    }
  }

  // Puts every sentence to its nearest centroid; false where none changed.
  bool assign() {
    bool changed = false;
    for (int64_t i = 0; i < x_.rows(); ++i) {
      const std::vector<float>& distance = distances(i);
      const auto best = static_cast<int64_t>(std::min_element(distance.begin(), distance.end()) -
                                             distance.begin());
      changed = changed || cluster_of_[static_cast<std::size_t>(i)] != best;
      cluster_of_[static_cast<std::size_t>(i)] = best;
    }
    return changed;
  }

  // Moves every centroid to the mean of its sentences; one without any stays.
  void move() {
    std::vector<double> sum(centroid_.size());
    std::vector<int64_t> count(static_cast<std::size_t>(k_));
    for (int64_t i = 0; i < x_.rows(); ++i) {
      const int64_t k = cluster_of_[static_cast<std::size_t>(i)];
      ++count[static_cast<std::size_t>(k)];
      for (int64_t c = 0; c < x_.cols(); ++c) {
        sum[static_cast<std::size_t>(c * k_ + k)] += static_cast<double>(x_(i, c));
      }
    }
    for (std::size_t at = 0; at < sum.size(); ++at) {
      const int64_t members = count[at % static_cast<std::size_t>(k_)];
      if (members > 0) centroid_[at] = static_cast<float>(sum[at] / static_cast<double>(members));
    }
  }

  // For each centroid the nearest sentence that is not taken yet.
  std::vector<int32_t> nearest_sentences() {
    std::vector<float> all(static_cast<std::size_t>(x_.rows() * k_));
    for (int64_t i = 0; i < x_.rows(); ++i) {
      const std::vector<float>& distance = distances(i);
      std::copy(distance.begin(), distance.end(), all.begin() + i * k_);
    }
    std::vector<char> taken(static_cast<std::size_t>(x_.rows()));
    std::vector<int32_t> chosen;
    for (int64_t k = 0; k < k_; ++k) {
      int64_t best = -1;
      for (int64_t i = 0; i < x_.rows(); ++i) {
        if (taken[static_cast<std::size_t>(i)]) continue;
        if (best < 0 || all[static_cast<std::size_t>(i * k_ + k)] <
                            all[static_cast<std::size_t>(best * k_ + k)]) {
          best = i;
        }
      }
      taken[static_cast<std::size_t>(best)] = 1;
      chosen.push_back(static_cast<int32_t>(best));
    }
    return chosen;
  }

 private:
  void set(int64_t k, int64_t sentence) {
    for (int64_t c = 0; c < x_.cols(); ++c) {
      centroid_[static_cast<std::size_t>(c * k_ + k)] = x_(sentence, c);
    }
  }

  double between(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t c = 0; c < x_.cols(); ++c) {
      const double difference = static_cast<double>(x_(i, c)) - static_cast<double>(x_(j, c));
      sum += difference * difference;
    }
    return sum;
  }

  // Squared, of one sentence to every centroid.
  const std::vector<float>& distances(int64_t i) {
    std::fill(distance_.begin(), distance_.end(), 0.0f);
    for (int64_t c = 0; c < x_.cols(); ++c) {
      const float value = x_(i, c);
      const float* centroid = centroid_.data() + c * k_;
      for (int64_t k = 0; k < k_; ++k) {
        const float difference = value - centroid[k];
        distance_[static_cast<std::size_t>(k)] += difference * difference;
      }
    }
    return distance_;
  }

  MatrixView<const float> x_;
  int64_t k_;
  std::vector<float> centroid_;  // (width, K)
  std::vector<int64_t> cluster_of_;
  std::vector<float> distance_;  // (K)
};

}  // namespace

std::vector<int32_t> select_sentences(MatrixView<const float> vectors,
                                      const SelectionOptions& options, uint64_t entity) {
  CFAA_ASSERT(options.share > 0 && options.share <= 1 && options.iterations >= 0);
  const int64_t n = vectors.rows();
  if (n == 0) return {};
  const auto clusters =
      std::max<int64_t>(static_cast<int64_t>(options.share * static_cast<double>(n)), 1);

  Clusters state(vectors, clusters);
  state.start(Philox{options.seed}, kSelectionStream + entity);
  for (int64_t i = 0; i < options.iterations && state.assign(); ++i) state.move();

  std::vector<int32_t> chosen = state.nearest_sentences();
  chosen.push_back(0);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

}  // namespace cfaa
