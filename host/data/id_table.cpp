#include "host/data/id_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace cfaa {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLargestBlock = std::size_t{32} << 20;

}  // namespace

void ByteArena::Free::operator()(char* block) const {
  if (spool) {
    spool->give_back(block);
  } else {
    std::free(block);
  }
}

void ByteArena::grow(std::size_t least) {
  // Small tables stay small; the block size doubles up to the largest.
  std::size_t size =
      std::min(kLargestBlock, std::size_t{64 << 10} << std::min<std::size_t>(blocks_.size(), 16));
  size = std::max(size, least);
  char* block = nullptr;
  if (spool_) {
    if (!blocks_.empty()) spool_->rest(blocks_.back().get());
    block = static_cast<char*>(spool_->take(size));
  } else if (size >= kHugePage) {
    size = (size + kHugePage - 1) / kHugePage * kHugePage;
    block = static_cast<char*>(std::aligned_alloc(kHugePage, size));
    if (block) ::madvise(block, size, MADV_HUGEPAGE);
  } else {
    block = static_cast<char*>(std::malloc(size));
  }
  if (!block) throw std::bad_alloc();
  blocks_.emplace_back(block, Free{spool_.get()});
  next_ = block;
  room_ = size;
}

void IdTable::rehash() {
  std::vector<Slot> old(std::max<std::size_t>(1024, slots_.size() * 2));
  old.swap(slots_);
  const uint64_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == kEmpty) continue;
    const std::string_view id = ids_[slot.number];
    uint64_t at = XXH3_64bits(id.data(), id.size()) & mask;
    while (slots_[at].number != kEmpty) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

uint32_t CompactIdTable::intern(std::string_view id) {
  if ((ids_.size() + 1) * 3 > slots_.size() * 2) rehash();
  const uint64_t hash = XXH3_64bits(id.data(), id.size()), mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.number == kEmpty) {
      slot = {static_cast<uint32_t>(ids_.size()), tag};
      ids_.push_back(arena_.store(id));
      return slot.number;
    }
    if (slot.tag == tag && ids_[slot.number] == id) return slot.number;
  }
}

void CompactIdTable::rehash() {
  const std::size_t size = std::max<std::size_t>(1024, slots_.size() * 2);
  slots_ = std::vector<Slot>();  // before the new ones: together they would be half as much again
  slots_.resize(size);
  const uint64_t mask = slots_.size() - 1;
  for (uint32_t number = 0; number < ids_.size(); ++number) {
    const uint64_t hash = XXH3_64bits(ids_[number].data(), ids_[number].size());
    uint64_t at = hash & mask;
    while (slots_[at].number != kEmpty) at = (at + 1) & mask;
    slots_[at] = {number, static_cast<uint32_t>(hash >> 32)};
  }
}

}  // namespace cfaa
