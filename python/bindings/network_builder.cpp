// In the place of the library's own, which links OpenVINO.

#include <cfaa/core/error.h>
#include <cfaa/encoder/network.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

namespace cfaa::cpu {
namespace {

using MakeNetworkBuilder = NetworkBuilder*(Context&, const NetworkOptions&);

MakeNetworkBuilder* load_plugin() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&load_plugin), &self) == 0) return nullptr;
  const auto path = std::filesystem::path(self.dli_fname).parent_path() / "_openvino.so";
  void* const plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    throw Error(fmt::format("encoders on the CPU need OpenVINO: pip install 'cfaa[openvino]' ({})",
                            dlerror()));
  }
  return reinterpret_cast<MakeNetworkBuilder*>(dlsym(plugin, "cfaa_make_network_builder"));
}

}  // namespace

std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                     const NetworkOptions& options) {
  static MakeNetworkBuilder* const make = load_plugin();
  return std::unique_ptr<NetworkBuilder>(make(context, options));
}

}  // namespace cfaa::cpu
