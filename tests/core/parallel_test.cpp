#include "host/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace cfaa {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 7, 64, 1001}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      pool.parallel_for(count, 8, [&](int64_t begin, int64_t end, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });

      for (const auto& visit : visits) EXPECT_EQ(visit, 1);
    }
  }
}

TEST(ParallelFor, ChunksDoNotDependOnTheNumberOfThreads) {
  std::vector<std::vector<double>> sums;
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<double> parts(11);
    pool.parallel_for(101, 10, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        parts[static_cast<std::size_t>(begin / 10)] += 1.0 / static_cast<double>(i + 1);
      }
    });
    sums.push_back(parts);
  }

  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
}

TEST(ParallelFor, AnExceptionOfABodyReachesTheCallerAndThePoolLivesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.parallel_for(100, 1,
                                 [](int64_t begin, int64_t, int) {
                                   if (begin == 50) throw std::runtime_error("broken");
                                 }),
               std::runtime_error);

  std::atomic<int64_t> sum{0};
  pool.parallel_for(100, 7, [&](int64_t begin, int64_t end, int) { sum += end - begin; });

  EXPECT_EQ(sum, 100);
}

TEST(ParallelFor, InsideABodyItRunsSerially) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  pool.parallel_for(4, 1, [&](int64_t, int64_t, int) {
    pool.parallel_for(5, 2, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
  });

  EXPECT_EQ(sum, 20);
}

}  // namespace
}  // namespace cfaa
