#include "executor.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "emulator/device.h"
#include "emulator/shared.h"
#include "fail.h"
#include "random.h"
#include "sanitizers.h"
#include "settings.h"

constinit thread_local uint3 threadIdx = {0, 0, 0};
constinit thread_local uint3 blockIdx = {0, 0, 0};
constinit thread_local dim3 blockDim = {1, 1, 1};
constinit thread_local dim3 gridDim = {1, 1, 1};

namespace emulator {

__thread Thread* current_thread = nullptr;

namespace context = boost::context::detail;

// A stack on which threads of a block run. A fibre whose thread finishes takes up the next thread
// that has not started, so a kernel that never waits needs one fibre per block.
struct Fibre {
  static constexpr std::size_t stack_bytes = 256 * 1024;
  static constexpr std::size_t guard_bytes = 4096;

  explicit Fibre(unsigned number) {
    mapping = mmap(nullptr, stack_bytes + guard_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) fail("no memory for the stack of a thread");
    mprotect(mapping, guard_bytes, PROT_NONE);
    stack = static_cast<unsigned char*>(mapping) + guard_bytes;
    // Tops at different distances from a page: otherwise all stacks share a few cache sets.
    top = stack + stack_bytes - number % 61 * 64;
  }
  ~Fibre() { munmap(mapping, stack_bytes + guard_bytes); }
  Fibre(const Fibre&) = delete;

  void* mapping;
  unsigned char* stack;
  unsigned char* top;
  context::fcontext_t context = nullptr;
  void* fake_stack = nullptr;  // AddressSanitizer's
};

namespace {

const char* name_of(WarpPrimitive primitive) {
  switch (primitive) {
    case WarpPrimitive::syncwarp:
      return "__syncwarp";
    case WarpPrimitive::shfl:
      return "__shfl_sync";
    case WarpPrimitive::shfl_up:
      return "__shfl_up_sync";
    case WarpPrimitive::shfl_down:
      return "__shfl_down_sync";
    case WarpPrimitive::shfl_xor:
      return "__shfl_xor_sync";
    case WarpPrimitive::ballot:
      return "__ballot_sync";
    case WarpPrimitive::any:
      return "__any_sync";
    case WarpPrimitive::all:
      return "__all_sync";
    case WarpPrimitive::match_any:
      return "__match_any_sync";
  }
  return "?";
}

std::string place(const std::source_location& site) {
  const char* file = std::strrchr(site.file_name(), '/');
  return std::string(file ? file + 1 : site.file_name()) + ":" + std::to_string(site.line());
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

// One host thread's means to run blocks, kept from block to block.
class Worker {
 public:
  Worker() {
    // The handler of faults needs a stack of its own when a fibre has used up its.
    stack_t present = {};
    sigaltstack(nullptr, &present);
    if ((present.ss_flags & SS_DISABLE) == 0) return;
    signal_stack_.resize(64 * 1024);
    stack_t mine = {};
    mine.ss_sp = signal_stack_.data();
    mine.ss_size = signal_stack_.size();
    sigaltstack(&mine, nullptr);
  }
  ~Worker() {
    if (signal_stack_.empty()) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  Worker(const Worker&) = delete;

  void run_block(const KernelCall& call, uint3 index, std::uint64_t seed);

  int barrier(int predicate, std::source_location site);
  std::uint64_t exchange(WarpPrimitive primitive, unsigned mask, std::uint64_t value,
                         unsigned source_lane, std::source_location site);
  unsigned char* static_shared(const void* key, std::size_t bytes, std::size_t alignment);

  // Whether `p` lies just below the stack of the thread that runs.
  bool below_stack(const void* p) const {
    return current_ != nullptr && p >= current_->mapping && p < current_->stack;
  }

  static Worker& mine() {
    static thread_local Worker worker;
    return worker;
  }

 private:
  static void fibre_main(context::transfer_t transfer);
  static void become(Thread* thread) {
    current_thread = thread;
    threadIdx = thread->index;
  }
  void prepare(const KernelCall& call, uint3 index);
  void finish_thread(Thread& thread);
  void make_ready(Thread& thread) {
    thread.state = thread.fibre == nullptr ? ThreadState::unstarted : ThreadState::ready;
    ready_.push_back(thread.linear);
  }
  void shuffle_ready();
  Thread* next_ready();
  void wait();                            // the current thread has said what it waits for
  void jump(Fibre* from, Fibre& target);  // null: `from` will not come back
  Fibre& fresh_fibre();
  void complete(Warp& warp, int group);
  [[noreturn]] void report_divergence();

  Block block_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> ready_;
  std::size_t ready_head_ = 0;
  unsigned finished_ = 0;
  unsigned at_barrier_ = 0;
  int barrier_sum_ = 0;
  Random random_{0};
  const KernelCall* call_ = nullptr;
  std::uint32_t epoch_ = 1;

  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Fibre*> idle_;
  Fibre* current_ = nullptr;
  context::fcontext_t scheduler_ = nullptr;
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;

  std::vector<unsigned char> signal_stack_;
  std::vector<unsigned char> shared_;
  std::vector<Cell> wide_cells_, narrow_cells_;
  struct StaticVariable {
    const void* key;
    std::size_t offset;
  };
  std::vector<StaticVariable> statics_;
};

void Worker::prepare(const KernelCall& call, uint3 index) {
  const unsigned count = call.block.x * call.block.y * call.block.z;
  call_ = &call;
  if (epoch_ > 0xF0000000u) {  // stamps would come round: forget them all
    epoch_ = 1;
    wide_cells_.assign(wide_cells_.size(), Cell{});
    narrow_cells_.assign(narrow_cells_.size(), Cell{});
  }
  ++epoch_;
  const std::size_t capacity = settings().limits.shared_optin + 16;
  if (shared_.size() < capacity) {
    shared_.resize(capacity);
    wide_cells_.assign(capacity / 4, Cell{});
    narrow_cells_.assign(capacity, Cell{});
  }
  block_ = Block{};
  block_.index = index;
  block_.dim = call.block;
  block_.grid = call.grid;
  block_.kernel = call.name.c_str();
  block_.first_epoch = block_.epoch = epoch_;
  block_.shared_checks = settings().shared_checks;
  block_.shared = shared_.data();
  block_.dynamic_bytes = call.dynamic_shared;
  block_.shared_limit = call.shared_limit;
  block_.wide_cells = wide_cells_.data();
  block_.narrow_cells = narrow_cells_.data();
  statics_.clear();

  const unsigned warps = (count + 31) / 32;
  if (warps_.size() < warps) warps_.resize(warps);
  if (threads_.size() < count) threads_.resize(count);
  for (unsigned w = 0; w < warps; ++w) {
    Warp& warp = warps_[w];
    warp.number = w;
    const unsigned lanes = std::min(32u, count - w * 32);
    warp.exists = lanes == 32 ? 0xFFFFFFFFu : (1u << lanes) - 1;
    warp.finished = 0;
    warp.group_count = 0;
    ++warp.clock;
  }
  ready_.clear();
  ready_head_ = 0;
  for (unsigned i = 0; i < count; ++i) {
    Thread& thread = threads_[i];
    thread.index = {i % call.block.x, i / call.block.x % call.block.y,
                    i / (call.block.x * call.block.y)};
    thread.linear = i;
    thread.lane = i % 32;
    thread.warp = &warps_[i / 32];
    thread.block = &block_;
    thread.fibre = nullptr;
    thread.state = ThreadState::unstarted;
    ready_.push_back(i);
  }
  finished_ = at_barrier_ = 0;
  barrier_sum_ = 0;
}

void Worker::run_block(const KernelCall& call, uint3 index, std::uint64_t seed) {
  prepare(call, index);
  random_ = Random(seed);
  blockIdx = index;
  blockDim = call.block;
  gridDim = call.grid;
  shuffle_ready();
  become(next_ready());
  current_ = &fresh_fibre();
  current_thread->fibre = current_;
  sanitizers::start_switch(&scheduler_fake_stack_, current_->stack, Fibre::stack_bytes);
  context::jump_fcontext(current_->context, &scheduler_);
  sanitizers::finish_switch(scheduler_fake_stack_, nullptr, nullptr);
  current_thread = nullptr;
}

void Worker::fibre_main(context::transfer_t transfer) {
  Worker& worker = Worker::mine();
  Fibre& self = *worker.current_;
  const void* old_stack = nullptr;
  std::size_t old_bytes = 0;
  sanitizers::finish_switch(nullptr, &old_stack, &old_bytes);
  *static_cast<context::fcontext_t*>(transfer.data) = transfer.fctx;
  if (transfer.data == &worker.scheduler_) {
    worker.scheduler_stack_ = old_stack;
    worker.scheduler_stack_bytes_ = old_bytes;
  }
  for (;;) {
    Thread* thread = current_thread;
    try {
      worker.call_->body();
    } catch (const std::exception& error) {
      fail_in_kernel("threw an exception: %s", error.what());
    } catch (...) {
      fail_in_kernel("threw an exception");
    }
    worker.finish_thread(*thread);
    Thread* next = worker.next_ready();
    if (next == nullptr) {
      if (worker.finished_ == worker.block_.dim.x * worker.block_.dim.y * worker.block_.dim.z)
        break;
      worker.report_divergence();
    }
    become(next);
    if (next->fibre != nullptr) {
      worker.idle_.push_back(&self);
      worker.jump(nullptr, *next->fibre);
    }
    next->fibre = &self;
  }
  worker.idle_.push_back(&self);
  sanitizers::start_switch(nullptr, worker.scheduler_stack_, worker.scheduler_stack_bytes_);
  context::jump_fcontext(worker.scheduler_, &self.context);
}

void Worker::jump(Fibre* from, Fibre& target) {
  current_ = &target;
  context::fcontext_t abandoned;
  sanitizers::start_switch(from ? &from->fake_stack : nullptr, target.stack, Fibre::stack_bytes);
  const context::transfer_t back =
      context::jump_fcontext(target.context, from ? &from->context : &abandoned);
  sanitizers::finish_switch(from->fake_stack, nullptr, nullptr);
  *static_cast<context::fcontext_t*>(back.data) = back.fctx;
}

Fibre& Worker::fresh_fibre() {
  if (idle_.empty()) {
    fibres_.push_back(std::make_unique<Fibre>(static_cast<unsigned>(fibres_.size())));
    idle_.push_back(fibres_.back().get());
  }
  Fibre& fibre = *idle_.back();
  idle_.pop_back();
  // The last user never returned from fibre_main, so its frame may still be poisoned.
  sanitizers::unpoison(fibre.top - 16384, 16384);
  fibre.context = context::make_fcontext(
      fibre.top, static_cast<std::size_t>(fibre.top - fibre.stack), &Worker::fibre_main);
  return fibre;
}

void Worker::shuffle_ready() {
  const std::size_t count = ready_.size() - ready_head_;
  for (std::size_t i = count; i > 1; --i) {
    std::swap(ready_[ready_head_ + i - 1],
              ready_[ready_head_ + random_.below(static_cast<std::uint32_t>(i))]);
  }
}

Thread* Worker::next_ready() {
  if (ready_head_ == ready_.size()) return nullptr;
  Thread* thread = &threads_[ready_[ready_head_++]];
  if (ready_head_ == ready_.size()) {
    ready_.clear();
    ready_head_ = 0;
  } else if (const Fibre* following = threads_[ready_[ready_head_]].fibre) {
    // The stacks of a block exceed the first cache; fetching one ahead saves a third of the time.
    __builtin_prefetch(following->context);
    __builtin_prefetch(static_cast<const char*>(following->context) + 64);
  }
  return thread;
}

void Worker::wait() {
  Fibre* self = current_;
  Thread* next = next_ready();
  if (next == nullptr) report_divergence();
  become(next);
  if (next->fibre == self) return;
  if (next->fibre == nullptr) next->fibre = &fresh_fibre();
  jump(self, *next->fibre);
}

void Worker::finish_thread(Thread& thread) {
  thread.state = ThreadState::finished;
  thread.warp->finished |= 1u << thread.lane;
  ++finished_;
  if (at_barrier_ > 0) report_divergence();
}

int Worker::barrier(int predicate, std::source_location site) {
  Thread& me = *current_thread;
  const unsigned count = block_.dim.x * block_.dim.y * block_.dim.z;
  me.state = ThreadState::at_barrier;
  me.site = site;
  barrier_sum_ += predicate;
  ++at_barrier_;
  if (finished_ > 0) report_divergence();
  if (at_barrier_ == count) {
    for (unsigned i = 0; i < count; ++i) {
      if (!same_place(threads_[i].site, site)) report_divergence();
      threads_[i].result = static_cast<std::uint64_t>(barrier_sum_);
      make_ready(threads_[i]);
    }
    at_barrier_ = 0;
    barrier_sum_ = 0;
    block_.epoch = ++epoch_;
    shuffle_ready();
  }
  wait();
  return static_cast<int>(me.result);
}

std::uint64_t Worker::exchange(WarpPrimitive primitive, unsigned mask, std::uint64_t value,
                               unsigned source_lane, std::source_location site) {
  Thread& me = *current_thread;
  Warp& warp = *me.warp;
  const unsigned bit = 1u << me.lane;
  if (primitive == WarpPrimitive::syncwarp) mask &= warp.exists;
  if ((mask & bit) == 0) {
    fail_in_kernel("called %s (%s) with mask 0x%08x, which leaves out its own lane %u",
                   name_of(primitive), place(site).c_str(), mask, me.lane);
  }
  if ((mask & ~warp.exists) != 0) {
    fail_in_kernel("called %s (%s) with mask 0x%08x, but the warp has only lanes 0x%08x",
                   name_of(primitive), place(site).c_str(), mask, warp.exists);
  }
  if ((mask & warp.finished) != 0) {
    fail_in_kernel("called %s (%s) with mask 0x%08x, but lanes 0x%08x have exited",
                   name_of(primitive), place(site).c_str(), mask, mask & warp.finished);
  }
  me.state = ThreadState::at_warp_primitive;
  me.primitive = primitive;
  me.mask = mask;
  me.value = value;
  me.source_lane = source_lane;
  me.site = site;
  int group = -1;
  for (int g = 0; g < warp.group_count; ++g) {
    Warp::Group& other = warp.groups[g];
    if (other.primitive == primitive && other.mask == mask) {
      group = g;
    } else if ((other.mask & bit) != 0 && (other.arrived & mask) != 0) {
      fail_in_kernel(
          "called %s (%s) with mask 0x%08x while lanes 0x%08x of its warp wait for it "
          "at %s with mask 0x%08x",
          name_of(primitive), place(site).c_str(), mask, other.arrived, name_of(other.primitive),
          other.mask);
    }
  }
  if (group < 0) {
    group = warp.group_count++;
    warp.groups[group] = {primitive, mask, 0};
  }
  warp.groups[group].arrived |= bit;
  if (warp.groups[group].arrived == mask) complete(warp, group);
  wait();
  return me.result;
}

void Worker::complete(Warp& warp, int group) {
  const unsigned mask = warp.groups[group].mask;
  const WarpPrimitive primitive = warp.groups[group].primitive;
  warp.groups[group] = warp.groups[--warp.group_count];
  Thread* lanes = &threads_[warp.number * 32];

  if (primitive == WarpPrimitive::syncwarp) {
    // What any of these lanes did or knew to be done before is now before all of them.
    const std::uint32_t now = ++warp.clock;
    std::uint32_t known[32] = {};
    for (unsigned m = mask; m != 0; m &= m - 1) {
      const auto& row = warp.ordered[std::countr_zero(m)];
      for (int other = 0; other < 32; ++other) known[other] = std::max(known[other], row[other]);
    }
    for (unsigned m = mask; m != 0; m &= m - 1) known[std::countr_zero(m)] = now;
    for (unsigned m = mask; m != 0; m &= m - 1) {
      std::memcpy(warp.ordered[std::countr_zero(m)], known, sizeof(known));
    }
  }

  unsigned votes = 0;
  for (unsigned m = mask; m != 0; m &= m - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(m));
    if (lanes[lane].value != 0) votes |= 1u << lane;
  }
  // Lanes continue from a random one, so that nobody leans on lane 0 being first.
  const unsigned start = random_.below(32);
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned lane = (start + i) % 32;
    if ((mask >> lane & 1u) == 0) continue;
    Thread& thread = lanes[lane];
    switch (primitive) {
      case WarpPrimitive::syncwarp:
        break;
      case WarpPrimitive::ballot:
      case WarpPrimitive::any:
      case WarpPrimitive::all:
        thread.result = votes;
        break;
      case WarpPrimitive::match_any: {
        unsigned equal = 0;
        for (unsigned m = mask; m != 0; m &= m - 1) {
          const unsigned other = static_cast<unsigned>(std::countr_zero(m));
          if (lanes[other].value == thread.value) equal |= 1u << other;
        }
        thread.result = equal;
        break;
      }
      default:
        // A lane outside of the mask has no defined value: NaN, or -1.
        thread.result = (mask >> thread.source_lane & 1u) != 0 ? lanes[thread.source_lane].value
                                                               : ~std::uint64_t{0};
    }
    make_ready(thread);
  }
}

void Worker::report_divergence() {
  const unsigned count = block_.dim.x * block_.dim.y * block_.dim.z;
  std::string text;
  unsigned exited = 0, unfinished = 0;
  struct Crowd {
    std::string where;
    unsigned threads;
    unsigned first;
  };
  std::vector<Crowd> crowds;
  for (unsigned i = 0; i < count; ++i) {
    const Thread& thread = threads_[i];
    std::string where;
    switch (thread.state) {
      case ThreadState::finished:
        ++exited;
        continue;
      case ThreadState::at_barrier:
        where = "__syncthreads (" + place(thread.site) + ")";
        break;
      case ThreadState::at_warp_primitive:
        where = std::string(name_of(thread.primitive)) + " (" + place(thread.site) + ")";
        break;
      default:
        ++unfinished;
        continue;
    }
    bool known = false;
    for (Crowd& crowd : crowds) {
      if (crowd.where == where) ++crowd.threads, known = true;
    }
    if (!known) crowds.push_back({where, 1, i});
  }
  for (const Crowd& crowd : crowds) {
    text += (text.empty() ? "" : ", ") + std::to_string(crowd.threads) + " threads (the first is " +
            std::to_string(crowd.first) + ") wait at " + crowd.where;
  }
  if (exited > 0) text += ", " + std::to_string(exited) + " threads have exited";
  if (unfinished > 0) text += ", " + std::to_string(unfinished) + " threads have not arrived yet";
  fail("kernel %s block (%u, %u, %u): divergent barrier, not reached by every thread: %s",
       block_.kernel, block_.index.x, block_.index.y, block_.index.z, text.c_str());
}

unsigned char* Worker::static_shared(const void* key, std::size_t bytes, std::size_t alignment) {
  for (const StaticVariable& variable : statics_) {
    if (variable.key == key) return block_.shared + variable.offset;
  }
  alignment = std::max<std::size_t>(alignment, 4);
  std::size_t offset = block_.dynamic_bytes + block_.static_bytes;
  offset = (offset + alignment - 1) / alignment * alignment;
  if (offset + bytes > block_.shared_limit) {
    fail_in_kernel("has %zu bytes of static and dynamic shared memory, more than the %zu it may",
                   offset + bytes, block_.shared_limit);
  }
  block_.static_bytes = offset + bytes - block_.dynamic_bytes;
  statics_.push_back({key, offset});
  return block_.shared + offset;
}

// Host threads that help with the blocks of large grids. Made anew in a forked child, which has
// none of its parent's threads.
class Crew {
 public:
  static Crew& get(int helpers) {
    static Crew* crew = nullptr;  // never destroyed: its threads outlive static destruction
    if (crew == nullptr || crew->process_ != getpid() || crew->helpers_ < helpers) {
      crew = new Crew(helpers);
    }
    return *crew;
  }

  // Runs work() on this thread and on the helpers; returns when all have come back.
  void run(int helpers, const std::function<void()>& work) {
    {
      std::lock_guard lock(mutex_);
      work_ = &work;
      wanted_ = busy_ = helpers;
      ++round_;
    }
    wake_.notify_all();
    work();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
  }

 private:
  explicit Crew(int helpers) : process_(getpid()), helpers_(helpers) {
    for (int i = 0; i < helpers; ++i) std::thread([this] { help(); }).detach();
  }

  void help() {
    std::uint64_t seen = 0;
    for (;;) {
      const std::function<void()>* work;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return round_ != seen && wanted_ > 0; });
        seen = round_;
        --wanted_;
        work = work_;
      }
      (*work)();
      std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  pid_t process_;
  int helpers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void()>* work_ = nullptr;
  int wanted_ = 0, busy_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace

void run_kernel(const KernelCall& call, std::uint64_t seed) {
  const std::uint64_t blocks = static_cast<std::uint64_t>(call.grid.x) * call.grid.y * call.grid.z;
  const std::uint64_t threads = blocks * call.block.x * call.block.y * call.block.z;
  // Blocks start in the order first + i * step modulo their number, step coprime to it.
  Random random(seed);
  const std::uint64_t first = random.next() % blocks;
  std::uint64_t step = blocks > 1 ? random.next() % blocks | 1u : 1;
  while (std::gcd(step, blocks) != 1) ++step;
  std::atomic<std::uint64_t> next{0};
  const std::function<void()> work = [&] {
    for (std::uint64_t i = next++; i < blocks; i = next++) {
      const std::uint64_t b =
          static_cast<std::uint64_t>((first + static_cast<unsigned __int128>(i) * step) % blocks);
      const uint3 index = {static_cast<unsigned>(b % call.grid.x),
                           static_cast<unsigned>(b / call.grid.x % call.grid.y),
                           static_cast<unsigned>(b / call.grid.x / call.grid.y)};
      Worker::mine().run_block(call, index, seed ^ (b + 1) * 0xD1342543DE82EF95u);
    }
  };
  constexpr std::uint64_t worth_helpers = 4096;  // threads; below, waking a helper costs more
  const int helpers =
      threads < worth_helpers
          ? 0
          : static_cast<int>(std::min<std::uint64_t>(settings().threads, blocks)) - 1;
  if (helpers > 0) {
    Crew::get(helpers).run(helpers, work);
  } else {
    work();
  }
}

bool below_kernel_stack(const void* p) {
  return current_thread != nullptr && Worker::mine().below_stack(p);
}

int block_barrier(int predicate, std::source_location site) {
  return Worker::mine().barrier(predicate, site);
}

std::uint64_t warp_exchange(WarpPrimitive primitive, unsigned mask, std::uint64_t value,
                            unsigned source_lane, std::source_location site) {
  return Worker::mine().exchange(primitive, mask, value, source_lane, site);
}

unsigned char* static_shared(const void* key, std::size_t bytes, std::size_t alignment) {
  return Worker::mine().static_shared(key, bytes, alignment);
}

void fail_shared_uninitialised(long long index, long long size) {
  fail_in_kernel("read uninitialised shared memory: element %lld of %lld was never written", index,
                 size);
}

void fail_shared_bounds(long long index, long long size) {
  fail_in_kernel("reached element %lld of shared memory that has %lld", index, size);
}

void fail_shared_race(const char* what, const Cell& cell, long long index) {
  const Block& block = *current_thread->block;
  const bool write = cell.write_epoch == block.epoch;
  std::string other = "several warps";
  if (write && std::strcmp(what, "overwrites") != 0) {
    other = cell.writer == atomic_writer ? "an atomic" : "thread " + std::to_string(cell.writer);
  } else if (cell.read_warp != several_warps) {
    other = "lanes of warp " + std::to_string(cell.read_warp);
  }
  fail_in_kernel(
      "has a race in shared memory: %s element %lld, which %s %s since the last "
      "barrier (is a __syncthreads missing?)",
      what, index, other.c_str(), std::strcmp(what, "overwrites") == 0 ? "read" : "wrote");
}

}  // namespace emulator
