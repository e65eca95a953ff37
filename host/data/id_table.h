#pragma once

// Interning of raw ids, and the memory that ids and review texts live in.

#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "host/data/review.h"
#include "host/io/spool.h"

namespace cfaa {

// Bytes that stay where they are until the arena goes, in blocks that the kernel can back by huge
// pages (a million small reviews otherwise cost as many page faults as parsing), or in a spool.
class ByteArena {
 public:
  ByteArena() = default;
  explicit ByteArena(std::shared_ptr<Spool> spool) : spool_(std::move(spool)) {}

  std::string_view store(std::string_view bytes) {
    if (bytes.empty()) return {};
    if (bytes.size() > room_) grow(bytes.size());
    char* at = next_;
    std::memcpy(at, bytes.data(), bytes.size());
    next_ += bytes.size();
    room_ -= bytes.size();
    return {at, bytes.size()};
  }

 private:
  struct Free {
    Spool* spool = nullptr;
    void operator()(char* block) const;
  };
  void grow(std::size_t least);

  std::shared_ptr<Spool> spool_;
  std::vector<std::unique_ptr<char, Free>> blocks_;
  char* next_ = nullptr;
  std::size_t room_ = 0;
};

// Raw ids of at most kLongestId bytes, numbered 0, 1, 2, ... as they come. A slot holds the front
// of its id: a look-up of an id of the usual length costs one cache miss and not three.
class IdTable {
 public:
  uint32_t intern(std::string_view id) {
    const std::size_t short_bytes = std::min(id.size(), kHeadBytes);
    if ((ids_.size() + 1) * 2 > slots_.size()) rehash();
    const uint64_t mask = slots_.size() - 1;
    for (uint64_t at = XXH3_64bits(id.data(), id.size()) & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.number == kEmpty) {
        slot.number = static_cast<uint32_t>(ids_.size());
        slot.size = static_cast<uint16_t>(id.size());
        std::memcpy(slot.head, id.data(), short_bytes);
        ids_.push_back(arena_.store(id));
        return slot.number;
      }
      if (slot.size == id.size() && std::memcmp(slot.head, id.data(), short_bytes) == 0 &&
          (id.size() <= kHeadBytes || ids_[slot.number] == id)) {
        return slot.number;
      }
    }
  }

  const std::vector<std::string_view>& ids() const { return ids_; }

 private:
  static constexpr uint32_t kEmpty = 0xFFFFFFFF;
  static constexpr std::size_t kHeadBytes = 26;
  struct Slot {
    uint32_t number = kEmpty;
    uint16_t size;
    char head[kHeadBytes];
  };
  static_assert(sizeof(Slot) == 32 && kLongestId <= UINT16_MAX);
  void rehash();

  std::vector<Slot> slots_;
  std::vector<std::string_view> ids_;
  ByteArena arena_;
};

// The same in less memory, for tables that hold every id of a domain: 12 to 24 bytes and the id
// where an IdTable has 80 to 144, and a cache miss or two more a look-up.
class CompactIdTable {
 public:
  uint32_t intern(std::string_view id);
  const std::vector<std::string_view>& ids() const { return ids_; }
  // No id is looked up from here on: what only that needs goes.
  void close() { slots_ = std::vector<Slot>(); }

 private:
  static constexpr uint32_t kEmpty = 0xFFFFFFFF;
  struct Slot {
    uint32_t number = kEmpty, tag = 0;  // tag: the upper half of the id's hash
  };
  void rehash();

  std::vector<Slot> slots_;
  std::vector<std::string_view> ids_;
  ByteArena arena_;
};

}  // namespace cfaa
