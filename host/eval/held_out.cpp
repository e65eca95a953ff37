#include "host/eval/held_out.h"

#include "host/data/dataset.h"

namespace cfaa {
namespace {

void append(const SplitRows& rows, std::vector<std::pair<int32_t, int32_t>>& pairs) {
  for (std::size_t i = 0; i < rows.user.size(); ++i) pairs.emplace_back(rows.user[i], rows.item[i]);
}

}  // namespace

Mask resolve(Mask mask, Split split) {
  if (mask != Mask::automatic) return mask;
  return split == Split::test ? Mask::train_valid : Mask::train;
}

HeldOut make_held_out(const Domain& domain, Split split, Mask mask) {
  HeldOut held_out;
  held_out.items = domain.items.size();

  std::vector<std::pair<int32_t, int32_t>> masked;
  mask = resolve(mask, split);
  if (mask != Mask::none) append(domain.train, masked);
  if (mask == Mask::train_valid) append(domain.valid, masked);
  if (mask == Mask::train) {
    for (std::size_t i = 0; i < domain.valid.user.size(); ++i) {
      if (!domain.valid.has_label(i))
        masked.emplace_back(domain.valid.user[i], domain.valid.item[i]);
    }
  }
  held_out.masked = make_user_items(domain.users.size(), std::move(masked));

  std::vector<std::pair<int32_t, int32_t>> positives;
  const SplitRows& rows = domain.rows(split);
  for (std::size_t i = 0; i < rows.user.size(); ++i) {
    if (rows.label[i] > 0) positives.emplace_back(rows.user[i], rows.item[i]);
  }
  held_out.positives = make_user_items(domain.users.size(), std::move(positives));

  held_out.cold_user.assign(static_cast<std::size_t>(domain.users.size()), 1);
  held_out.cold_item.assign(static_cast<std::size_t>(domain.items.size()), 1);
  for (std::size_t i = 0; i < domain.train.user.size(); ++i) {
    if (!domain.train.has_label(i)) continue;
    held_out.cold_user[static_cast<std::size_t>(domain.train.user[i])] = 0;
    held_out.cold_item[static_cast<std::size_t>(domain.train.item[i])] = 0;
  }
  return held_out;
}

}  // namespace cfaa
