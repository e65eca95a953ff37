#include "host/model/batch.h"

#include <algorithm>

namespace cfaa {
namespace {

// Hands out arrays one after the other. Without memory it only counts.
class Carver {
 public:
  explicit Carver(void* memory) : memory_(static_cast<char*>(memory)) {}

  template <class T>
  T* take(int64_t count) {
    T* piece = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return piece;
  }
  template <class T>
  VectorView<T> vector(int64_t count) {
    return {take<T>(count), {count}};
  }

  std::size_t used() const { return used_; }

 private:
  char* memory_;
  std::size_t used_ = 0;
};

template <class T>
EdgeLists<T> carve_edges(Carver& carver, int64_t rows, int64_t entries_per_row,
                         int64_t table_rows) {
  EdgeLists<T> lists;
  if (table_rows == 0) return lists;
  const int64_t entries = rows * entries_per_row;
  const int64_t touched = std::min(entries, table_rows);
  lists.offset = carver.vector<int32_t>(rows + 1);
  lists.index = carver.vector<int32_t>(entries);
  lists.weight = carver.vector<T>(entries);
  lists.touched_count = carver.vector<int32_t>(1);
  lists.touched_row = carver.vector<int32_t>(touched);
  lists.touched_offset = carver.vector<int32_t>(touched + 1);
  lists.touched_bag = carver.vector<int32_t>(entries);
  lists.touched_weight = carver.vector<T>(entries);
  return lists;
}

template <class T>
TextBatch<T> carve_texts(Carver& carver, int64_t rows, const TextShape& shape,
                         int64_t counterparts) {
  TextBatch<T> text;
  if (shape.row_words > 0) {
    text.words = carve_edges<T>(carver, rows, shape.row_words, shape.vocabulary);
  }
  if (shape.texts == 0 || shape.entries == 0) return text;
  const int64_t texts = shape.most_texts(rows), words = shape.most_words(rows);
  text.offset = carver.vector<int32_t>(texts + 1);
  text.word = carver.vector<int32_t>(words);
  text.word_offset = carver.vector<int32_t>(shape.vocabulary + 1);
  text.word_text = carver.vector<int32_t>(words);
  text.word_place = carver.vector<int32_t>(words);
  text.reviews = carve_edges<T>(carver, rows, shape.entries, texts);
  text.counterpart = carve_edges<T>(carver, texts, 1, counterparts);
  return text;
}

template <class T>
Batch<T> carve(Carver& carver, const BatchShape& shape) {
  Batch<T> batch;
  batch.state = carver.take<StepState>(shape.groups);
  batch.loss_weight = carver.vector<double>(shape.losses);
  for (std::size_t d = 0; d < 2; ++d) {
    if (!shape.used[d]) continue;
    const int64_t rows = shape.rows(d);
    DomainBatch<T>& domain = batch.domain[d];
    domain.label = carver.vector<T>(rows);
    domain.weight = carver.vector<T>(rows);
    if (shape.offsets[d]) domain.offset = carver.vector<T>(rows);
    for (std::size_t s = 0; s < 2; ++s) {
      SideBatch<T>& side = domain.side[s];
      side.id = carve_edges<T>(carver, rows, 1, shape.id_rows[d][s]);
      side.history = carve_edges<T>(carver, rows, shape.history_entries, shape.history_rows[d][s]);
      side.text = carve_texts<T>(carver, rows, shape.text[d], shape.text[d].counterparts[s]);
      if (shape.review_dim == 0) continue;
      side.review.entity = carver.vector<int32_t>(rows);
      side.review.left_out = carver.vector<int32_t>(rows);
      side.review.share = carver.vector<float>(rows);
    }
  }
  return batch;
}

}  // namespace

template <class T>
BatchLayout<T>::BatchLayout(const BatchShape& shape) : shape_(shape) {
  Carver counter(nullptr);
  carve<T>(counter, shape_);
  bytes_ = counter.used();
}

template <class T>
Batch<T> BatchLayout<T>::at(void* memory) const {
  Carver carver(memory);
  return carve<T>(carver, shape_);
}

template class BatchLayout<float>;
template class BatchLayout<double>;

}  // namespace cfaa
