# Writes what ctest runs of a sanitized test program: one process a suite, since each takes a quarter
# of a second to start. Tests that match CFAA_LEAVE_OUT, a filter of GoogleTest's, are left out.
#
#   cmake -DPROGRAM=... -DSUPPRESSIONS=... -DOUT=... -P list_suites.cmake

# OpenVINO's TBB does not load its allocator into a sanitized program unless told so.
set(environment "TBB_ENABLE_SANITIZERS=1;TSAN_OPTIONS=suppressions=${SUPPRESSIONS}")

execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "(^|\n)[A-Za-z][A-Za-z0-9_/]*\\." suites "${listed}")
set(tests "")
foreach(suite ${suites})
  string(REGEX REPLACE "[\n.]" "" suite ${suite})
  string(APPEND tests "add_test(${suite} ${PROGRAM} --gtest_brief=1\n"
         "  \"--gtest_filter=${suite}.*-\$ENV{CFAA_LEAVE_OUT}\")\n"
         "set_tests_properties(${suite} PROPERTIES TIMEOUT 600 ENVIRONMENT \"${environment}\")\n")
endforeach()
file(WRITE ${OUT} "${tests}")
