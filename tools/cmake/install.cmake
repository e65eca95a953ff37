# What `cmake --install` puts where, and what CPack packs:
#
#   bin/cfaa_gpu                   the program
#   lib/libcfaa.a, lib/cmake/cfaa  the library and find_package(cfaa)
#   include/cfaa                   its headers, #include <cfaa/run/recommend.h>
#   lib/cfaa                       OpenVINO's libraries, which `embed` on the CPU needs, and Arrow's
include(CMakePackageConfigHelpers)
set(cfaa_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cfaa)
set(cfaa_private_dir ${CMAKE_INSTALL_LIBDIR}/cfaa)

file(RELATIVE_PATH from_program_to_libraries
     /${CMAKE_INSTALL_BINDIR} /${cfaa_private_dir})
set_target_properties(cfaa_gpu PROPERTIES INSTALL_RPATH "$ORIGIN/${from_program_to_libraries}")
install(TARGETS cfaa_gpu COMPONENT program)

install(TARGETS cfaa EXPORT cfaaTargets ARCHIVE COMPONENT development)
install(EXPORT cfaaTargets NAMESPACE cfaa:: DESTINATION ${cfaa_cmake_dir} COMPONENT development)
install(CODE "
  set(source \"${PROJECT_SOURCE_DIR}/host\")
  set(destination \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/cfaa\")
  include(\"${PROJECT_SOURCE_DIR}/tools/cmake/install_headers.cmake\")
  " COMPONENT development)

# The encoder's engine on the CPU: its library, the plugin it loads, and the threads of both.
set(CFAA_OPENVINO_LIBRARY "")
if(OpenVINO_FOUND)
  get_target_property(openvino openvino::runtime IMPORTED_LOCATION_RELEASE)
  get_filename_component(openvino_dir ${openvino} DIRECTORY)
  get_filename_component(CFAA_OPENVINO_LIBRARY ${openvino} NAME)
  file(GLOB openvino_libraries ${openvino_dir}/${CFAA_OPENVINO_LIBRARY}
       ${openvino_dir}/libopenvino_intel_cpu_plugin.so ${openvino_dir}/libtbb.so.*
       ${openvino_dir}/libtbbmalloc.so.* ${openvino_dir}/libhwloc.so.*)
  install(FILES ${openvino_libraries} DESTINATION ${cfaa_private_dir} COMPONENT openvino)
endif()

# Parquet's libraries, beside them.
set(CFAA_ARROW_LIBRARY "")
set(CFAA_PARQUET_LIBRARY "")
if(CFAA_ARROW)
  get_filename_component(CFAA_ARROW_LIBRARY ${arrow_library} NAME)
  get_filename_component(CFAA_PARQUET_LIBRARY ${parquet_library} NAME)
  install(FILES ${arrow_library} ${parquet_library} DESTINATION ${cfaa_private_dir}
          COMPONENT arrow)
endif()

set(CFAA_COMPONENTS "")
if(OpenVINO_FOUND)
  list(APPEND CFAA_COMPONENTS openvino)
endif()
if(CFAA_ARROW)
  list(APPEND CFAA_COMPONENTS arrow)
endif()
if(CFAA_CUDA STREQUAL "real")
  list(APPEND CFAA_COMPONENTS cuda)
endif()
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/tools/cmake/cfaaConfig.cmake.in ${PROJECT_BINARY_DIR}/cfaaConfig.cmake
  INSTALL_DESTINATION ${cfaa_cmake_dir} PATH_VARS cfaa_private_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cfaaConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cfaaConfig.cmake ${PROJECT_BINARY_DIR}/cfaaConfigVersion.cmake
        ${PROJECT_SOURCE_DIR}/tools/cmake/dependencies.cmake
        DESTINATION ${cfaa_cmake_dir} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/cfaa
        COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME cfaa-gpu)
set(CPACK_PACKAGE_CONTACT "The cfaa_gpu maintainers <maintainers@cfaa-gpu.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
    "Review-based recommendation across two domains that share no user and no item")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${openvino_dir}")
# What linking the library needs; the program alone does without.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, pkg-config, libfmt-dev, libspdlog-dev, \
nlohmann-json3-dev, libhwy-dev, libopenblas-dev, liblapacke-dev, libsimdjson-dev, libisal-dev, \
libzstd-dev, libxxhash-dev")
if(NOT OpenVINO_FOUND)
  set(CPACK_PACKAGE_DESCRIPTION "Built without OpenVINO: 'cfaa_gpu embed' runs on a GPU only. \
To have it on the CPU run tools/setup in the source tree, build again and pack again.")
endif()
include(CPack)
