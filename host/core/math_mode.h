#pragma once

namespace cfaa {

// How a GPU multiplies matrices of float: in fp32, or on tensor cores with operands rounded to TF32
// (10 bits of mantissa), which a caller must ask for. The CPU, and double, know one way only.
enum class MathMode { fp32, tf32 };

}  // namespace cfaa
