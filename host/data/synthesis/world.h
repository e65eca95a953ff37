#pragma once

// The people and things of one synthetic domain: tastes, contents, popularity, and who reviews
// what. Texts are written from it in synthesis.cpp.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "host/core/philox.h"
#include "host/data/synthesis/synthesis.h"

namespace cfaa {

// A stream of random numbers that belongs to one thing (a user, an item) for one purpose: no draw
// depends on what was drawn for another.
class Draws {
 public:
  enum class Purpose : uint64_t { item = 1, user = 2, reviews = 3, activity = 4, mixing = 5 };

  Draws(uint64_t seed, bool target, Purpose purpose, uint64_t thing)
      : random_{seed},
        stream_((static_cast<uint64_t>(target) << 63) | (static_cast<uint64_t>(purpose) << 56) |
                thing) {}

  uint32_t word() {
    if (used_ == 4) {
      block_ = random_(next_++, stream_);
      used_ = 0;
    }
    return block_.word[used_++];
  }
  double uniform() { return (word() >> 8) * 0x1p-24; }  // in [0, 1)
  uint64_t below(uint64_t bound) { return (static_cast<uint64_t>(word()) * bound) >> 32; }
  // About N(0, 1): the sum of four uniforms, bounded, the same bits everywhere.
  double normal() {
    const double sum = uniform() + uniform() + uniform() + uniform();
    return (sum - 2) * 1.7320508075688772;
  }

 private:
  Philox random_;
  uint64_t stream_, next_ = 0;
  Philox::Block block_{};
  int used_ = 4;
};

// Weights over topics: most on a first, some on a second, the rest even.
struct TopicMixture {
  int first = 0, second = 0;
  float first_weight = 1, second_weight = 0, rest = 0;  // rest: for each topic

  float weight(int topic) const {
    return rest + (topic == first ? first_weight : 0) + (topic == second ? second_weight : 0);
  }
  int draw(Draws& draws, int topics) const;
};

struct SyntheticReview {
  int64_t user = 0, item = 0;
  int stars = 0;
  int64_t time = 0;  // milliseconds
};

class SyntheticDomain {
 public:
  SyntheticDomain(const SynthesisOptions& options, bool target);

  const TopicMixture& taste(int64_t user) const { return tastes_[user]; }
  const TopicMixture& content(int64_t item) const { return contents_[item]; }
  int64_t reviews_before(int64_t user) const { return first_review_[user]; }
  // What a user reviews: distinct items, in the order of drawing.
  void reviews_of(int64_t user, std::vector<SyntheticReview>& reviews) const;

  std::string user_id(int64_t user) const;
  std::string item_id(int64_t item) const;

 private:
  struct Shelf {  // items with a cumulative popularity
    std::vector<int32_t> items;
    std::vector<double> cumulative;
    int64_t draw(Draws& draws) const;
  };

  int stars_for(int64_t user, int64_t item, Draws& draws) const;

  SynthesisOptions options_;
  bool target_;
  std::vector<TopicMixture> tastes_, contents_;
  std::vector<float> quality_;  // of items
  std::vector<Shelf> by_topic_;
  Shelf all_;
  std::vector<int64_t> first_review_;  // users + 1
};

}  // namespace cfaa
