# run_or_fail(COMMAND...): its output is shown only where it fails
function(run_or_fail)
  execute_process(COMMAND ${ARGV} OUTPUT_VARIABLE output ERROR_VARIABLE output
                  RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${ARGV}\n${output}")
  endif()
endfunction()
