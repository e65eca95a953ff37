# An outside project that has the source tree as a part of its own build: configures it by
# add_subdirectory and compiles an example with the library's usage requirements. The library itself
# is what the build around this test compiles.
#
#   cmake -DBUILD=... -DSOURCE=... -DCOMPILER=... -P subdirectory_example.cmake
set(folder ${BUILD}/subdirectory_example)
file(REMOVE_RECURSE ${folder})
file(WRITE ${folder}/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
add_subdirectory(${SOURCE} cfaa EXCLUDE_FROM_ALL)
add_library(example OBJECT ${SOURCE}/docs/examples/losses.cpp)
target_link_libraries(example PRIVATE cfaa::cfaa)
")

include(${CMAKE_CURRENT_LIST_DIR}/run_or_fail.cmake)
run_or_fail(${CMAKE_COMMAND} -S ${folder} -B ${folder}/build -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER})
run_or_fail(${CMAKE_COMMAND} --build ${folder}/build --target example)
file(REMOVE_RECURSE ${folder})
