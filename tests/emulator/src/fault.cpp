// Messages of failures, and the handler that turns a fault in device memory into one.

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <signal.h>
#include <unistd.h>

#include "emulator/device.h"
#include "executor.h"
#include "fail.h"
#include "memory.h"
#include "sanitizers.h"

namespace emulator {
namespace {

constexpr std::size_t line_capacity = 1024;

// One write, so that lines of several threads stay whole.
void print_line(const char* text) {
  char line[line_capacity + 32];
  const int length = std::snprintf(line, sizeof(line), "cfaa emulator: %s\n", text);
  if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0) return;
}

struct sigaction previous_segv, previous_bus;

void on_fault(int signal, siginfo_t* info, void* context) {
  if (open_touched(info->si_addr)) return;
  bool write_access = false;
#if defined(__x86_64__)
  write_access = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#endif
  char text[line_capacity];
  const char* place = kernel_place();
  if (describe_fault(info->si_addr, write_access, text, sizeof(text))) {
    print_line(text);
    std::abort();
  }
  if (below_kernel_stack(info->si_addr)) {
    std::snprintf(text, sizeof(text),
                  "%s ran out of stack: its local variables and calls need more than 256 KiB",
                  place + 1);
    print_line(text);
    std::abort();
  }
  if (*place) {
    std::snprintf(
        text, sizeof(text), "%s %s address %p, which is no device memory%s", place + 1,
        write_access ? "wrote" : "read", info->si_addr,
        reinterpret_cast<std::uintptr_t>(info->si_addr) < 4096 ? " (a null pointer)" : "");
    print_line(text);
  }
  // Not ours: what was there before takes it when the instruction faults again.
  sigaction(signal, signal == SIGSEGV ? &previous_segv : &previous_bus, nullptr);
}

}  // namespace

void fail(const char* format, ...) {
  char text[line_capacity];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  print_line(text);
  std::abort();
}

void explain(const char* format, ...) {
  char text[line_capacity];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  print_line(text);
}

const char* kernel_place() {
  static thread_local char text[512];
  const Thread* t = current_thread;
  if (t == nullptr) return "";
  const Block& b = *t->block;
  std::snprintf(text, sizeof(text), " kernel %.300s block (%u, %u, %u) thread (%u, %u, %u)",
                b.kernel, b.index.x, b.index.y, b.index.z, t->index.x, t->index.y, t->index.z);
  return text;
}

void fail_in_kernel(const char* format, ...) {
  char text[line_capacity / 2];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  fail("%s %s", kernel_place() + 1, text);
}

void install_fault_handler() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_segv);
  sigaction(SIGBUS, &action, &previous_bus);
}

}  // namespace emulator

#if defined(__SANITIZE_ADDRESS__)
// AddressSanitizer calls this before its report: names the kernel that touched poisoned slack.
extern "C" void __asan_on_error() {
  char text[1024];
  const void* p = __asan_get_report_address();
  const bool write_access = __asan_get_report_access_type() != 0;
  if (p != nullptr && emulator::describe_poisoned(p, write_access, text, sizeof(text))) {
    emulator::explain("%s", text);
  }
}
#endif
