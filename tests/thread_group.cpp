#include "tests/thread_group.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cfaa::test {
namespace {

// What a rank that is not the first to fail ends with.
struct Aborted : std::runtime_error {
  Aborted() : std::runtime_error("another rank has failed") {}
};

// Where threads meet. Each shows what it has, waits for all, reads what the others show, and waits
// again, so that nothing shown goes away while it is read.
class Meeting {
 public:
  explicit Meeting(int ranks) : shown_(static_cast<std::size_t>(ranks)) {}

  struct Shown {
    const char* kind = "";
    const void* data = nullptr;
    std::size_t bytes = 0;
    int root = 0;
  };

  void exchange(int rank, Shown mine, const std::function<void(const std::vector<Shown>&)>& read) {
    shown_[static_cast<std::size_t>(rank)] = mine;
    wait();
    for (const Shown& other : shown_) {
      if (std::string(other.kind) != mine.kind || other.bytes != mine.bytes ||
          other.root != mine.root) {
        throw std::logic_error(fmt::format("rank {} is in {} of {} bytes, another in {} of {}",
                                           rank, mine.kind, mine.bytes, other.kind, other.bytes));
      }
    }
    read(shown_);
    wait();
  }

  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    arrived_.notify_all();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    const long round = round_;
    if (++waiting_ == shown_.size()) {
      waiting_ = 0;
      ++round_;
      arrived_.notify_all();
    }
    arrived_.wait(lock, [&] { return round_ != round || aborted_; });
    if (aborted_) throw Aborted();
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Shown> shown_;
  std::size_t waiting_ = 0;
  long round_ = 0;
  bool aborted_ = false;
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(Meeting& meeting, int rank, int size) : Group(rank, size), meeting_(meeting) {}

  void all_gather(Context& context, const void* send, void* receive, std::size_t bytes) override {
    context.runtime().synchronize();
    meeting_.exchange(rank(), {"all_gather", send, bytes, 0}, [&](const auto& shown) {
      auto* to = static_cast<char*>(receive);
      for (const auto& other : shown) {
        context.runtime().copy(to, other.data, bytes);
        to += bytes;
      }
      context.runtime().synchronize();
    });
  }
  void all_to_all(Context& context, const void* send, void* receive, std::size_t bytes) override {
    context.runtime().synchronize();
    meeting_.exchange(rank(), {"all_to_all", send, bytes, 0}, [&](const auto& shown) {
      auto* to = static_cast<char*>(receive);
      for (const auto& other : shown) {
        const auto mine = static_cast<std::size_t>(rank()) * bytes;
        context.runtime().copy(to, static_cast<const char*>(other.data) + mine, bytes);
        to += bytes;
      }
      context.runtime().synchronize();
    });
  }
  void broadcast(Context& context, void* data, std::size_t bytes, int root) override {
    context.runtime().synchronize();
    meeting_.exchange(rank(), {"broadcast", data, bytes, root}, [&](const auto& shown) {
      if (rank() == root) return;
      context.runtime().copy(data, shown[static_cast<std::size_t>(root)].data, bytes);
      context.runtime().synchronize();
    });
  }
  void barrier() override {
    meeting_.exchange(rank(), {"barrier", nullptr, 0, 0}, [](const auto&) {});
  }
  void abort() override {
    meeting_.abort();
    throw Aborted();
  }

 private:
  Meeting& meeting_;
};

}  // namespace

void run_on_threads(int ranks, const std::function<void(Group&)>& rank) {
  Meeting meeting(ranks);
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        ThreadGroup group(meeting, r, ranks);
        rank(group);
      } catch (const Aborted&) {
        meeting.abort();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (failure == nullptr) failure = std::current_exception();
        meeting.abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace cfaa::test
