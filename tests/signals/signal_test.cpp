// Each signal against what it says it is.

#include "host/signals/signal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "host/device/make_context.h"
#include "host/signals/signal_scores.h"
#include "tests/compare.h"
#include "tests/on_device.h"
#include "tests/refusal.h"
#include "tests/signals/small_reviews.h"

namespace cfaa::test {
namespace {

std::vector<double> row_of(const Signal& signal, const Evidence& evidence, int32_t user) {
  std::vector<double> row(static_cast<std::size_t>(evidence.items()));
  add_signal_row(signal, signal_user(signal, evidence, user), 1, row.data());
  return row;
}

// Users 0 and 1 like items 0 and 1, user 2 likes 1 and 2; nobody likes item 3.
Evidence tiny_evidence() {
  Evidence evidence;
  evidence.liked = join_rows(4, {{{0, 1}, {1, 1}}, {{0, 1}, {1, 1}}, {{1, 1}, {2, 1}}});
  evidence.likers = transpose(evidence.liked);
  evidence.known = evidence.liked;
  return evidence;
}

class Signals : public OnDevice {};
CFAA_TEST_ON_DEVICES(Signals);

TEST_P(Signals, PopularityIsTheLogOfTheLikers) {
  const Evidence evidence = tiny_evidence();

  const Signal signal = make_signal(context(), evidence, SignalName::popularity, {});

  EXPECT_TRUE(close(row_of(signal, evidence, 0),
                    std::vector<double>{std::log(3.), std::log(4.), std::log(2.), 0}, 1e-7));
}

TEST_P(Signals, ItemSimilarityIsTheShrunkCosine) {
  const Evidence evidence = tiny_evidence();
  SignalOptions options;
  options.knn_shrink = 0.5;

  const Signal signal = make_signal(context(), evidence, SignalName::itemknn, options);

  const double s01 = 2 / (std::sqrt(6.0) + 0.5), s12 = 1 / (std::sqrt(3.0) + 0.5);
  EXPECT_TRUE(close(row_of(signal, evidence, 0), std::vector<double>{s01, s01, s12, 0}, 1e-7));
}

TEST_P(Signals, OnlyTheMostSimilarItemsVote) {
  const Evidence evidence = tiny_evidence();
  SignalOptions options;
  options.knn_shrink = 0;
  options.knn_neighbours = 1;

  const Signal signal = make_signal(context(), evidence, SignalName::itemknn, options);

  const double s01 = 2 / std::sqrt(6.0), s12 = 1 / std::sqrt(3.0);
  EXPECT_TRUE(close(row_of(signal, evidence, 2), std::vector<double>{s01, 0, s12, 0}, 1e-7))
      << "item 1 is nearest to 0 and to 2, item 0 to 1";
}

TEST_P(Signals, RandomWalksEqualThoseCountedByHand) {
  const Evidence evidence = tiny_evidence();
  SignalOptions options;
  options.rp3_alpha = 1;
  options.rp3_beta = 0.5;

  const Signal signal = make_signal(context(), evidence, SignalName::rp3beta, options);

  // From 0: to users 0 and 1 (1/2 each), each to items 0 and 1 (1/2): 1/2 at item 1; n_1 = 3.
  // From 1: to each of three users, 1/2 at 0 or 2: item 0 gets 2/6, item 2 gets 1/6.
  EXPECT_TRUE(close(row_of(signal, evidence, 0),
                    std::vector<double>{2. / 6 / std::sqrt(2.), .5 / std::sqrt(3.), 1. / 6, 0},
                    1e-6));
}

TEST_P(Signals, EaseEqualsTheHandSolvedCase) {
  const Evidence evidence = tiny_evidence();
  SignalOptions options;
  options.ease_lambda = 1;

  const Signal signal = make_signal(context(), evidence, SignalName::ease, options);

  // G = [3 2 0; 2 4 1; 0 1 2], det 13, and item 3 apart. Cofactors: 7 -4 2; -4 6 -3; 2 -3 8.
  // B_ji = -P_ji / P_ii; user 0 has items 0 and 1.
  EXPECT_TRUE(close(row_of(signal, evidence, 0),
                    std::vector<double>{4. / 7, 4. / 6, (-2. + 3.) / 8, 0}, 1e-6));
}

// B minimises ||X - X B||^2 + omega ||M' - M' B||^2 + lambda ||B||^2 with a zero diagonal: off the
// diagonal G B = G with G = X'X + omega M M' and lambda B on the right.
TEST_P(Signals, ClosedFormsAreStationary) {
  const SmallReviews reviews(40, 17);
  const Evidence evidence = gather_evidence(context().threads(), reviews.read(context().threads()));
  SignalOptions options;
  options.ease_lambda = options.cease_lambda = 3;
  options.cease_omega = 5;
  const auto n = static_cast<std::size_t>(evidence.items());
  for (const SignalName name : {SignalName::ease, SignalName::cease}) {
    const double omega = name == SignalName::cease ? options.cease_omega : 0;
    std::vector<double> gram(n * n), b(n * n);
    for (int64_t u = 0; u < evidence.users(); ++u) {
      for (const int32_t i : evidence.liked.columns_of(u)) {
        for (const int32_t j : evidence.liked.columns_of(u)) {
          gram[static_cast<std::size_t>(i) * n + static_cast<std::size_t>(j)] += 1;
        }
      }
    }
    const SparseRows terms = transpose(evidence.text.items);
    for (int64_t t = 0; t < terms.rows(); ++t) {
      const auto items = terms.columns_of(t);
      const auto values = terms.values_of(t);
      for (std::size_t x = 0; x < items.size(); ++x) {
        for (std::size_t y = 0; y < items.size(); ++y) {
          gram[static_cast<std::size_t>(items[x]) * n + static_cast<std::size_t>(items[y])] +=
              omega * double{values[x]} * double{values[y]};
        }
      }
    }

    const Signal signal = make_signal(context(), evidence, name, options);

    for (int64_t j = 0; j < signal.votes.rows(); ++j) {
      const auto columns = signal.votes.columns_of(j);
      for (std::size_t e = 0; e < columns.size(); ++e) {
        b[static_cast<std::size_t>(j) * n + static_cast<std::size_t>(columns[e])] =
            signal.votes.values_of(j)[e];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(b[i * n + i], 0);
      for (std::size_t j = 0; j < n; ++j) {
        if (i == j) continue;
        double gradient = 3 * b[i * n + j] - gram[i * n + j];
        for (std::size_t k = 0; k < n; ++k) gradient += gram[i * n + k] * b[k * n + j];
        ASSERT_LE(std::abs(gradient), 1e-5) << name_of(name) << " " << i << " " << j;
      }
    }
  }
}

TEST_P(Signals, ContentIsTheSumOfCosinesWithTheUsersItems) {
  const SmallReviews reviews(30, 12);
  const Evidence evidence = gather_evidence(context().threads(), reviews.read(context().threads()));

  const Signal content = make_signal(context(), evidence, SignalName::content, {});
  const Signal text = make_signal(context(), evidence, SignalName::text, {});

  const auto dense = [](const SparseRows& rows, int64_t r) {
    std::vector<double> values(static_cast<std::size_t>(rows.columns));
    for (std::size_t e = 0; e < rows.columns_of(r).size(); ++e) {
      values[static_cast<std::size_t>(rows.columns_of(r)[e])] = rows.values_of(r)[e];
    }
    return values;
  };
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t t = 0; t < a.size(); ++t) sum += a[t] * b[t];
    return sum;
  };
  const int32_t user = 4;
  std::vector<double> by_items, by_words;
  for (int32_t i = 0; i < 12; ++i) {
    const auto m_i = dense(evidence.text.items, i);
    double sum = 0;
    for (const int32_t j : evidence.liked.columns_of(user)) {
      if (j != i) sum += product(m_i, dense(evidence.text.items, j));
    }
    by_items.push_back(sum);
    by_words.push_back(product(m_i, dense(evidence.text.users, user)));
  }
  EXPECT_TRUE(close(row_of(content, evidence, user), by_items, 1e-6));
  EXPECT_TRUE(close(row_of(text, evidence, user), by_words, 1e-6));
}

// The objective that both half-sweeps descend, with the c of host/ops/als.h on either side.
double ials_objective(const Evidence& evidence, const SignalOptions& options, const Signal& s) {
  const auto norm = [&](const std::vector<float>& rows, int64_t r) {
    double sum = 0;
    for (int64_t q = 0; q < s.dim; ++q) {
      const double x = rows[static_cast<std::size_t>(r * s.dim + q)];
      sum += x * x;
    }
    return sum;
  };
  double total = 0;
  const auto users = static_cast<double>(evidence.users());
  const auto items = static_cast<double>(evidence.items());
  for (int32_t u = 0; u < evidence.users(); ++u) {
    const std::vector<double> row = row_of(s, evidence, u);
    const auto liked = evidence.liked.columns_of(u);
    for (const double x : row) total += options.ials_alpha * x * x;
    for (const int32_t i : liked) {
      total += (1 - row[static_cast<std::size_t>(i)]) * (1 - row[static_cast<std::size_t>(i)]);
    }
    total += options.ials_lambda *
             (static_cast<double>(liked.size()) + options.ials_alpha * items) *
             norm(s.user_factors, u);
  }
  for (int64_t i = 0; i < evidence.items(); ++i) {
    total +=
        options.ials_lambda *
        (static_cast<double>(evidence.likers.columns_of(i).size()) + options.ials_alpha * users) *
        norm(s.item_factors, i);
  }
  return total;
}

TEST_P(Signals, AlternatingLeastSquaresNeverRaiseTheirObjective) {
  const SmallReviews reviews(40, 17);
  const Evidence evidence = gather_evidence(context().threads(), reviews.read(context().threads()));
  SignalOptions options;
  options.ials_dim = 5;
  options.ials_lambda = 0.02;
  double before = HUGE_VAL;
  for (int64_t sweeps = 0; sweeps < 8; ++sweeps) {
    options.ials_sweeps = sweeps;

    const Signal signal = make_signal(context(), evidence, SignalName::ials, options);

    const double now = ials_objective(evidence, options, signal);
    EXPECT_LE(now, before * (1 + 1e-5)) << sweeps;
    before = now;
  }
}

TEST_P(Signals, TruncatedColumnsKeepTheirLargestVotes) {
  const SmallReviews reviews(40, 17);
  const Evidence evidence = gather_evidence(context().threads(), reviews.read(context().threads()));
  SignalOptions options;
  const SparseRows whole =
      transpose(make_signal(context(), evidence, SignalName::cease, options).votes);
  options.neighbours = 4;

  const SparseRows kept =
      transpose(make_signal(context(), evidence, SignalName::cease, options).votes);

  for (int64_t i = 0; i < kept.rows(); ++i) {
    std::vector<float> all(whole.values_of(i).begin(), whole.values_of(i).end());
    std::sort(all.begin(), all.end(), [](float a, float b) { return std::abs(a) > std::abs(b); });
    ASSERT_EQ(kept.values_of(i).size(), 4u);
    for (const float x : kept.values_of(i)) EXPECT_GE(std::abs(x), std::abs(all[3]));
  }
}

TEST_P(Signals, ScoresOfBlocksAndPairsAreTheWeightedRows) {
  const SmallReviews reviews(30, 12);
  const Evidence evidence = gather_evidence(context().threads(), reviews.read(context().threads()));
  std::vector<Signal> signals;
  std::vector<double> weights;
  for (const SignalName name : every_signal()) {
    signals.push_back(make_signal(context(), evidence, name, {}));
    weights.push_back(0.5 + 0.25 * static_cast<double>(weights.size()));
  }

  const SignalScores scores(context(), evidence, signals, weights);

  const std::vector<int32_t> users = {3, 29, 0};
  Tensor<float, 2> whole(context(), {3, 12}), part(context(), {3, 5});
  scores.fill(context(), users, 0, 12, whole.view());
  scores.fill(context(), users, 4, 9, part.view());
  const std::vector<float> on_device = whole.to_host(), of_part = part.to_host();
  for (std::size_t r = 0; r < users.size(); ++r) {
    std::vector<double> expected(12), pairs(12);
    for (std::size_t s = 0; s < signals.size(); ++s) {
      add_signal_row(signals[s], signal_user(signals[s], evidence, users[r]), weights[s],
                     expected.data());
    }
    const std::vector<int32_t> items = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    scores.score(users[r], items, pairs.data());
    const auto row = on_device.begin() + static_cast<std::ptrdiff_t>(r * 12);
    EXPECT_TRUE(close(std::vector<double>(row, row + 12), expected, 1e-5));
    EXPECT_TRUE(close(pairs, expected, 1e-5));
    for (std::size_t c = 0; c < 5; ++c) {
      EXPECT_TRUE(close(of_part[r * 5 + c], on_device[r * 12 + 4 + c], 1e-6));
    }
  }
}

TEST(SignalsOnTheCpu, HaveTheSameBitsOnEveryNumberOfThreads) {
  const SmallReviews reviews(60, 33);
  std::vector<std::vector<double>> rows;
  for (const int threads : {1, 2, 5}) {
    const auto context = make_context("cpu", {threads, 0});
    const Evidence evidence = gather_evidence(context->threads(), reviews.read(context->threads()));
    rows.emplace_back();
    for (const SignalName name : every_signal()) {
      const Signal signal = make_signal(*context, evidence, name, {});
      rows.back().push_back(spread_within_rows(*context, signal, evidence));
      for (int32_t u = 0; u < 60; ++u) {
        for (const double x : row_of(signal, evidence, u)) rows.back().push_back(x);
      }
    }
  }

  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(rows[0], rows[2]);
}

class SignalsThatDoNotFit : public OnDevice {};
CFAA_TEST_ON_DEVICES(SignalsThatDoNotFit);

TEST_P(SignalsThatDoNotFit, AreRefusedWithWhatIsFree) {
  Evidence evidence;
  evidence.likers.offset.assign(10'000'001, 0);
  evidence.liked.columns = 10'000'000;

  const std::string refusal =
      error_of([&] { make_signal(context(), evidence, SignalName::ease, {}); });

  const bool on_gpu = context().device() == DeviceKind::cuda;
  EXPECT_THAT(refusal, testing::HasSubstr(on_gpu ? "10000000 items needs 1600000.0 GB"
                                                 : "10000000 items needs 800000.0 GB"));
  EXPECT_EQ(refusal.find("free on the GPU") != std::string::npos, on_gpu);
  EXPECT_FALSE(fits_in_memory(context(), SignalName::cease, 10'000'000));
  EXPECT_TRUE(fits_in_memory(context(), SignalName::cease, 100));
  EXPECT_TRUE(fits_in_memory(context(), SignalName::itemknn, 10'000'000));
}

TEST(SignalsRefuse, EncoderVectorsThatAreNotThere) {
  const auto context = make_context("cpu", {1, 0});
  const Evidence evidence = tiny_evidence();

  EXPECT_THAT(error_of([&] { make_signal(*context, evidence, SignalName::encoder, {}); }),
              testing::HasSubstr("run cfaa_gpu embed first"));
}

TEST(SignalsRefuse, NamesThatAreNone) {
  EXPECT_THAT(error_of([] { signal_by_name("easy"); }), testing::HasSubstr("did you mean `ease`?"));
}

}  // namespace
}  // namespace cfaa::test
