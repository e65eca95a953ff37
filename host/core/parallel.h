#pragma once

// The CPU's threads. Chunk borders follow from the count and the grain alone, never from the number
// of threads, so a sum made of per-chunk parts has the same bits on 1 thread and on 64.

#include <cstdint>
#include <functional>
#include <memory>

namespace cfaa {

class ThreadPool {
 public:
  // 0 threads: as many as the machine has cores.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls body(begin, end, worker) for each chunk of `grain` consecutive indices of [0, count) and
  // waits. `worker` < threads() names the thread, for scratch of its own. The first exception of a
  // body is thrown here. Called from inside a body it runs serially.
  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t begin, int64_t end, int worker)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
