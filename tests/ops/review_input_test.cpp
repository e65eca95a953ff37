#include "host/ops/review_input.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "host/device/placed_bytes.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class ReviewInput : public OnDevice {};
CFAA_TEST_ON_DEVICES(ReviewInput);

enum class Scaled { no, standardized, unit };

// Three entities, five reviews, in host memory; everything is made from the number of columns.
struct HostReviews {
  HostReviews(int64_t columns, DType dtype, Scaled scaled) {
    const std::vector<float> sums = normal<float>(5 * columns, 3);
    totals = normal<float>(3 * columns, 4, 0.5, 3);
    for (const float sum : sums) {
      halves.push_back(float_to_half(sum));
      floats.push_back(dtype == DType::f16 ? half_to_float(halves.back()) : sum);
    }
    if (scaled == Scaled::standardized) {
      mean = normal<float>(columns, 5);
      factor = normal<float>(columns, 6);
    }
    const void* sum = dtype == DType::f16 ? static_cast<const void*>(halves.data()) : floats.data();
    arrays = {.total = {totals.data(), {3, columns}},
              .dtype = dtype,
              .sum = static_cast<const std::byte*>(sum),
              .reviews = 5,
              .mean = {mean.empty() ? nullptr : mean.data(), {std::ssize(mean)}},
              .factor = {factor.empty() ? nullptr : factor.data(), {std::ssize(factor)}},
              .unit = scaled == Scaled::unit};
  }

  std::vector<float> totals, floats, mean, factor;
  std::vector<uint16_t> halves;
  ReviewArrays arrays;
};

const std::vector<int32_t> kEntity = {0, 2, 1, 2, 0}, kLeftOut = {-1, 4, 0, -1, 3};
const std::vector<float> kShare = {0.25f, 1, 0, 1.0f / 3, 1.0f / 7};

// What the contract says of row r, in plain loops.
std::vector<float> expected_row(const HostReviews& reviews, std::size_t r) {
  const auto columns = static_cast<std::size_t>(reviews.arrays.total.cols());
  std::vector<float> row(columns + 1);
  if (kShare[r] == 0) {
    row[columns] = 1;
    return row;
  }
  double squares = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    float x = reviews.totals[static_cast<std::size_t>(kEntity[r]) * columns + c];
    if (kLeftOut[r] >= 0) x -= reviews.floats[static_cast<std::size_t>(kLeftOut[r]) * columns + c];
    x *= kShare[r];
    if (!reviews.mean.empty()) x -= reviews.mean[c];
    if (!reviews.mean.empty()) x *= reviews.factor[c];
    row[c] = x;
    squares += static_cast<double>(x) * x;
  }
  const double rms = std::sqrt(squares / static_cast<double>(columns));
  for (std::size_t c = 0; reviews.arrays.unit && c < columns; ++c) {
    row[c] = static_cast<float>(row[c] / rms);
  }
  return row;
}

template <class T>
std::vector<T> run(Context& context, const HostReviews& reviews, Placement placement) {
  const ReviewArrays& host = reviews.arrays;
  const auto floats = static_cast<std::size_t>(host.total.size()) * sizeof(float);
  const auto moments = static_cast<std::size_t>(host.mean.size()) * sizeof(float);
  const auto sums = static_cast<std::size_t>(5 * host.total.cols()) * size_of(host.dtype);
  const PlacedBytes total(context, host.total.data, floats, placement),
      sum(context, host.sum, sums, placement), mean(context, host.mean.data, moments, placement),
      factor(context, host.factor.data, moments, placement);
  ReviewArrays placed = host;
  placed.total.data = static_cast<const float*>(total.data());
  placed.sum = static_cast<const std::byte*>(sum.data());
  if (moments > 0) placed.mean.data = static_cast<const float*>(mean.data());
  if (moments > 0) placed.factor.data = static_cast<const float*>(factor.data());
  const auto rows = std::ssize(kEntity);
  const Tensor<int32_t, 1> entity(context, {rows}, kEntity.data()),
      left_out(context, {rows}, kLeftOut.data());
  const Tensor<float, 1> share(context, {rows}, kShare.data());
  const auto size = static_cast<std::size_t>(rows * (host.total.cols() + 1));
  const PaddedMatrix<T> out(context, rows, host.total.cols() + 1,
                            std::vector<T>(size, std::numeric_limits<T>::quiet_NaN()), 3);

  review_input<T>(context, placed, {entity.view(), left_out.view(), share.view()}, out.view());

  return out.to_host();
}

template <class T>
void expect_the_contract(Context& context) {
  for (const int64_t columns : {1, 31, 32, 33, 257}) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      for (const Scaled scaled : {Scaled::no, Scaled::standardized, Scaled::unit}) {
        const HostReviews reviews(columns, dtype, scaled);
        std::vector<T> expected;
        for (std::size_t r = 0; r < kEntity.size(); ++r) {
          const std::vector<float> row = expected_row(reviews, r);
          expected.insert(expected.end(), row.begin(), row.end());
        }

        const std::vector<T> found = run<T>(context, reviews, Placement::device);

        if (scaled == Scaled::unit) {
          EXPECT_TRUE(close_each(found, expected, 1e-6, 1e-3)) << columns << " columns";
        } else {
          EXPECT_EQ(found, expected) << columns << " columns of " << name_of(dtype);
        }
      }
    }
  }
}

TEST_P(ReviewInput, IsWhatTheContractSaysToTheBit) {
  expect_the_contract<float>(context());
  expect_the_contract<double>(context());
}

TEST_P(ReviewInput, HasTheSameBitsWhereverTheArraysLie) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Scaled scaled : {Scaled::no, Scaled::standardized, Scaled::unit}) {
      const HostReviews reviews(70, dtype, scaled);

      EXPECT_EQ(run<float>(context(), reviews, Placement::device),
                run<float>(context(), reviews, Placement::host));
    }
  }
}

TEST_P(ReviewInput, ArraysAreReadWhereTheyAreOnTheCpuAndCopiedForAGpu) {
  const std::vector<float> values = {1, 2, 3};
  const std::size_t bytes = values.size() * sizeof(float);
  const bool gpu = GetParam() == "cuda";

  const PlacedBytes by_room(context(), values.data(), bytes),
      host(context(), values.data(), bytes, Placement::host);

  EXPECT_EQ(by_room.data() == values.data(), !gpu);
  EXPECT_EQ(by_room.copied().device, gpu ? bytes : 0);
  EXPECT_EQ(host.copied().host, gpu ? bytes : 0);
  EXPECT_EQ(host.copied().device, 0u);
}

}  // namespace
}  // namespace cfaa::test
