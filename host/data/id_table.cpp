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
  std::free(block);
}

void ByteArena::grow(std::size_t least) {
  // Small tables stay small; the block size doubles up to the largest.
  std::size_t size =
      std::min(kLargestBlock, std::size_t{64 << 10} << std::min<std::size_t>(blocks_.size(), 16));
  size = std::max(size, least);
  char* block = nullptr;
  if (size >= kHugePage) {
    size = (size + kHugePage - 1) / kHugePage * kHugePage;
    block = static_cast<char*>(std::aligned_alloc(kHugePage, size));
    if (block) ::madvise(block, size, MADV_HUGEPAGE);
  } else {
    block = static_cast<char*>(std::malloc(size));
  }
  if (!block) throw std::bad_alloc();
  blocks_.emplace_back(block);
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

}  // namespace cfaa
