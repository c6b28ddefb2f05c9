# Every library of a kit lies in the kit's folder, ACLTAPE_KIT_FOLDER. When the process has not
# loaded libtorch yet, the library finds it where it is installed.
function(acltape_kit_library target)
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ACLTAPE_KIT_FOLDER})
endfunction()
