#include "host/signals/later_users.h"

#include "host/core/error.h"
#include "host/signals/device_rows.h"

namespace cfaa {

SignalUser LaterUsers::user(int32_t which) const {
  SignalUser user;
  user.liked = liked.columns_of(which);
  if (words.columns > 0) {
    user.terms = words.columns_of(which);
    user.term_weights = words.values_of(which);
  }
  const auto width = static_cast<std::size_t>(dim);
  user.factors = std::span(factors).subspan(static_cast<std::size_t>(which) * width, width);
  return user;
}

LaterUsers place_later_users(Context& context, const Evidence& evidence,
                             std::span<const Signal> signals, const SignalOptions& options,
                             SparseRows liked, const ReviewTerms& reviews,
                             std::span<const int32_t> author) {
  CFAA_ASSERT(liked.columns == evidence.items());
  LaterUsers placed;
  placed.liked = std::move(liked);
  for (const Signal& signal : signals) {
    if (signal.name == SignalName::text) {
      placed.words = later_term_vectors(context.threads(), reviews, placed.users(), author,
                                        evidence.text.inverse_frequency);
    }
    if (signal.dim > 0) {
      placed.dim = signal.dim;
      const DeviceRows rows(context, placed.liked);
      const Tensor<float, 2> items(context, {evidence.items(), signal.dim},
                                   signal.item_factors.data());
      const Tensor<float, 2> users(context, {placed.users(), signal.dim});
      als_later_rows<float>(context, rows.view(), als_options(options), signal.als_diagonal,
                            items.view(), users.view());
      placed.factors = users.to_host();
    }
  }
  return placed;
}

}  // namespace cfaa
