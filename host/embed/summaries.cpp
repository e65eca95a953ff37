#include "host/embed/summaries.h"

#include <algorithm>

#include "host/embed/sentence_selection.h"

namespace cfaa {

std::vector<char> summarize(ThreadPool& threads, std::span<const int32_t> entity_of_row,
                            int64_t entities, std::span<const int32_t> counts,
                            MatrixView<const float> sentences, uint64_t seed) {
  std::vector<std::vector<int64_t>> of_entity(static_cast<std::size_t>(entities));
  int64_t next = 0;
  for (std::size_t row = 0; row < counts.size(); ++row) {
    std::vector<int64_t>& own = of_entity[static_cast<std::size_t>(entity_of_row[row])];
    for (int32_t s = 0; s < counts[row]; ++s) own.push_back(next++);
  }
  std::vector<char> chosen(static_cast<std::size_t>(next));
  const int64_t width = sentences.cols();
  // Grains of one: the work grows with the square of an entity's sentences.
  threads.parallel_for(entities, 1, [&](int64_t begin, int64_t end, int) {
    std::vector<float> vectors;
    for (int64_t e = begin; e < end; ++e) {
      const std::vector<int64_t>& own = of_entity[static_cast<std::size_t>(e)];
      vectors.resize(own.size() * static_cast<std::size_t>(width));
      for (std::size_t s = 0; s < own.size(); ++s) {
        std::copy_n(sentences.data + own[s] * sentences.stride[0], width,
                    vectors.data() + static_cast<int64_t>(s) * width);
      }
      const MatrixView<const float> all(vectors.data(), {std::ssize(own), width});
      for (const int32_t s : select_sentences(all, {.seed = seed}, static_cast<uint64_t>(e))) {
        chosen[static_cast<std::size_t>(own[static_cast<std::size_t>(s)])] = 1;
      }
    }
  });
  return chosen;
}

}  // namespace cfaa
