# What the libraries of a kit have in common: they lie in the kit's folder, ACLTAPE_KIT_FOLDER, and find
# libtorch where it is installed when the process has not loaded it yet.
function(acltape_kit_library target)
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ACLTAPE_KIT_FOLDER})
endfunction()
