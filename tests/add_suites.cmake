# ctest runs this before the tests: adds one test for each suite of `program`, with `properties`.
if(NOT EXISTS ${program})
  get_filename_component(name ${program} NAME)
  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
  return()
endif()
execute_process(COMMAND ${program} --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
# A suite's line begins at its first column and ends with a point, or with a comment after that.
string(REGEX MATCHALL "\n[^ \n]+\\.[ \n]" suites "\n${listed}")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "^\n(.+)\\.[ \n]$" "\\1" suite ${suite})
  add_test(${suite} ${program} --gtest_filter=${suite}.*)
  set_tests_properties(${suite} PROPERTIES ${properties} SKIP_RETURN_CODE 77)
endforeach()
