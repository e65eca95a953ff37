#include "host/core/network.h"

namespace cfaa {

std::string name_of(NetworkPrecision precision) {
  switch (precision) {
    case NetworkPrecision::f32:
      return "f32";
    case NetworkPrecision::tf32:
      return "tf32";
    case NetworkPrecision::f16:
      return "f16";
    case NetworkPrecision::bf16:
      return "bf16";
  }
  return "";
}

}  // namespace cfaa
