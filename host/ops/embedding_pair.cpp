#include "host/ops/embedding_pair.h"

#include <string>

#include "host/core/error.h"
#include "host/core/instantiate.h"

namespace cfaa {
namespace {

template <class T>
void check_set(const MatrixView<T>& set, int64_t attributes, const std::string& name) {
  if (set.rows() < 1 || set.cols() < 1) {
    throw Error("the " + name + " embeddings are empty (" + std::to_string(set.rows()) + " x " +
                std::to_string(set.cols()) + "); give at least one row and one column");
  }
  if (set.cols() != attributes) {
    throw Error("the " + name + " embeddings have " + std::to_string(set.cols()) +
                " columns where " + std::to_string(attributes) +
                " are expected; source and target must have the same number of attributes");
  }
  CFAA_ASSERT(set.data != nullptr);
  CFAA_ASSERT(set.stride[1] == 1 || set.cols() == 1);
  CFAA_ASSERT(set.stride[0] >= set.cols() || set.rows() == 1);
}

}  // namespace

template <class T>
void check_pairs(EmbeddingPairs<T> pairs) {
  CFAA_ASSERT(!pairs.empty() && pairs.size() <= kMaxPairs);
  const int64_t attributes = pairs[0].source.cols();
  for (const EmbeddingPair<T>& pair : pairs) {
    check_set(pair.source, attributes, "source");
    check_set(pair.target, attributes, "target");
  }
}

template <class T>
void check_gradients(EmbeddingPairs<T> pairs, GradientPairs<T> gradients) {
  CFAA_ASSERT(gradients.size() == pairs.size());
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    CFAA_ASSERT(gradients[p].source.shape == pairs[p].source.shape);
    CFAA_ASSERT(gradients[p].target.shape == pairs[p].target.shape);
    CFAA_ASSERT(gradients[p].source.stride[1] == 1 || gradients[p].source.cols() == 1);
    CFAA_ASSERT(gradients[p].target.stride[1] == 1 || gradients[p].target.cols() == 1);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(check_pairs);
CFAA_FOR_FLOAT_AND_DOUBLE(check_gradients);

}  // namespace cfaa
