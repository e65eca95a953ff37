# The device `cuda`: kernels/ and cuda/, compiled by nvcc (CFAA_CUDA=real) or by the host compiler for
# the emulated device (CFAA_CUDA=emulated). Either way libcfaa gains the cfaa::cuda implementations.
file(GLOB cfaa_cuda_sources CONFIGURE_DEPENDS cuda/*.cpp cuda/*.cu cuda/tensorrt/*.cpp kernels/*.cu)

if(CFAA_CUDA STREQUAL "emulated")
  add_subdirectory(tests/emulator)
  # cfaa_add_cuda_objects(NAME SOURCES...): an object library of CUDA sources
  function(cfaa_add_cuda_objects name)
    add_library(${name} OBJECT ${ARGN})
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
    target_link_libraries(${name} PUBLIC cfaa_flags cfaa_emulator ${CFAA_HOST_LIBRARIES})
    target_compile_definitions(${name} PUBLIC CFAA_HAS_CUDA=1 CFAA_EMULATED=1 CFAA_HAS_TENSORRT=1)
  endfunction()
  target_compile_definitions(cfaa PUBLIC CFAA_HAS_CUDA=1 CFAA_EMULATED=1 CFAA_HAS_TENSORRT=1)
  target_link_libraries(cfaa PUBLIC cfaa_emulator)
else()
  # 12.6.2 is the first with what cuda/solver.cu calls, 12.8 the first that knows Blackwell. Code for
  # every generation, and PTX of the newest for those to come. -DCMAKE_CUDA_ARCHITECTURES=native
  # compiles for the GPUs of this machine alone, in a fifth of the time.
  find_package(CUDAToolkit 12.6 REQUIRED)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(architectures 80-real 86-real 89-real 90-real 100-real 120)
    if(CUDAToolkit_VERSION VERSION_LESS 12.8)
      set(architectures 80-real 86-real 89-real 90)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPU architectures")
  endif()
  enable_language(CUDA)
  # Compiled and not linked: the library itself is loaded when a GPU is asked for.
  include(CheckSymbolExists)
  set(CMAKE_REQUIRED_INCLUDES ${CUDAToolkit_INCLUDE_DIRS})
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  check_symbol_exists(cusolverDnXsyevBatched cusolverDn.h CFAA_CUSOLVER_HAS_BATCHED_SYEV)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  unset(CMAKE_REQUIRED_INCLUDES)
  if(NOT CFAA_CUSOLVER_HAS_BATCHED_SYEV)
    message(FATAL_ERROR "The cuSOLVER of CUDA ${CUDAToolkit_VERSION} has no "
                        "cusolverDnXsyevBatched: install CUDA 12.6.2 or later")
  endif()
  # CMake before 3.26 does not know that nvcc has C++20, nor by which flag.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  find_path(CUTLASS_INCLUDE_DIR cutlass/cutlass.h
            HINTS ${PROJECT_SOURCE_DIR}/build/deps/cutlass_library/source/include)
  if(NOT CUTLASS_INCLUDE_DIR)
    message(FATAL_ERROR "The CUTLASS headers were not found: run tools/setup, or point "
                        "-DCUTLASS_INCLUDE_DIR=... at the folder that holds cutlass/cutlass.h")
  endif()
  function(cfaa_add_cuda_objects name)
    add_library(${name} OBJECT ${ARGN})
    target_include_directories(${name} SYSTEM PRIVATE ${CUTLASS_INCLUDE_DIR})
    target_link_libraries(${name} PUBLIC cfaa_flags CUDA::cudart_static ${CFAA_HOST_LIBRARIES})
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --extended-lambda -lineinfo
        -Xcompiler=-Wall $<$<BOOL:${CFAA_WERROR}>:-Werror=all-warnings>>)
    target_compile_definitions(${name} PUBLIC CFAA_HAS_CUDA=1)
  endfunction()
  target_compile_definitions(cfaa PUBLIC CFAA_HAS_CUDA=1)
  if(PROJECT_IS_TOP_LEVEL AND GTest_FOUND)
    add_subdirectory(tests/cutlass)  # needs no GPU
  endif()
  # The runtime is linked in; cuda/libraries.cpp loads cuBLAS and cuSOLVER where a GPU is asked for.
  target_link_libraries(cfaa PUBLIC CUDA::cudart_static ${CMAKE_DL_LIBS})

  # TensorRT runs the encoder. Without it everything else works, and `embed` says what is missing.
  find_path(TensorRT_INCLUDE_DIR NvInfer.h HINTS ${TensorRT_ROOT}
            PATH_SUFFIXES include include/${CMAKE_LIBRARY_ARCHITECTURE})
  find_library(TensorRT_LIBRARY nvinfer HINTS ${TensorRT_ROOT}
               PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})
  if(TensorRT_INCLUDE_DIR AND TensorRT_LIBRARY)
    message(STATUS "TensorRT: ${TensorRT_LIBRARY}")
    target_compile_definitions(cfaa PUBLIC CFAA_HAS_TENSORRT=1)
    target_link_libraries(cfaa PUBLIC ${TensorRT_LIBRARY})
  else()
    message(STATUS "TensorRT was not found: embed will run on the CPU only "
                   "(point -DTensorRT_ROOT=... at the folder that holds include/ and lib/)")
  endif()
endif()

cfaa_add_cuda_objects(cfaa_cuda ${cfaa_cuda_sources})
if(CFAA_CUDA STREQUAL "real" AND TensorRT_LIBRARY)
  target_include_directories(cfaa_cuda SYSTEM PRIVATE ${TensorRT_INCLUDE_DIR})
  target_compile_definitions(cfaa_cuda PUBLIC CFAA_HAS_TENSORRT=1)
endif()
target_sources(cfaa PRIVATE $<TARGET_OBJECTS:cfaa_cuda>)
