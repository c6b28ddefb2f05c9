# libtorch as Debian packages it, without its CMake package file: that one enables languages and adds
# flags for the whole project, and only two folders here use libtorch.
find_path(TORCH_INCLUDE_DIR torch/library.h REQUIRED)
find_library(TORCH_CPU_LIBRARY torch_cpu REQUIRED)
find_library(C10_LIBRARY c10 REQUIRED)
add_library(acltape_libtorch INTERFACE)
find_path(TORCH_API_INCLUDE_DIR torch/version.h
          PATHS ${TORCH_INCLUDE_DIR}/torch/csrc/api/include NO_DEFAULT_PATH REQUIRED)
target_include_directories(acltape_libtorch SYSTEM INTERFACE ${TORCH_INCLUDE_DIR}
                                                             ${TORCH_API_INCLUDE_DIR})
target_link_libraries(acltape_libtorch INTERFACE ${TORCH_CPU_LIBRARY} ${C10_LIBRARY})
