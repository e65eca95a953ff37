#pragma once

// What can be said of a user and an item without training a network. Each signal is a score
// f(u, i) of its own (`cfaa_gpu baseline`) and an input of the weighted scorer. With L_u the items
// that u liked, n_i the users who liked i, X (users, items) of ones, M (items, terms) the unit
// TF-IDF rows of host/signals/term_vectors.h:
//
//   popularity   log(1 + n_i)
//   content      sum_{j in L_u} <m_j, m_i>
//   encoder      the same with the mean sentence vectors of `embed`, centred, of norm 1
//   text         <m_u, m_i>, m_u from the reviews that u wrote
//   itemknn      sum_{j in L_u, near i} both(i, j) / (sqrt(n_i n_j) + shrink)
//   rp3beta      sum_{j in L_u} sum_{v likes both} (n_j |L_v|)^-alpha n_i^-beta
//   ease         X B,  B_ji = -P_ji / P_ii, B_ii = 0,  P = (X'X + lambda I)^-1   (EASE^R)
//   cease        the same with P = (X'X + omega M M' + lambda I)^-1              (C-EASE)
//   ials         <w_u, h_i>, implicit alternating least squares: host/ops/als.h
//
// Everything is deterministic and has the same bits for every number of threads.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/options.h"
#include "host/ops/als.h"
#include "host/signals/evidence.h"

namespace cfaa {

enum class SignalName { popularity, content, encoder, text, itemknn, rp3beta, ease, cease, ials };

inline constexpr int kSignalNames = 9;
const char* name_of(SignalName name);
// Error naming the nearest signal where there is none of that name.
SignalName signal_by_name(const std::string& name);

struct SignalOptions {
  // Of item-item matrices: entries kept of each column, the largest by absolute value; 0: all.
  int64_t neighbours = 0;
  int64_t knn_neighbours = 400;
  double knn_shrink = 50;
  double rp3_alpha = 0.5;
  double rp3_beta = 0;
  double ease_lambda = 200;
  double cease_lambda = 200;
  double cease_omega = 20;
  int64_t ials_dim = 64;
  double ials_alpha = 0.01;
  double ials_lambda = 0.1;
  int64_t ials_sweeps = 16;
  uint64_t seed = 0;  // of the factors that ials starts from
};

// A score as a sum: bias_i + sum_{j in L_u} votes(j, i) + <words_u, words_i> + <factors_u,
// factors_i>. Each signal has one of these parts; the others are empty.
struct Signal {
  SignalName name = SignalName::popularity;
  std::vector<float> bias;  // (items)
  SparseRows votes;         // (items, items)
  SparseRows user_words;    // (users, terms)
  SparseRows word_items;    // (terms, items)
  int64_t dim = 0;
  std::vector<float> user_factors;  // (users, dim)
  std::vector<float> item_factors;  // (items, dim)
  std::vector<float> als_diagonal;  // (dim) by which factors of a later user are solved for
};

// A user's side of a signal.
struct SignalUser {
  std::span<const int32_t> liked;       // items, ascending
  std::span<const int32_t> terms;       // where the signal is of words: the user's, ascending,
  std::span<const float> term_weights;  // and what they weigh
  std::span<const float> factors;       // (dim) where it is of factors
};

// Of a user of the evidence that the signal was made from.
SignalUser signal_user(const Signal& signal, const Evidence& evidence, int32_t user);

AlsOptions als_options(const SignalOptions& options);

// False where a signal's memory grows with the square of the items and the device has not so much.
bool fits_in_memory(Context& context, SignalName name, int64_t items);

// Error where the device has no room for it, and where `encoder` is asked of reviews without
// vectors.
Signal make_signal(Context& context, const Evidence& evidence, SignalName name,
                   const SignalOptions& options);

// row (items) += scale * f(user, .), added up in double.
void add_signal_row(const Signal& signal, const SignalUser& user, double scale, double* row);

// The mean over users of the variance of f(u, .) within the user's row, square root taken. Over
// every user, or over 2000 evenly spaced ones where there are more.
double spread_within_rows(Context& context, const Signal& signal, const Evidence& evidence);

}  // namespace cfaa
