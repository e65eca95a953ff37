#include "host/ops/network.h"

#include "host/core/error.h"
#include "host/ops/dispatch.h"

namespace cfaa {

std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                     const NetworkOptions& options) {
  CFAA_ASSERT(options.max_length >= 1 && options.batch_tokens >= 0);
  return CFAA_DISPATCH(context, make_network_builder)(context, options);
}

}  // namespace cfaa
