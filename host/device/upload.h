#pragma once

// Brings a batch to a GPU while that computes the step before. The batch is copied on a stream of
// its own to a waiting place on the device, and from there, in the order of the device's stream, to
// where a captured step reads it: the second copy is forty times as fast as the first, and the only
// one that a step waits for.
//
//   upload.begin();
//   upload.copy(offset, pinned, bytes);  // as often as wanted
//   upload.deliver(batch);               // later work on the device's stream finds it there
//
// None of them waits; the destructor does. Pinned memory is free once the device's stream is past
// the delivery.

#include <cstddef>
#include <memory>

#include "host/core/context.h"

namespace cfaa {

class Upload {
 public:
  // Batches of at most so many bytes, to a GPU.
  Upload(Context& context, std::size_t bytes);
  ~Upload();

  void begin();
  void copy(std::size_t offset, const void* pinned, std::size_t bytes);
  // Each of the copies since begin() to `batch` + its offset.
  void deliver(void* batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
