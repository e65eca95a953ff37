#pragma once
// How the emulated device says no. What a GPU would leave undefined ends the program with one line
// on stderr; what CUDA answers with an error code gets that code, with the reason on stderr.

namespace emulator {

// "cfaa emulator: ..." on stderr, then abort().
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);

// "cfaa emulator: ..." on stderr: why a call is about to return an error.
[[gnu::format(printf, 1, 2)]] void explain(const char* format, ...);

// " in kernel K block (x, y, z) thread (x, y, z)" of the calling host thread, or "" outside of one.
// Safe in a signal handler.
const char* kernel_place();

}  // namespace emulator
