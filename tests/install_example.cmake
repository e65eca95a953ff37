# Installs the build into a folder of its own, configures docs/examples against it by find_package,
# builds the example that needs no data, and runs it and the installed program.
#
#   cmake -DBUILD=... -DEXAMPLES=... -DCOMPILER=... -P install_example.cmake
set(folder ${BUILD}/install_example)
file(REMOVE_RECURSE ${folder})

include(${CMAKE_CURRENT_LIST_DIR}/run_or_fail.cmake)
run_or_fail(${CMAKE_COMMAND} --install ${BUILD} --prefix ${folder}/prefix)
run_or_fail(${CMAKE_COMMAND} -S ${EXAMPLES} -B ${folder}/build -G Ninja
            -DCMAKE_CXX_COMPILER=${COMPILER}
            -DCMAKE_PREFIX_PATH=${folder}/prefix -DCMAKE_BUILD_TYPE=Debug)
run_or_fail(${CMAKE_COMMAND} --build ${folder}/build --target example_losses)
run_or_fail(${folder}/build/example_losses)
run_or_fail(${folder}/prefix/bin/cfaa_gpu --version)
file(REMOVE_RECURSE ${folder})
