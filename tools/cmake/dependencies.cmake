# What the host needs, by ordinary packages; docs/dependencies.md says why each is here. Every one is
# found by find_package or a cache variable, so that a packager can point elsewhere.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
pkg_check_modules(SIMDJSON REQUIRED IMPORTED_TARGET simdjson)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_path(LAPACKE_INCLUDE_DIR lapacke.h REQUIRED)
find_library(LAPACKE_LIBRARY lapacke REQUIRED)

set(CFAA_HOST_LIBRARIES Threads::Threads fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json
                        PkgConfig::HWY PkgConfig::OPENBLAS ${LAPACKE_LIBRARY}
                        PkgConfig::SIMDJSON PkgConfig::ISAL PkgConfig::ZSTD PkgConfig::XXHASH)

# OpenVINO runs encoders on the CPU. Its PyPI wheel carries headers, libraries and these CMake files;
# tools/setup unpacks it. Only host/encoder/openvino_network.cpp sees its headers.
find_package(OpenVINO QUIET COMPONENTS Runtime
             HINTS ${CMAKE_SOURCE_DIR}/build/deps/openvino/openvino/cmake)
if(OpenVINO_FOUND)
  message(STATUS "OpenVINO ${OpenVINO_VERSION}: ${OpenVINO_DIR}")
else()
  message(STATUS "OpenVINO was not found: `cfaa_gpu embed` will not run on the CPU (tools/setup, or "
                 "-DOpenVINO_DIR=...)")
endif()
