# OpenVINO runs encoders on the CPU. Its PyPI wheel carries headers, libraries and these CMake files;
# tools/setup unpacks it. Only host/encoder/openvino_network.cpp sees its headers.
find_package(OpenVINO QUIET COMPONENTS Runtime
             HINTS ${PROJECT_SOURCE_DIR}/build/deps/openvino/openvino/cmake)
if(OpenVINO_FOUND)
  message(STATUS "OpenVINO ${OpenVINO_VERSION}: ${OpenVINO_DIR}")
else()
  message(STATUS "OpenVINO was not found: `cfaa_gpu embed` will not run on the CPU (tools/setup, or "
                 "-DOpenVINO_DIR=...)")
endif()
