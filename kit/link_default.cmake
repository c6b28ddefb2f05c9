# Gives the folder KIT the name of the libtorch TORCH that its libraries were built with, as a link
# beside it, and says in kit.json what they are.
execute_process(COMMAND ${IDENTITY_PROGRAM} ${TORCH} OUTPUT_VARIABLE identity
                COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(kits ${KIT} DIRECTORY)
get_filename_component(name ${KIT} NAME)
file(GLOB before ${kits}/*)
foreach(entry IN LISTS before)
  if(IS_SYMLINK ${entry})
    file(REMOVE ${entry})
  endif()
endforeach()
file(MAKE_DIRECTORY ${KIT})
file(CREATE_LINK ${name} ${kits}/${identity} SYMBOLIC)
file(WRITE ${KIT}/kit.json
  "{\"identity\": \"${identity}\", \"torch\": \"${VERSION}\", \"library\": \"${TORCH}\"}\n")
