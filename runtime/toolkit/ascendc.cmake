# Stands where a toolkit has the build rules of device code. Projects include it also when they have none; the soft
# device has no compiler for a core, so that the first rule of device code ends the configuration.
foreach(rule ascendc_library ascendc_fatbin_library ascendc_compile_definitions ascendc_compile_options
             ascendc_include_directories ascendc_link_libraries)
  cmake_language(EVAL CODE "
    function(${rule} target)
      message(FATAL_ERROR \"${rule}(\${target}): the soft device compiles no code for cores of a device. Build this \"
              \"part with the vendor's toolkit, or take an operator of aclnnop/ in place of the kernel.\")
    endfunction()")
endforeach()
