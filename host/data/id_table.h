#pragma once

// Interning of raw ids, and the memory that ids and review texts live in.

#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace cfaa {

// Bytes that stay where they are until the arena goes. Large blocks, so that the kernel can back
// them by huge pages (a million small reviews otherwise cost as many page faults as parsing).
class ByteArena {
 public:
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
    void operator()(char* block) const;
  };
  void grow(std::size_t least);

  std::vector<std::unique_ptr<char, Free>> blocks_;
  char* next_ = nullptr;
  std::size_t room_ = 0;
};

// Raw ids numbered 0, 1, 2, ... as they come.
class IdTable {
 public:
  uint32_t intern(std::string_view id) {
    const uint64_t hash = XXH3_64bits(id.data(), id.size());
    if ((ids_.size() + 1) * 2 > slots_.size()) rehash();
    const uint64_t mask = slots_.size() - 1;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.number == kEmpty) {
        slot = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(ids_.size())};
        ids_.push_back(arena_.store(id));
        return slot.number;
      }
      if (slot.tag == static_cast<uint32_t>(hash >> 32) && ids_[slot.number] == id) {
        return slot.number;
      }
    }
  }

  const std::vector<std::string_view>& ids() const { return ids_; }

 private:
  static constexpr uint32_t kEmpty = 0xFFFFFFFF;
  struct Slot {
    uint32_t tag = 0, number = kEmpty;
  };
  void rehash();

  std::vector<Slot> slots_;
  std::vector<std::string_view> ids_;
  ByteArena arena_;
};

}  // namespace cfaa
