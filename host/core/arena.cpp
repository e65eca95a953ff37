#include "host/core/arena.h"

#include <algorithm>

#include "host/core/error.h"

namespace cfaa {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kSmallestBlock = 1 << 20;

std::size_t aligned(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Arena::Arena(DeviceRuntime& runtime) : runtime_(runtime) {}

Arena::~Arena() {
  for (const Block& block : blocks_) runtime_.release(block.memory);
  for (const auto& [bytes, idle] : idle_pieces_) {
    for (char* memory : idle) runtime_.release(memory);
  }
}

void Arena::add_block(std::size_t bytes) {
  blocks_.push_back({static_cast<char*>(runtime_.allocate(bytes)), bytes});
  ++allocations_;
}

void* Arena::take_bytes(std::size_t bytes) {
  CFAA_ASSERT(scopes_ > 0);
  if (runtime_.watches_memory()) return take_piece(bytes);
  const std::size_t need = aligned(bytes);
  while (block_ < blocks_.size() && offset_ + need > blocks_[block_].bytes) {
    ++block_;
    offset_ = 0;
  }
  if (block_ == blocks_.size()) add_block(std::max(need, kSmallestBlock));
  char* memory = blocks_[block_].memory + offset_;
  offset_ += need;
  used_ += need;
  peak_ = std::max(peak_, used_);
  return memory;
}

void* Arena::take_piece(std::size_t bytes) {
  std::vector<char*>& idle = idle_pieces_[bytes];
  if (idle.empty()) {
    idle.push_back(static_cast<char*>(runtime_.allocate(bytes)));
    ++allocations_;
  }
  pieces_.push_back({idle.back(), bytes});
  idle.pop_back();
  used_ += aligned(bytes);
  peak_ = std::max(peak_, used_);
  runtime_.spoil(pieces_.back().memory, bytes);
  return pieces_.back().memory;
}

void Arena::reserve(std::size_t bytes) {
  CFAA_ASSERT(scopes_ == 0);
  peak_ = std::max(peak_, aligned(bytes));
  merge_blocks();
}

// Work queued on a stream may still read the old blocks: wait before they go.
void Arena::merge_blocks() {
  if (blocks_.size() == 1 && blocks_[0].bytes >= peak_) return;
  if (peak_ == 0 || runtime_.watches_memory()) return;
  runtime_.synchronize();
  for (const Block& block : blocks_) runtime_.release(block.memory);
  blocks_.clear();
  add_block(peak_);
}

Arena::Scope::Scope(Arena& arena)
    : arena_(arena),
      block_(arena.block_),
      offset_(arena.offset_),
      used_(arena.used_),
      pieces_(arena.pieces_.size()) {
  ++arena_.scopes_;
}

Arena::Scope::~Scope() {
  if (arena_.holds_ > 0) {
    --arena_.scopes_;
    return;
  }
  arena_.block_ = block_;
  arena_.offset_ = offset_;
  arena_.used_ = used_;
  while (arena_.pieces_.size() > pieces_) {
    const Block& piece = arena_.pieces_.back();
    arena_.idle_pieces_[piece.bytes].push_back(piece.memory);
    arena_.pieces_.pop_back();
  }
  if (--arena_.scopes_ == 0 && arena_.blocks_.size() > 1) arena_.merge_blocks();
}

}  // namespace cfaa
