#pragma once

// Texts of words, their convolution and maxima over bags by plain loops in double
// (host/ops/text_convolution.h, host/ops/bag_max.h), and their place on a device.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/reference/bags.h"
#include "host/core/philox.h"
#include "host/core/tensor.h"
#include "host/ops/text_convolution.h"

namespace cfaa::reference {

struct Texts {
  std::vector<int32_t> offset, word;

  int64_t count() const { return static_cast<int64_t>(offset.size()) - 1; }
};

// Texts of 0 .. longest words out of `words`.
inline Texts random_texts(int64_t texts, int64_t words, int64_t longest, uint64_t seed) {
  const BagLists bags = random_bags(texts, words, longest, seed);
  return {bags.offset, bags.index};
}

// By word of [0, words).
struct Occurrences {
  std::vector<int32_t> offset, text, place;
};
inline Occurrences occurrences(const Texts& texts, int64_t words) {
  std::vector<std::vector<std::pair<int32_t, int32_t>>> of_word(static_cast<std::size_t>(words));
  for (int32_t e = 0; e < texts.count(); ++e) {
    const auto text = static_cast<std::size_t>(e);
    for (int32_t q = texts.offset[text]; q < texts.offset[text + 1]; ++q) {
      const auto word = static_cast<std::size_t>(texts.word[static_cast<std::size_t>(q)]);
      of_word[word].emplace_back(e, q - texts.offset[text]);
    }
  }
  Occurrences result;
  result.offset.push_back(0);
  for (const auto& places : of_word) {
    for (const auto& [text, place] : places) {
      result.text.push_back(text);
      result.place.push_back(place);
    }
    result.offset.push_back(static_cast<int32_t>(result.text.size()));
  }
  return result;
}

// (texts, filters), from products (words, width * filters).
inline std::vector<double> text_convolution(const Texts& texts, const std::vector<double>& product,
                                            const std::vector<double>& bias, int64_t width) {
  const auto filters = static_cast<int64_t>(bias.size());
  std::vector<double> out;
  for (std::size_t e = 0; e + 1 < texts.offset.size(); ++e) {
    const int64_t from = texts.offset[e], length = texts.offset[e + 1] - from;
    for (int64_t f = 0; f < filters; ++f) {
      double most = 0;
      for (int64_t p = 0; length > 0 && p <= std::max<int64_t>(length - width, 0); ++p) {
        double sum = bias[static_cast<std::size_t>(f)];
        for (int64_t j = 0; j < width && p + j < length; ++j) {
          const int64_t word = texts.word[static_cast<std::size_t>(from + p + j)];
          sum += product[static_cast<std::size_t>((word * width + j) * filters + f)];
        }
        most = std::max(most, sum);
      }
      out.push_back(most);
    }
  }
  return out;
}

// (bags, columns), from x (rows, columns).
inline std::vector<double> bag_max(const BagLists& lists, const std::vector<double>& x,
                                   int64_t columns) {
  std::vector<double> out;
  for (std::size_t r = 0; r + 1 < lists.offset.size(); ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      double most = 0;
      for (int32_t e = lists.offset[r]; e < lists.offset[r + 1]; ++e) {
        const int64_t row = lists.index[static_cast<std::size_t>(e)];
        most = std::max(most, x[static_cast<std::size_t>(row * columns + c)]);
      }
      out.push_back(most);
    }
  }
  return out;
}

// Bags of 0 .. most different rows.
inline BagLists random_sets(int64_t bags, int64_t rows, int64_t most, uint64_t seed) {
  const BagLists drawn = random_bags(bags, rows, most, seed);
  BagLists lists;
  lists.offset.push_back(0);
  for (std::size_t r = 0; r + 1 < drawn.offset.size(); ++r) {
    const auto first = static_cast<int64_t>(lists.index.size());
    for (int32_t e = drawn.offset[r]; e < drawn.offset[r + 1]; ++e) {
      const int32_t row = drawn.index[static_cast<std::size_t>(e)];
      if (std::find(lists.index.begin() + first, lists.index.end(), row) != lists.index.end()) {
        continue;
      }
      lists.index.push_back(row);
      lists.weight.push_back(drawn.weight[static_cast<std::size_t>(e)]);
    }
    lists.offset.push_back(static_cast<int32_t>(lists.index.size()));
  }
  return lists;
}

// Both lists on a device.
class DeviceTexts {
 public:
  DeviceTexts(Context& context, const Texts& texts, int64_t words) {
    const Occurrences by_word = occurrences(texts, words);
    const auto on_device = [&](const std::vector<int32_t>& values) {
      return Tensor<int32_t, 1>(context, {static_cast<int64_t>(values.size())}, values.data());
    };
    offset_ = on_device(texts.offset);
    word_ = on_device(texts.word);
    word_offset_ = on_device(by_word.offset);
    text_ = on_device(by_word.text);
    place_ = on_device(by_word.place);
  }

  TextLists texts() const { return {offset_, word_}; }
  WordOccurrences words() const { return {word_offset_, text_, place_}; }

 private:
  Tensor<int32_t, 1> offset_, word_, word_offset_, text_, place_;
};

}  // namespace cfaa::reference
