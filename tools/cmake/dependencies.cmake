# What the library needs, by ordinary packages; docs/dependencies.md says why each is here. Every one is
# found by find_package or a cache variable, so that a packager can point elsewhere. Installed beside
# cfaaConfig.cmake, which finds the same.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)

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
