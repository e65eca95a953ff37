#include "bench/step_world.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "host/core/philox.h"

namespace cfaa::bench {
namespace {

// As many interactions for each user, of distinct items whose popularity falls like a power: a
// quarter of the items have half of the interactions.
void fill_domain(Domain& domain, const char* name, const DomainSize& size, uint64_t stream) {
  domain.name = name;
  for (int64_t u = 0; u < size.users; ++u) domain.users.append(std::to_string(u));
  for (int64_t i = 0; i < size.items; ++i) domain.items.append(std::to_string(i));
  const Philox random{2022};
  std::vector<int32_t> chosen;
  for (int64_t u = 0; u < size.users; ++u) {
    const int64_t degree =
        size.interactions * (u + 1) / size.users - size.interactions * u / size.users;
    chosen.clear();
    for (int64_t draw = 0; std::ssize(chosen) < std::min(degree, size.items); ++draw) {
      const double x =
          (random(static_cast<uint64_t>(u << 20 | draw), stream).word[0] + 0.5) * 0x1p-32;
      const auto item = static_cast<int32_t>(x * x * static_cast<double>(size.items));
      if (std::find(chosen.begin(), chosen.end(), item) == chosen.end()) chosen.push_back(item);
    }
    std::sort(chosen.begin(), chosen.end());
    for (const int32_t item : chosen) {
      domain.train.user.push_back(static_cast<int32_t>(u));
      domain.train.item.push_back(item);
      // One in four of the source's is a dislike; the target has positives only.
      domain.train.label.push_back(stream == kSource && (u + item) % 4 == 0 ? 0.0f : 1.0f);
    }
  }
}

// Numbers of 0.5 ... 1 of either sign, in float16: a billion of them are made, so four at a time
// from one xorshift.
ReviewSums random_reviews(const Domain& domain, int64_t dim) {
  struct Arrays {
    std::unique_ptr<uint64_t[]> sums;
    std::vector<int32_t> counts;
  };
  const auto arrays = std::make_shared<Arrays>();
  const auto rows = static_cast<std::size_t>(domain.train.size());
  const std::size_t words = (rows * static_cast<std::size_t>(dim) + 3) / 4;
  arrays->sums = std::make_unique_for_overwrite<uint64_t[]>(words);
  uint64_t state = 88172645463325252u;
  for (std::size_t i = 0; i < words; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    arrays->sums[i] = (state & 0x83FF83FF83FF83FFu) | 0x3800380038003800u;
  }
  arrays->counts.assign(rows, 1);
  return {DType::f16, reinterpret_cast<const std::byte*>(arrays->sums.get()), arrays->counts.data(),
          dim, arrays};
}

}  // namespace

StepWorld::StepWorld(DomainSize source, DomainSize target, int64_t review_dim, ReviewScale scale)
    : data_{dataset_, {}, {}} {
  fill_domain(dataset_.source, "source", source, kSource);
  fill_domain(dataset_.target, "target", target, kTarget);
  for (std::size_t d = 0; d < 2; ++d) {
    const Domain& domain = data_.domain(d);
    data_.neighbours[d] = make_neighbours(domain);
    if (review_dim == 0) continue;
    data_.reviews[d] =
        std::make_unique<ReviewVectors>(domain, random_reviews(domain, review_dim), scale);
  }
}

}  // namespace cfaa::bench
