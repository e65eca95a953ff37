// Bytes per second: simdjson alone on one thread, and read_reviews (parsing, checks, interning,
// keeping the text, sorting) on one and two.
//
//   cmake --build --preset cpu --target reading_rate
//   build/cpu/reading_rate reviews.jsonl
//
// The file is read once before, so that all find it in the page cache. Seconds are of the processor
// (all threads) and of the clock; on a busy machine compare the former.

#include <simdjson.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <functional>

#include "host/data/readers/read_reviews.h"

namespace {

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void measure(const char* name, double bytes, const std::function<void()>& work) {
  double best = 1e9, best_clock = 1e9;
  for (int round = 0; round < 3; ++round) {
    const double before = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> clock = std::chrono::steady_clock::now() - start;
    best = std::min(best, processor_seconds() - before);
    best_clock = std::min(best_clock, clock.count());
  }
  std::printf("%-28s %6.2f s of the processor (%7.0f MB/s), %6.2f s of the clock (%7.0f MB/s)\n",
              name, best, bytes / best * 1e-6, best_clock, bytes / best_clock * 1e-6);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string path = count == 2 ? arguments[1] : "";
  simdjson::padded_string text;
  if (simdjson::padded_string::load(path).get(text)) {
    std::fprintf(stderr, "usage: reading_rate reviews.jsonl\n");
    return 2;
  }
  const auto bytes = static_cast<double>(text.size());
  measure("simdjson, 1 thread", bytes, [&] {
    simdjson::dom::parser parser;
    parser.threaded = false;
    std::size_t objects = 0;
    for (auto document : parser.parse_many(text, 1 << 20)) objects += document.is_object();
    if (objects == 0) std::puts("no objects");
  });
  for (const int threads : {1, 2}) {
    cfaa::ThreadPool pool(threads);
    measure(threads == 1 ? "read_reviews, 1 thread" : "read_reviews, 2 threads", bytes, [&] {
      cfaa::ReadReport report;
      cfaa::read_reviews({{path}}, {}, pool, report);
    });
  }
}
