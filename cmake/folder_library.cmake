# The files of a folder are a library, and the libraries stand on each other as the folders do.
#
#   acltape_folder_library(analyzer/plan USES analyzer/lowering analyzer/prediction NEEDS fmt::fmt)
#
# makes acltape_analyzer_plan of the files that lie in analyzer/plan itself, EXCEPT for those that are
# named. USES names the folders whose headers they include, without those that another one of them uses.
# NEEDS names other libraries. A folder of headers alone is an interface library.
# tests/sources/include_graph_test.py reads these calls and holds them against the includes.
function(acltape_folder_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 library "" "" "EXCEPT;USES;NEEDS")
  set(top ${CMAKE_SOURCE_DIR}/${folder})
  file(GLOB files CONFIGURE_DEPENDS ${top}/*.cpp)
  list(TRANSFORM library_EXCEPT PREPEND ${top}/)
  list(REMOVE_ITEM files ${library_EXCEPT} "")
  string(REPLACE "/" "_" target acltape_${folder})
  list(TRANSFORM library_USES REPLACE "/" "_")
  list(TRANSFORM library_USES PREPEND acltape_)
  if(files)
    add_library(${target} STATIC ${files})
    target_link_libraries(${target} PUBLIC ${library_USES} PRIVATE ${library_NEEDS})
    acltape_unity(${target})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${library_USES})
  endif()
endfunction()
