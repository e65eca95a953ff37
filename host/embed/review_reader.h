#pragma once

// Texts that are not in the data, read as `embed` has read a prepared domain's reviews: what a
// newcomer's review vector is made of.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/context.h"
#include "host/data/dataset.h"

namespace cfaa {

// The sum of a text's sentences' vectors, and how many there are.
struct TextSums {
  int64_t width = 0;
  std::vector<float> sum;      // (texts, width) rounded as the domain's own are
  std::vector<int32_t> count;  // (texts) 0: nothing to read
};

class ReviewReader {
 public:
  virtual ~ReviewReader() = default;
  // From any thread; calls take turns.
  virtual TextSums read(std::span<const std::string_view> texts) = 0;
};

// By the encoder in the folder `model`. Error where the domain has no vectors, and where this
// encoder, on this device, does not make them.
std::unique_ptr<ReviewReader> make_review_reader(Context& context, const std::string& model,
                                                 const Domain& embedded);

}  // namespace cfaa
