#include "host/train/text_assembler.h"

#include <algorithm>
#include <utility>

#include "host/train/permutation.h"

namespace cfaa {

TextAssembler::TextAssembler(const Domain& domain, const TokenizedReviews& texts, std::size_t side,
                             int64_t most)
    : texts_(texts),
      counterpart_(side == kUser ? domain.train.item : domain.train.user),
      review_rows_(texts.reviews()),
      counterpart_rows_(side == kUser ? domain.items.size() : domain.users.size()),
      word_rows_(texts.vocabulary()),
      seen_(static_cast<std::size_t>(texts.reviews())),
      place_(seen_.size()),
      word_seen_(static_cast<std::size_t>(texts.vocabulary())) {
  const std::vector<int32_t>& own = side == kUser ? domain.train.user : domain.train.item;
  const int64_t count = side == kUser ? domain.users.size() : domain.items.size();
  offset_.assign(static_cast<std::size_t>(count) + 1, 0);
  const auto for_each_review = [&](auto visit) {
    for (std::size_t r = 0; r < own.size(); ++r) {
      if (texts.length(static_cast<int64_t>(r)) > 0) visit(static_cast<std::size_t>(own[r]), r);
    }
  };
  for_each_review([&](std::size_t entity, std::size_t) { ++offset_[entity + 1]; });
  for (std::size_t e = 1; e < offset_.size(); ++e) {
    entries_ = std::max(entries_, offset_[e]);
    offset_[e] += offset_[e - 1];
  }
  if (most > 0) entries_ = std::min(entries_, most);
  review_.resize(static_cast<std::size_t>(offset_.back()));
  std::vector<int64_t> next = offset_;
  for_each_review([&](std::size_t entity, std::size_t review) {
    review_[static_cast<std::size_t>(next[entity]++)] = static_cast<int32_t>(review);
  });
}

template <class T>
void TextAssembler::fill_row_words(std::span<const BatchEntry> rows, int64_t most,
                                   const TextBatch<T>& batch) {
  const EdgeLists<T>& bags = batch.words;
  int32_t used = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    ++row_now_;
    const int32_t first = bags.offset.data[r] = used;
    const auto entity = static_cast<std::size_t>(rows[r].entity);
    for (int64_t e = offset_[entity]; e < offset_[entity + 1] && used - first < most; ++e) {
      const int32_t review = review_[static_cast<std::size_t>(e)];
      if (review == rows[r].excluded) continue;
      const auto at = static_cast<std::size_t>(review);
      for (int64_t w = texts_.offset[at]; w < texts_.offset[at + 1] && used - first < most; ++w) {
        const int32_t word = texts_.word[static_cast<std::size_t>(w)];
        int64_t& seen = word_seen_[static_cast<std::size_t>(word)];
        if (std::exchange(seen, row_now_) == row_now_) continue;
        bags.index.data[used] = word;
        bags.weight.data[used] = T(1);
        ++used;
      }
    }
    std::sort(bags.index.data + first, bags.index.data + used);
  }
  bags.offset.data[rows.size()] = used;
  word_rows_.list(bags);
}

int32_t TextAssembler::place_of(int32_t review) {
  const auto r = static_cast<std::size_t>(review);
  if (seen_[r] != now_) {
    seen_[r] = now_;
    place_[r] = static_cast<int32_t>(placed_.size());
    placed_.push_back(review);
  }
  return place_[r];
}

template <class T>
void TextAssembler::fill(std::span<const BatchEntry> rows, uint64_t seed, uint64_t stream,
                         const TextBatch<T>& batch) {
  ++now_;
  placed_.clear();
  const EdgeLists<T>& bags = batch.reviews;
  int32_t used = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    bags.offset.data[r] = used;
    const auto entity = static_cast<std::size_t>(rows[r].entity);
    const int64_t first = offset_[entity], count = offset_[entity + 1] - first;
    const int64_t taken = std::min(count, entries_);
    const Permutation sample(std::max<int64_t>(count, 1), seed, stream + entity);
    for (int64_t i = 0; i < taken; ++i) {
      const int32_t review =
          review_[static_cast<std::size_t>(first + (taken < count ? sample(i) : i))];
      if (review == rows[r].excluded) continue;
      bags.index.data[used] = place_of(review);
      bags.weight.data[used] = T(1);
      ++used;
    }
  }
  bags.offset.data[rows.size()] = used;
  review_rows_.list(bags);
  fill_words(batch);
  if (batch.counterpart.offset.data != nullptr) fill_counterparts(batch);
}

template <class T>
void TextAssembler::fill_words(const TextBatch<T>& batch) {
  // Offsets count the words of each vocabulary entry first, then say where its next one goes.
  int32_t* const next = batch.word_offset.data;
  std::fill_n(next, batch.word_offset.size(), 0);
  int32_t used = 0;
  for (std::size_t e = 0; e < placed_.size(); ++e) {
    const auto review = static_cast<std::size_t>(placed_[e]);
    batch.offset.data[e] = used;
    for (int64_t w = texts_.offset[review]; w < texts_.offset[review + 1]; ++w) {
      const int32_t word = texts_.word[static_cast<std::size_t>(w)];
      batch.word.data[used++] = word;
      ++next[word];
    }
  }
  std::fill(batch.offset.data + placed_.size(), batch.offset.data + batch.offset.size(), used);

  const int64_t vocabulary = batch.word_offset.size() - 1;
  int32_t sum = 0;
  for (int64_t v = 0; v < vocabulary; ++v) sum += std::exchange(next[v], sum);
  for (std::size_t e = 0; e < placed_.size(); ++e) {
    for (int32_t at = batch.offset.data[e]; at < batch.offset.data[e + 1]; ++at) {
      const int32_t to = next[batch.word.data[at]]++;
      batch.word_text.data[to] = static_cast<int32_t>(e);
      batch.word_place.data[to] = at - batch.offset.data[e];
    }
  }
  // Each now holds the end of its entry, which is the beginning of the next.
  for (int64_t v = vocabulary; v > 0; --v) next[v] = next[v - 1];
  next[0] = 0;
}

template <class T>
void TextAssembler::fill_counterparts(const TextBatch<T>& batch) {
  const EdgeLists<T>& lists = batch.counterpart;
  for (std::size_t e = 0; e < placed_.size(); ++e) {
    lists.offset.data[e] = static_cast<int32_t>(e);
    lists.index.data[e] = counterpart_[static_cast<std::size_t>(placed_[e])];
    lists.weight.data[e] = T(1);
  }
  std::fill(lists.offset.data + placed_.size(), lists.offset.data + lists.offset.size(),
            static_cast<int32_t>(placed_.size()));
  counterpart_rows_.list(lists);
}

template void TextAssembler::fill_row_words(std::span<const BatchEntry>, int64_t,
                                            const TextBatch<float>&);
template void TextAssembler::fill_row_words(std::span<const BatchEntry>, int64_t,
                                            const TextBatch<double>&);
template void TextAssembler::fill(std::span<const BatchEntry>, uint64_t, uint64_t,
                                  const TextBatch<float>&);
template void TextAssembler::fill(std::span<const BatchEntry>, uint64_t, uint64_t,
                                  const TextBatch<double>&);

}  // namespace cfaa
