#pragma once

// What training keeps in a GPU's memory, part by part: told before the first step, and the reason
// given where there is no room.

#include <cstddef>
#include <string>
#include <vector>

#include "host/device/room.h"
#include "host/model/batch.h"
#include "host/model/model_options.h"

namespace cfaa {

struct MemoryPart {
  std::string name;
  std::size_t bytes = 0;
  std::string smaller_by;  // the keys of the configuration that it grows with; "": never too large
};

// Bytes that only the device's own run can tell; 0 before.
struct MeasuredParts {
  std::size_t layers = 0, scratch = 0, reviews = 0;
};

// Tables, their moments, layers, scratch, batch and reviews.
template <class T>
std::vector<MemoryPart> memory_parts(const ModelOptions& model, const BatchShape& shape,
                                     const MeasuredParts& measured);

// A line each: the parts, what is left to libraries, CUDA and other programs, and what is free.
std::vector<std::string> memory_table(const std::vector<MemoryPart>& parts, const DeviceRoom& room);

// Why there was no room, and what to do: the largest part and the keys that make it smaller.
std::string explain_shortage(const std::string& shortage, const std::vector<MemoryPart>& parts);

}  // namespace cfaa
