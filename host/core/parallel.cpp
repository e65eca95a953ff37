#include "host/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "host/core/error.h"

namespace cfaa {
namespace {

thread_local bool inside_parallel_for = false;

}  // namespace

struct ThreadPool::State {
  using Body = std::function<void(int64_t, int64_t, int)>;

  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable start, finished;
  bool stopping = false;
  uint64_t generation = 0;  // counts parallel_for calls; a worker joins each once
  int running = 0;

  const Body* body = nullptr;
  int64_t count = 0, grain = 1;
  std::atomic<int64_t> next{0};
  std::exception_ptr failure;

  // Takes chunks until none is left. A failed body stops the hand-out of further chunks.
  void work(int worker) {
    inside_parallel_for = true;
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) break;
      try {
        (*body)(begin, std::min(begin + grain, count), worker);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
        next.store(count, std::memory_order_relaxed);
      }
    }
    inside_parallel_for = false;
  }

  void loop(int worker) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      start.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping) return;
      seen = generation;
      lock.unlock();
      work(worker);
      lock.lock();
      if (--running == 0) finished.notify_one();
    }
  }

  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    start.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = std::max(1u, std::thread::hardware_concurrency());
  try {
    state_->workers.reserve(static_cast<std::size_t>(threads));
    for (int worker = 1; worker < threads; ++worker) {
      state_->workers.emplace_back([this, worker] { state_->loop(worker); });
    }
  } catch (const std::system_error&) {
    state_->stop();
    throw Error(std::to_string(threads) +
                " threads cannot be started within this system's limits; use fewer --threads");
  }
}

ThreadPool::~ThreadPool() {
  state_->stop();
}

int ThreadPool::threads() const {
  return static_cast<int>(state_->workers.size()) + 1;
}

void ThreadPool::parallel_for(int64_t count, int64_t grain, const State::Body& body) {
  CFAA_ASSERT(grain > 0);
  if (count <= 0) return;
  if (inside_parallel_for || state_->workers.empty() || count <= grain) {
    for (int64_t begin = 0; begin < count; begin += grain) {
      body(begin, std::min(begin + grain, count), 0);
    }
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->body = &body;
    state_->count = count;
    state_->grain = grain;
    state_->next.store(0, std::memory_order_relaxed);
    state_->failure = nullptr;
    state_->running = static_cast<int>(state_->workers.size());
    ++state_->generation;
  }
  state_->start.notify_all();
  state_->work(0);
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->finished.wait(lock, [&] { return state_->running == 0; });
  if (state_->failure) std::rethrow_exception(std::exchange(state_->failure, nullptr));
}

}  // namespace cfaa
