# libtorch, without its CMake package file: that one enables languages and adds flags for the whole
# project, and only two libraries here use libtorch. Debian's is found by itself; another one by
# CMAKE_PREFIX_PATH or by the variables below.
find_path(TORCH_INCLUDE_DIR torch/library.h REQUIRED)
find_library(TORCH_CPU_LIBRARY torch_cpu REQUIRED)
find_library(C10_LIBRARY c10 REQUIRED)
find_path(TORCH_API_INCLUDE_DIR torch/version.h
          PATHS ${TORCH_INCLUDE_DIR}/torch/csrc/api/include NO_DEFAULT_PATH REQUIRED)
# Newer headers keep the numbers in torch/headeronly.
foreach(header ${TORCH_INCLUDE_DIR}/torch/headeronly/version.h
               ${TORCH_API_INCLUDE_DIR}/torch/version.h)
  if(EXISTS ${header} AND NOT ACLTAPE_TORCH_VERSION)
    file(STRINGS ${header} ACLTAPE_TORCH_VERSION
         REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
    list(TRANSFORM ACLTAPE_TORCH_VERSION REPLACE "#define TORCH_VERSION_[A-Z]+ +" "")
    list(JOIN ACLTAPE_TORCH_VERSION "." ACLTAPE_TORCH_VERSION)
  endif()
endforeach()
add_library(acltape_libtorch INTERFACE)
target_include_directories(acltape_libtorch SYSTEM INTERFACE ${TORCH_INCLUDE_DIR}
                                                             ${TORCH_API_INCLUDE_DIR})
target_link_libraries(acltape_libtorch INTERFACE ${TORCH_CPU_LIBRARY} ${C10_LIBRARY})

# Wheels before 2.6 were built with the old ABI of std::string; then none of their functions takes a
# string of the new one.
file(STRINGS ${C10_LIBRARY} new_strings REGEX "_ZN3c105ErrorC[12].*cxx1112basic_string"
     LIMIT_COUNT 1)
if(NOT new_strings)
  target_compile_definitions(acltape_libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
endif()
