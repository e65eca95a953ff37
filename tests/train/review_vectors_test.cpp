#include "host/train/review_vectors.h"

#include <gtest/gtest.h>

#include <limits>

#include "host/device/make_context.h"
#include "tests/refusal.h"

namespace cfaa::test {
namespace {

// Two users and two items: u0 wrote of i0 and i1, u1 of i1. Two numbers a vector.
class Reviews : public ::testing::Test {
 protected:
  Reviews() {
    for (const char* user : {"u0", "u1"}) domain_.users.append(user);
    for (const char* item : {"i0", "i1"}) domain_.items.append(item);
    domain_.train.user = {0, 0, 1};
    domain_.train.item = {0, 1, 1};
    domain_.train.rating = {5, 5, 5};
  }

  static ReviewSums sums_of(const std::vector<float>& sums, const std::vector<int32_t>& counts) {
    return {DType::f32, reinterpret_cast<const std::byte*>(sums.data()), counts.data(), 2, nullptr};
  }
  ReviewVectors make(ReviewScale scale) { return {domain_, sums_of(sums_, counts_), scale}; }
  std::vector<float> of(const ReviewVectors& vectors, std::size_t side, int32_t entity,
                        int32_t excluded) {
    std::vector<float> out(3);
    float share = vectors.share(side, entity, excluded);
    review_input<float>(*context_, vectors.arrays(side),
                        {{&entity, {1}}, {&excluded, {1}}, {&share, {1}}}, {out.data(), {1, 3}});
    return out;
  }

  std::unique_ptr<Context> context_ = make_context("cpu", {.threads = 1});

  Domain domain_;
  std::vector<float> sums_ = {2, 4, 3, -6, 8, 2};
  std::vector<int32_t> counts_ = {2, 3, 1};
};

using Vector = std::vector<float>;

TEST_F(Reviews, AreMeansOverSentencesWithoutTheExcludedInteraction) {
  const ReviewVectors vectors = make(ReviewScale::raw);

  EXPECT_EQ(of(vectors, kUser, 0, -1), (Vector{1, -0.4f, 0}));
  EXPECT_EQ(of(vectors, kUser, 0, 1), (Vector{1, 2, 0}));
  EXPECT_EQ(of(vectors, kItem, 1, 1), (Vector{8, 2, 0}));
}

TEST_F(Reviews, OfSummariesLoseTheExcludedInteractionOnEitherSide) {
  const std::vector<float> of_items = {0, 0, 3, -6, 8, 2};
  const std::vector<int32_t> counts = {0, 3, 1};
  const ReviewVectors vectors(domain_, {sums_of(sums_, counts_), sums_of(of_items, counts)},
                              ReviewScale::raw);

  EXPECT_EQ(of(vectors, kUser, 0, 1), (Vector{1, 2, 0}));
  EXPECT_EQ(of(vectors, kItem, 1, 1), (Vector{8, 2, 0}));
  EXPECT_EQ(of(vectors, kItem, 0, -1), (Vector{0, 0, 1}));
}

TEST_F(Reviews, SayWhereNoSentenceIsLeft) {
  counts_[2] = 0;
  const ReviewVectors vectors = make(ReviewScale::raw);

  EXPECT_EQ(of(vectors, kItem, 0, 0), (Vector{0, 0, 1}));
  EXPECT_EQ(of(vectors, kUser, 1, -1), (Vector{0, 0, 1}));
  EXPECT_EQ(vectors.absent(kUser), 1);
  EXPECT_EQ(vectors.absent(kItem), 0);
}

TEST_F(Reviews, HaveUnitSizeOrUnitSpreadWhereAsked) {
  const Vector unit = of(make(ReviewScale::unit), kUser, 0, 1);
  const ReviewVectors standardized = make(ReviewScale::standardize);

  EXPECT_NEAR(unit[0] * unit[0] + unit[1] * unit[1], 2, 1e-6);
  for (const std::size_t column : {0, 1}) {
    const float first = of(standardized, kUser, 0, -1)[column],
                second = of(standardized, kUser, 1, -1)[column];
    EXPECT_NEAR(first + second, 0, 1e-5);
    EXPECT_NEAR(std::abs(first), 1, 1e-5);
  }
}

TEST_F(Reviews, AreRefusedWithASumThatIsNotFiniteOrAnAbsurdCount) {
  sums_[3] = std::numeric_limits<float>::infinity();
  EXPECT_NE(error_of([&] { make(ReviewScale::raw); }).find("row 1 has a sum that is not finite"),
            std::string::npos);
  sums_[3] = 0;
  for (const int32_t absurd : {-1, std::numeric_limits<int32_t>::max()}) {
    counts_[2] = absurd;
    EXPECT_NE(error_of([&] { make(ReviewScale::raw); }).find("row 2 has"), std::string::npos);
  }
}

}  // namespace
}  // namespace cfaa::test
