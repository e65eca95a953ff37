#pragma once

// Runs sequences through an engine as the pipeline does: rows of one padded length together,
// several batches under way.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "host/core/error.h"
#include "host/encoder/encoder.h"
#include "host/encoder/network.h"
#include "tests/on_device.h"

namespace cfaa::test {

using Ids = std::vector<int32_t>;
using Vectors = std::vector<std::vector<float>>;

// Skipped, with the reason, on a device whose engine this build lacks.
class OnEncoderDevice : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    try {
      make_network_builder(context(), {});
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
  }
};

// The vector of each sequence, in order. At most `rows` sequences a batch (0: as many as the engine
// likes); the places behind a sequence hold `filler`.
inline Vectors encode_all(NetworkEngine& engine, const std::vector<Ids>& sequences,
                          int64_t rows = 0, int32_t filler = 0) {
  std::map<int64_t, std::vector<std::size_t>> by_length;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    by_length[engine.padded_length(static_cast<int64_t>(sequences[i].size()))].push_back(i);
  }
  Vectors vectors(sequences.size());
  std::vector<std::vector<std::size_t>> under_way(static_cast<std::size_t>(engine.slots()));
  const auto finish = [&](int slot) {
    auto& members = under_way[static_cast<std::size_t>(slot)];
    if (members.empty()) return;
    const MatrixView<const float> result = engine.finish(slot);
    EXPECT_EQ(result.rows(), static_cast<int64_t>(members.size()));
    EXPECT_EQ(result.cols(), engine.width());
    for (std::size_t r = 0; r < members.size(); ++r) {
      const float* row = &result(static_cast<int64_t>(r), 0);
      vectors[members[r]].assign(row, row + result.cols());
    }
    members.clear();
  };
  int next = 0;
  for (const auto& [length, members] : by_length) {
    const auto step = static_cast<std::size_t>(rows > 0 ? std::min(rows, engine.batch_rows(length))
                                                        : engine.batch_rows(length));
    for (std::size_t begin = 0; begin < members.size(); begin += step) {
      const std::size_t end = std::min(members.size(), begin + step);
      Ids ids, lengths;
      for (std::size_t i = begin; i < end; ++i) {
        const Ids& sequence = sequences[members[i]];
        ids.insert(ids.end(), sequence.begin(), sequence.end());
        ids.resize((i - begin + 1) * static_cast<std::size_t>(length), filler);
        lengths.push_back(static_cast<int32_t>(sequence.size()));
      }
      finish(next);
      under_way[static_cast<std::size_t>(next)].assign(members.begin() + static_cast<long>(begin),
                                                       members.begin() + static_cast<long>(end));
      const auto count = static_cast<int64_t>(lengths.size());
      engine.start(next, {{ids.data(), {count, length}}, {lengths.data(), {count}}});
      next = (next + 1) % engine.slots();
    }
  }
  for (int slot = 0; slot < engine.slots(); ++slot) finish(slot);
  return vectors;
}

// Row by row: cosine above `cosine`, and no element off by more than `tolerance` of the row's
// length. NaN fails.
template <class Expected>
testing::AssertionResult same_vectors(const Vectors& actual,
                                      const std::vector<std::vector<Expected>>& expected,
                                      double cosine, double tolerance) {
  if (actual.size() != expected.size() || actual.empty()) {
    return testing::AssertionFailure() << actual.size() << " rows, not " << expected.size();
  }
  for (std::size_t r = 0; r < actual.size(); ++r) {
    if (actual[r].size() != expected[r].size()) {
      return testing::AssertionFailure() << "row " << r << " has " << actual[r].size()
                                         << " features, not " << expected[r].size();
    }
    double aa = 0, bb = 0, ab = 0, worst = 0;
    for (std::size_t i = 0; i < actual[r].size(); ++i) {
      const double a = actual[r][i], b = expected[r][i];
      aa += a * a, bb += b * b, ab += a * b;
      const double off = std::abs(a - b);
      if (!(off <= worst)) worst = off;
    }
    const double angle = ab / std::sqrt(aa * bb);
    if (!(angle > cosine) || !(worst <= tolerance * std::sqrt(bb))) {
      return testing::AssertionFailure()
             << "row " << r << ": cosine " << angle << ", largest difference " << worst
             << " at a length of " << std::sqrt(bb);
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace cfaa::test
