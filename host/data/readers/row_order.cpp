#include "host/data/readers/row_order.h"

#include <algorithm>
#include <span>

namespace cfaa {
namespace {

bool stands_before(const Interaction& a, const Interaction& b) {
  if (a.item != b.item) return a.item < b.item;
  if (a.time != b.time) return a.when() < b.when();
  if (a.rating != b.rating) return a.rating < b.rating;
  return a.review() < b.review();
}

// Of users [begin, end) the first rows, and at the back the end of the last.
class Bucket {
 public:
  Bucket(const std::vector<uint32_t>& first, std::size_t begin, std::size_t end)
      : first_(first),
        begin_(begin),
        next_(first.begin() + static_cast<std::ptrdiff_t>(begin),
              first.begin() + static_cast<std::ptrdiff_t>(end)) {}

  // Brings rows of these users to their users' places, in any order within.
  void place(std::span<const Interaction> rows, InteractionRows& out) {
    for (const Interaction& row : rows) out[next_[row.user - begin_]++] = row;
  }
  void sort(std::size_t begin, std::size_t end, InteractionRows& out) const {
    for (std::size_t u = begin; u < end; ++u) {
      std::sort(out.begin() + first_[u], out.begin() + first_[u + 1], stands_before);
    }
  }

 private:
  const std::vector<uint32_t>& first_;
  std::size_t begin_;
  std::vector<uint32_t> next_;
};

}  // namespace

InteractionRows in_row_order(std::vector<InteractionRows> blocks, std::size_t users,
                             ThreadPool& pool, std::size_t bucket_rows) {
  std::vector<uint32_t> first(users + 1, 0);
  for (const InteractionRows& block : blocks) {
    for (const Interaction& row : block) ++first[row.user + 1];
  }
  std::vector<std::size_t> bounds = {0};  // of the buckets, in users
  for (std::size_t u = 0; u < users; ++u) {
    first[u + 1] += first[u];
    if (first[u + 1] - first[bounds.back()] > bucket_rows && u > bounds.back()) bounds.push_back(u);
  }
  bounds.push_back(users);
  const std::size_t buckets = bounds.size() - 1;
  InteractionRows rows(blocks.empty() ? SpoolAllocator<Interaction>()
                                      : blocks.front().get_allocator());
  rows.resize(first.back());

  if (buckets == 1) {
    Bucket all(first, 0, users);
    for (InteractionRows& block : blocks) {
      all.place(block, rows);
      block = InteractionRows();
    }
    pool.parallel_for(static_cast<int64_t>(users), 1024, [&](int64_t begin, int64_t end, int) {
      all.sort(static_cast<std::size_t>(begin), static_cast<std::size_t>(end), rows);
    });
    return rows;
  }
  std::vector<uint32_t> bucket_of(users), next(buckets);
  for (std::size_t b = 0; b < buckets; ++b) {
    next[b] = first[bounds[b]];
    std::fill(bucket_of.begin() + static_cast<std::ptrdiff_t>(bounds[b]),
              bucket_of.begin() + static_cast<std::ptrdiff_t>(bounds[b + 1]),
              static_cast<uint32_t>(b));
  }
  for (InteractionRows& block : blocks) {
    for (const Interaction& row : block) rows[next[bucket_of[row.user]]++] = row;
    block = InteractionRows();
  }
  pool.parallel_for(static_cast<int64_t>(buckets), 1, [&](int64_t b, int64_t, int) {
    const std::size_t begin = bounds[b], end = bounds[b + 1];
    const std::vector<Interaction> dealt(rows.begin() + first[begin], rows.begin() + first[end]);
    Bucket bucket(first, begin, end);
    bucket.place(dealt, rows);
    bucket.sort(begin, end, rows);
  });
  return rows;
}

}  // namespace cfaa
