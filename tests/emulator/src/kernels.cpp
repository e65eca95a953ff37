// Kernel launches: limits, attributes and names of kernels.

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>

#include "emulator/launch.h"
#include "executor.h"
#include "fail.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"

namespace emulator {
namespace {

struct Kernel {
  std::string symbol;       // mangled
  std::string name;         // for people
  int dynamic_shared = -1;  // what cudaFuncSetAttribute allowed, -1 for the default
};

// Function symbols of one loaded file, kernels in anonymous namespaces included: those are in the
// symbol table of the file and not in the one dladdr reads.
using Symbols = std::map<std::uintptr_t, std::string>;

Symbols read_symbols(const char* file) {
  Symbols symbols;
  std::ifstream in(file, std::ios::binary);
  if (!in) return symbols;
  // The whole file in one read: byte by byte it takes seconds in an unoptimised build.
  in.seekg(0, std::ios::end);
  std::string image(static_cast<std::size_t>(in.tellg()), '\0');
  in.seekg(0);
  in.read(image.data(), static_cast<std::streamsize>(image.size()));
  if (image.size() < sizeof(ElfW(Ehdr))) return symbols;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(image.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(image.data() + header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const char* strings = image.data() + sections[sections[s].sh_link].sh_offset;
    const auto* table = reinterpret_cast<const ElfW(Sym)*>(image.data() + sections[s].sh_offset);
    for (std::size_t i = 0; i < sections[s].sh_size / sizeof(ElfW(Sym)); ++i) {
      if (ELF64_ST_TYPE(table[i].st_info) == STT_FUNC) {
        symbols[table[i].st_value] = strings + table[i].st_name;
      }
    }
  }
  return symbols;
}

std::string symbol_of(const void* function) {
  static std::map<std::string, Symbols> files;
  Dl_info info;
  const link_map* map = nullptr;
  if (dladdr1(function, &info, reinterpret_cast<void**>(const_cast<link_map**>(&map)),
              RTLD_DL_LINKMAP) == 0) {
    return "unknown";
  }
  const std::string file = map->l_name[0] ? map->l_name : "/proc/self/exe";
  auto found = files.find(file);
  if (found == files.end()) found = files.emplace(file, read_symbols(file.c_str())).first;
  const auto symbol = found->second.find(reinterpret_cast<std::uintptr_t>(function) - map->l_addr);
  if (symbol != found->second.end()) return symbol->second;
  return info.dli_sname ? info.dli_sname : "unknown";
}

// "typical_samples<float>" of a mangled name.
std::string readable(const std::string& symbol) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0) return symbol;
  std::string name = text.get();
  for (const char* noise : {"(anonymous namespace)::", "void "}) {
    for (std::size_t at; (at = name.find(noise)) != std::string::npos;) {
      name.erase(at, std::strlen(noise));
    }
  }
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0) return name.substr(0, i);
  }
  return name;
}

Kernel& kernel_at(const void* function) {
  static std::map<const void*, Kernel> kernels;
  auto found = kernels.find(function);
  if (found == kernels.end()) {
    Kernel kernel;
    kernel.symbol = symbol_of(function);
    kernel.name = readable(kernel.symbol);
    found = kernels.emplace(function, kernel).first;
  }
  return found->second;
}

std::size_t shared_allowed(const Kernel& kernel) {
  const Limits& limits = settings().limits;
  return kernel.dynamic_shared < 0
             ? limits.shared_default
             : std::max(limits.shared_default, static_cast<std::size_t>(kernel.dynamic_shared));
}

// Dynamic and static together: 48 KiB, or what the architecture has once the kernel asked for more.
std::size_t shared_total(const Kernel& kernel) {
  const Limits& limits = settings().limits;
  return kernel.dynamic_shared < 0 ? limits.shared_default : limits.shared_optin;
}

cudaError_t check_limits(const Kernel& kernel, const cudaLaunchConfig_t& config) {
  const Limits& limits = settings().limits;
  const dim3 block = config.blockDim, grid = config.gridDim;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > static_cast<std::uint64_t>(limits.max_threads) || block.x > 1024 ||
      block.y > 1024 || block.z > 64) {
    explain("kernel %s: a block of (%u, %u, %u) threads; %s allows 1 to %d", kernel.name.c_str(),
            block.x, block.y, block.z, limits.name, limits.max_threads);
    return cudaErrorInvalidConfiguration;
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 2147483647u || grid.y > 65535 ||
      grid.z > 65535) {
    explain("kernel %s: a grid of (%u, %u, %u) blocks; allowed are 1 to (2147483647, 65535, 65535)",
            kernel.name.c_str(), grid.x, grid.y, grid.z);
    return cudaErrorInvalidConfiguration;
  }
  if (config.dynamicSmemBytes > shared_allowed(kernel)) {
    explain(
        "kernel %s: %zu bytes of dynamic shared memory; allowed are %zu (up to %zu on %s after "
        "cudaFuncSetAttribute)",
        kernel.name.c_str(), config.dynamicSmemBytes, shared_allowed(kernel), limits.shared_optin,
        limits.name);
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, const void* function,
                           std::function<void()> body, std::vector<KernelPointer> pointers) {
  Locked locked(runtime_lock());
  cudaStream_t stream = resolve(config.stream);
  if (stream == nullptr) return remember(cudaErrorInvalidResourceHandle);
  const Kernel& kernel = kernel_at(function);
  if (cudaError_t error = check_limits(kernel, config)) return remember(error);
  if (device_of_stream(stream) != current_device()) {
    explain("kernel %s: the stream belongs to device %d, the current device is %d",
            kernel.name.c_str(), device_of_stream(stream), current_device());
    return remember(cudaErrorInvalidResourceHandle);
  }
  ++settings().counters.launches;
  Operation operation;
  operation.name = "kernel " + kernel.name;
  for (KernelPointer& pointer : pointers) {
    operation.pointers.push_back(
        {pointer.address, 0, std::move(pointer.what), true, pointer.certain, pointer.written});
  }
  KernelCall call{kernel.name,          config.gridDim, config.blockDim, config.dynamicSmemBytes,
                  shared_total(kernel), std::move(body)};
  operation.run = [call = std::move(call)] {
    const std::uint64_t number = ++settings().counters.kernels_run;
    run_kernel(call, settings().seed * 0x9E3779B97F4A7C15u + number);
  };
  return enqueue(stream, std::move(operation));
}

}  // namespace emulator

using namespace emulator;

extern "C" {

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attr, const void* func) {
  Locked locked(runtime_lock());
  const Kernel& kernel = kernel_at(func);
  *attr = {};
  attr->maxThreadsPerBlock = settings().limits.max_threads;
  attr->numRegs = 32;
  attr->ptxVersion = attr->binaryVersion = settings().limits.major * 10;
  attr->maxDynamicSharedSizeBytes = static_cast<int>(shared_allowed(kernel));
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* func, enum cudaFuncAttribute attr, int value) {
  Locked locked(runtime_lock());
  Kernel& kernel = kernel_at(func);
  if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > settings().limits.shared_optin) {
    explain("kernel %s: asks for %d bytes of shared memory; %s has at most %zu per block",
            kernel.name.c_str(), value, settings().limits.name, settings().limits.shared_optin);
    return remember(cudaErrorInvalidValue);
  }
  kernel.dynamic_shared = value;
  return cudaSuccess;
}

cudaError_t cudaFuncGetName(const char** name, const void* func) {
  Locked locked(runtime_lock());
  *name = kernel_at(func).symbol.c_str();
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void*,
                                                          int blockSize,
                                                          std::size_t dynamicSMemSize) {
  const Limits& limits = settings().limits;
  if (blockSize <= 0 || blockSize > limits.max_threads) return remember(cudaErrorInvalidValue);
  const int warps = (blockSize + 31) / 32;
  int blocks = std::min(limits.max_blocks_per_multiprocessor,
                        limits.max_threads_per_multiprocessor / (warps * 32));
  if (dynamicSMemSize > limits.shared_optin) {
    blocks = 0;
  } else {
    constexpr std::size_t reserved = 1024;  // the driver's share of each block
    blocks = std::min(
        blocks, static_cast<int>(limits.shared_per_multiprocessor / (dynamicSMemSize + reserved)));
  }
  *numBlocks = blocks;
  return cudaSuccess;
}

}  // extern "C"
