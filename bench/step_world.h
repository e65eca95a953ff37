#pragma once

// Two domains in memory to time training steps on: synthetic interactions with a long tail of
// popular items, and review vectors that are random numbers. No files.

#include <cstdint>
#include <memory>

#include "host/train/batch_assembler.h"

namespace cfaa::bench {

struct DomainSize {
  int64_t users, items, interactions;
};

class StepWorld {
 public:
  // review_dim 0: without reviews. Reviews are float16, as `embed --dtype float16` writes them:
  // 2 review_dim bytes for each interaction, besides 4 for each user and item.
  StepWorld(DomainSize source, DomainSize target, int64_t review_dim, ReviewScale scale);

  const TrainingData& data() const { return data_; }

 private:
  Dataset dataset_;
  TrainingData data_;
};

}  // namespace cfaa::bench
