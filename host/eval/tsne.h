#pragma once

// t-SNE (van der Maaten and Hinton, JMLR '08): points in the plane whose neighbours are those of
// rows in many dimensions. Of a few thousand rows every pair's force is added up; of more, those of
// far points come by Barnes and Hut's tree (van der Maaten, JMLR '14), so that ten thousand rows
// take seconds.
//
// Starts from the first two principal components (Kobak and Berens, Nature Communications '19) and
// descends with early exaggeration 12 over the first third, a learning rate of rows / 12, momentum
// and gains.

#include <cstdint>
#include <vector>

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa {

struct TsneOptions {
  double perplexity = 30;  // about how many neighbours a row has; less where there are few rows
  int64_t iterations = 750;
  int64_t exact_rows = 4000;  // up to here every pair is added up
  double theta = 0.5;  // a cell counts as one point where its width is this share of its distance
  uint64_t seed = 0;   // of what tells equal rows apart
};

struct Tsne {
  std::vector<float> points;  // (rows, 2)
  double divergence = 0;      // Kullback and Leibler's, of the neighbours that were kept
};

// rows (N, D) in host memory, contiguous, finite. The same bits for every number of threads.
Tsne tsne(Context& context, MatrixView<const float> rows, const TsneOptions& options = {});

}  // namespace cfaa
