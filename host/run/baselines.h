#pragma once

// What a user already has: models without reviews and without a second domain, as reference rows
// under the same protocol (`cfaa_gpu baseline`). They learn from the positives of a domain's
// training split.
//
//   popularity   score(u, i) = users who liked i
//   itemknn      score(u, i) = sum of s(i, j) over the items j that u liked and that are among the
//                `neighbours` items most similar to i, with
//                s(i, j) = users who liked both / (sqrt(n_i n_j) + shrink)
//   mf           matrix factorisation with a pairwise loss: host/run/matrix_factorization.h

#include <cstdint>
#include <memory>
#include <vector>

#include "host/core/context.h"
#include "host/core/options.h"
#include "host/data/dataset.h"
#include "host/eval/scorer.h"
#include "host/train/trained_model.h"

namespace cfaa {

// Defaults by validation on Digital Music, Musical Instruments and a synthetic target: weight decay
// 1e-4 ... 16, shrink 0 ... 100. A row of a table decays only when touched, hence the large decay.
struct BaselineOptions {
  // itemknn
  int64_t neighbours = 100;
  double shrink = 50;
  // mf
  int64_t dim = 64;
  double learning_rate = 1e-3;
  double weight_decay = 4;
  int64_t epochs = 200;
  int64_t batch_size = 256;
  int64_t negatives = 4;
  int64_t patience = 20;
  int64_t seed = 0;
};

// Keys of the command's flags, such as --weight-decay.
OptionSet baseline_option_set(BaselineOptions& options);

// Items that each user liked in training.
UserItems training_positives(const Domain& domain);

// Embeddings of one attribute, whose product is the popularity.
DomainEmbeddings popularity_embeddings(const Domain& domain);

class ItemNeighbours {
 public:
  ItemNeighbours(Context& context, const Domain& domain, const BaselineOptions& options);

  // Valid as long as this object.
  std::unique_ptr<Scorer> scorer() const;

 private:
  struct Similar {
    int32_t item;
    float similarity;
  };
  // Adds the votes of the user's items for items first ... last - 1 to `votes` (last - first).
  void add_votes(int32_t user, int64_t first, int64_t last, double* votes) const;

  int64_t items_;
  UserItems liked_;
  // By the item j that votes: the items i that have it among their neighbours, ascending.
  std::vector<int64_t> offset_;
  std::vector<Similar> voted_for_;
};

}  // namespace cfaa
