#include "host/data/domain_index.h"

#include <xxhash.h>

#include <cstring>

#include "host/core/terminal/printable.h"

namespace cfaa {
namespace {

constexpr char kMagic[8] = {'C', 'F', 'A', 'A', 'I', 'D', 'X', '1'};

struct Header {
  char magic[8];
  uint64_t checksum;  // XXH3-64 of what follows the header
  TextIdentity identity;
  uint64_t users, user_bytes, items, item_bytes;
  uint64_t rows[3];
  uint64_t unused;
};
static_assert(sizeof(Header) == 160);

constexpr uint64_t padded(uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

template <class T>
void put(OutputFile& file, const std::vector<T>& values) {
  const uint64_t bytes = values.size() * sizeof(T);
  file.write({reinterpret_cast<const char*>(values.data()), bytes});
  file.write(std::string_view("\0\0\0\0\0\0\0", padded(bytes) - bytes));
}

class Taker {
 public:
  explicit Taker(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  bool take(uint64_t count, std::vector<T>& values) {
    if (count > bytes_.size() / sizeof(T)) return false;
    const uint64_t size = padded(count * sizeof(T));
    if (size > bytes_.size()) return false;
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data(), count * sizeof(T));
    bytes_.remove_prefix(size);
    return true;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

bool in_range(const std::vector<int32_t>& indices, int64_t count) {
  for (const int32_t index : indices) {
    if (index < 0 || index >= count) return false;
  }
  return true;
}

}  // namespace

void DomainIndex::write(OutputFile& file, const Domain& domain, const TextIdentity& identity) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.identity = identity;
  header.users = static_cast<uint64_t>(domain.users.size());
  header.user_bytes = domain.users.bytes_.size();
  header.items = static_cast<uint64_t>(domain.items.size());
  header.item_bytes = domain.items.bytes_.size();
  file.write({reinterpret_cast<const char*>(&header), sizeof(header)});
  file.start_hash();
  for (const IdList* ids : {&domain.users, &domain.items}) {
    put(file, ids->offsets_);
    file.write(ids->bytes_);
    file.write(std::string_view("\0\0\0\0\0\0\0", padded(ids->bytes_.size()) - ids->bytes_.size()));
  }
  for (int s = 0; s < 3; ++s) {
    const SplitRows& rows = domain.rows(static_cast<Split>(s));
    header.rows[s] = static_cast<uint64_t>(rows.size());
    put(file, rows.user);
    put(file, rows.item);
    put(file, rows.rating);
    put(file, rows.label);
    put(file, rows.time);
  }
  header.checksum = file.hash();
  file.overwrite(0, {reinterpret_cast<const char*>(&header), sizeof(header)});
}

bool DomainIndex::read(std::string_view bytes, const TextIdentity& identity, Domain& domain) {
  Header header;
  if (bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes.remove_prefix(sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.identity != identity ||
      XXH3_64bits(bytes.data(), bytes.size()) != header.checksum) {
    return false;
  }
  Taker taker(bytes);
  const auto take_ids = [&](uint64_t count, uint64_t size, IdList& ids) {
    std::vector<char> text;
    if (count > INT32_MAX || !taker.take(count + 1, ids.offsets_) || !taker.take(size, text)) {
      return false;
    }
    ids.bytes_.assign(text.data(), text.size());
    if (ids.offsets_.front() != 0 || ids.offsets_.back() != size) return false;
    for (uint64_t i = 0; i < count; ++i) {
      if (ids.offsets_[i] > ids.offsets_[i + 1] || ids.offsets_[i + 1] > size) return false;
    }
    for (int64_t i = 0; i < ids.size(); ++i) {
      if ((i > 0 && !(ids[i - 1] < ids[i])) || has_control(ids[i])) return false;
    }
    return true;
  };
  if (!take_ids(header.users, header.user_bytes, domain.users) ||
      !take_ids(header.items, header.item_bytes, domain.items)) {
    return false;
  }
  SplitRows* all[3] = {&domain.train, &domain.valid, &domain.test};
  for (int s = 0; s < 3; ++s) {
    const uint64_t n = header.rows[s];
    SplitRows& rows = *all[s];
    if (!taker.take(n, rows.user) || !taker.take(n, rows.item) || !taker.take(n, rows.rating) ||
        !taker.take(n, rows.label) || !taker.take(n, rows.time) ||
        !in_range(rows.user, domain.users.size()) || !in_range(rows.item, domain.items.size())) {
      return false;
    }
  }
  return taker.empty();
}

}  // namespace cfaa
