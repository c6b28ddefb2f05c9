# The common settings of the libraries of a kit. They lie in the kit's folder, ACLTAPE_KIT_FOLDER.
# The folder of libtorch is in their search path, for processes that have not loaded it; where one
# is loaded, the loader takes that one by its name.
# Messages of libtorch's checks name source files: from the top of the tree, not of this machine.
get_filename_component(ACLTAPE_TOP ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
function(acltape_kit_library target)
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ACLTAPE_KIT_FOLDER})
  target_compile_options(${target} PRIVATE -fmacro-prefix-map=${ACLTAPE_TOP}/=)
  acltape_unity(${target})
  if(ACLTAPE_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <ATen/ATen.h> <torch/library.h>)
  endif()
  if(TARGET acltape_link_kit)
    add_dependencies(${target} acltape_link_kit)
  endif()
endfunction()
