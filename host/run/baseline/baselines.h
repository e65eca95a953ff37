#pragma once

// What a user already has: models of one domain alone, as reference rows under the same protocol
// (`cfaa_gpu baseline`). They learn from a domain's training split: each of the signals of
// host/signals/signal.h by itself, with whole item-item matrices, and
//
//   mf           matrix factorisation with a pairwise loss:
//   host/run/baseline/matrix_factorization.h

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/options.h"
#include "host/data/dataset.h"
#include "host/eval/scorer.h"
#include "host/signals/signal_scores.h"
#include "host/train/trained_model.h"

namespace cfaa {

enum class ContentVectors { tfidf, encoder };

// Defaults by validation on Digital Music and Musical Instruments (docs/signals.md); of mf also on
// a synthetic target. A row of a table decays only when touched, hence the large decay.
struct BaselineOptions {
  SignalOptions signal;
  ContentVectors vectors = ContentVectors::tfidf;  // of content
  // mf
  int64_t dim = 64;
  double learning_rate = 1e-3;
  double weight_decay = 4;
  int64_t epochs = 200;
  int64_t batch_size = 256;
  int64_t negatives = 4;
  int64_t patience = 20;
  int64_t seed = 0;
};

// Keys of the command's flags, such as --weight-decay.
OptionSet baseline_option_set(BaselineOptions& options);

// Items that each user liked in training.
UserItems training_positives(const Domain& domain);

// popularity, itemknn, mf, rp3beta, ease, cease, ials, content, text.
const std::vector<std::string>& baseline_names();

// One setting that `--tune` tries, and how it is printed: "lambda 50, omega 20".
struct BaselineSetting {
  BaselineOptions options;
  std::string description;
};

// A fixed grid of at most eight settings around `options`; empty where there is nothing to tune.
std::vector<BaselineSetting> baseline_grid(const std::string& name, const BaselineOptions& options);

// A domain's signals, with texts and vectors read only where a baseline asks for them.
class SignalBaselines {
 public:
  SignalBaselines(Context& context, const Domain& domain) : context_(context), domain_(domain) {}

  // Valid until the next call. Error where the name is none of a signal's, and where the domain has
  // no text, or no vectors, that it needs.
  std::unique_ptr<Scorer> scorer(const std::string& name, const BaselineOptions& options);

 private:
  const Evidence& evidence(SignalName name);

  Context& context_;
  const Domain& domain_;
  std::optional<Evidence> without_text_, with_text_;
  std::optional<SignalScores> scores_;
};

}  // namespace cfaa
