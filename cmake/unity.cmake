# Compiles the files of a target in groups: those of one folder together, a few at a time. Most of the
# time of a build goes into reading the same headers and instantiating the same templates once per file.
#
# A group never holds files of two folders, and a new file moves only the groups of its own folder, so
# little is compiled again when one is added. Files of one folder see each other's anonymous namespaces:
# their names must differ. Files with compile options of their own stay alone.
option(ACLTAPE_UNITY "Compile the files of a folder in groups" ON)
set(ACLTAPE_UNITY_FILES 16 CACHE STRING "Files of a group at most")

function(acltape_unity target)
  if(NOT ACLTAPE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(files ${target} SOURCES)
  foreach(file IN LISTS files)
    cmake_path(ABSOLUTE_PATH file)
    cmake_path(GET file PARENT_PATH folder)
    string(MD5 key ${folder})
    math(EXPR count_${key} "0${count_${key}} + 1")
    math(EXPR group "(${count_${key}} - 1) / ${ACLTAPE_UNITY_FILES}")
    cmake_path(GET folder FILENAME name)
    set_property(SOURCE ${file} PROPERTY UNITY_GROUP ${name}_${group})
  endforeach()
endfunction()
