#include "host/core/terminal/stop_signal.h"

#include <signal.h>

#include <array>

#include "host/core/error.h"

namespace cfaa {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

// What a signal handler may touch is global and lock-free.
std::atomic<bool> in_use{false}, stop_requested{false};
std::atomic<int> received{0};
std::array<struct sigaction, kSignals.size()> before;

static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void request_stop(int number) {
  received.store(number);
  stop_requested.store(true);
}

}  // namespace

StopSignal::StopSignal() {
  CFAA_ASSERT(!in_use.exchange(true));
  received.store(0);
  stop_requested.store(false);
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before[i], nullptr);
  }
  in_use.store(false);
}

const std::atomic<bool>& StopSignal::requested() const {
  return stop_requested;
}

std::string StopSignal::name() const {
  const int number = received.load();
  return number == SIGINT ? "SIGINT" : number == SIGHUP ? "SIGHUP" : "SIGTERM";
}

int StopSignal::exit_code() const {
  const int number = received.load();
  return 128 + (number == 0 ? SIGTERM : number);  // none: another rank of the job received it
}

}  // namespace cfaa
