#include "host/encoder/network.h"

#include "host/core/error.h"
#include "host/ops/dispatch.h"

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

std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                     const NetworkOptions& options) {
  CFAA_ASSERT(options.max_length >= 1 && options.batch_tokens >= 0);
  return CFAA_DISPATCH(context, make_network_builder)(context, options);
}

}  // namespace cfaa
