// cfaa/_openvino.so: the network builder over OpenVINO, apart from cfaa._native so that the package
// is imported where OpenVINO is not installed.

#include <cfaa/encoder/network.h>

extern "C" __attribute__((visibility("default"))) cfaa::NetworkBuilder* cfaa_make_network_builder(
    cfaa::Context& context, const cfaa::NetworkOptions& options) {
  return cfaa::cpu::make_network_builder(context, options).release();
}
