// Random review vectors for a prepared directory, in the files that `embed` writes: to train and
// measure at the sizes of a large encoder without waiting for one.
//
//   cmake --build --preset cpu --target random_reviews && build/cpu/random_reviews data 768

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "host/core/dtype.h"
#include "host/embed/review_sums.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"
#include "host/io/npy.h"

namespace cfaa {
namespace {

// float16 of 0.5 ... 1 of either sign, four at a time from one xorshift.
void write_random(const std::string& path, int64_t rows, int64_t width) {
  AtomicFile file(path);
  file.write(npy_header(DType::f16, {rows, width}));
  uint64_t state = 88172645463325252u;
  std::vector<uint64_t> buffer(1 << 16);
  for (int64_t left = 2 * rows * width; left > 0;) {
    for (uint64_t& word : buffer) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      word = (state & 0x83FF83FF83FF83FFu) | 0x3800380038003800u;
    }
    const int64_t bytes = std::min<int64_t>(left, std::ssize(buffer) * 8);
    file.write({reinterpret_cast<const char*>(buffer.data()), static_cast<std::size_t>(bytes)});
    left -= bytes;
  }
  file.commit();
}

void write_reviews(const Domain& domain, int64_t width) {
  const auto path = [&](const char* name) { return (domain.path / name).string(); };
  const int64_t rows = domain.train.size();
  write_random(path("review_sums.npy"), rows, width);
  const std::vector<int32_t> ones(static_cast<std::size_t>(rows), 1);
  write_npy(path("review_counts.npy"), {rows}, ones.data());
  const nlohmann::json description = {{"format", 1},
                                      {"width", width},
                                      {"settings", to_json(review_identity(domain))},
                                      {"counts", nlohmann::json::object()}};
  write_file(path("embed.json"), description.dump(2) + "\n");
}

}  // namespace
}  // namespace cfaa

int main(int count, char** arguments) {
  if (count != 3 || std::atoll(arguments[2]) < 1) {
    std::fprintf(stderr, "usage: random_reviews DATA WIDTH\n");
    return 2;
  }
  try {
    const cfaa::Dataset data = cfaa::load_dataset(arguments[1]);
    for (const cfaa::Domain* domain : {&data.source, &data.target}) {
      cfaa::write_reviews(*domain, std::atoll(arguments[2]));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
