# Arrow reads and writes Parquet, where -DCFAA_ARROW=ON asks for it. pyarrow's PyPI wheel carries
# its headers and libraries; `tools/setup arrow` unpacks it. Only host/io/parquet.cpp sees them.
option(CFAA_ARROW "Read and write Parquet files by Arrow (tools/setup arrow)" OFF)
if(CFAA_ARROW)
  set(CFAA_ARROW_DIR ${PROJECT_SOURCE_DIR}/build/deps/arrow/pyarrow CACHE PATH
      "A folder with include/arrow and libarrow.so.*: pyarrow's own")
  file(GLOB arrow_library ${CFAA_ARROW_DIR}/libarrow.so.*)
  file(GLOB parquet_library ${CFAA_ARROW_DIR}/libparquet.so.*)
  if(NOT EXISTS ${CFAA_ARROW_DIR}/include/parquet/arrow/reader.h OR NOT arrow_library
     OR NOT parquet_library)
    message(FATAL_ERROR "CFAA_ARROW: ${CFAA_ARROW_DIR} has no Arrow; run tools/setup arrow, or "
                        "name pyarrow's folder by -DCFAA_ARROW_DIR=...")
  endif()
  message(STATUS "Arrow: ${arrow_library}")
  foreach(name arrow parquet)
    add_library(cfaa::${name} SHARED IMPORTED)
    set_target_properties(cfaa::${name} PROPERTIES IMPORTED_LOCATION ${${name}_library})
  endforeach()
  add_library(cfaa_arrow_headers INTERFACE)
  target_include_directories(cfaa_arrow_headers SYSTEM INTERFACE ${CFAA_ARROW_DIR}/include)
endif()
