# The files that `cmake --install` and packages hold. acltape has a folder of its own, laid out as
# the build folder is (cli/environment/installation.h), so that it can be moved as a whole:
#
#   <prefix>/bin/acltape                    a link to
#   <prefix>/<libdir>/acltape/bin/acltape   the command
#                             lib/          agents, and the library by which Python reads traces
#                             sdk/          the soft device; with ASCEND_TOOLKIT_HOME a toolkit
#                             sdk/lib64/kits/   the kit of the libtorch that was found
#                             source/       what `acltape torch add` builds other kits from
#   <prefix>/share/...                      manual pages, completions, documents
set(home ${CMAKE_INSTALL_LIBDIR}/acltape)

# Debug information names files of the machine that built it.
option(ACLTAPE_INSTALL_DEBUG "Install debug information" OFF)
if(NOT ACLTAPE_INSTALL_DEBUG)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP ON)")
endif()

# A wheel holds no links: what they lead to is installed twice there, and no command on a path.
option(ACLTAPE_INSTALL_LINKS "Install symbolic links where one file has two names" ON)

install(TARGETS acltape RUNTIME DESTINATION ${home}/bin)
if(ACLTAPE_INSTALL_LINKS)
  file(RELATIVE_PATH target /${CMAKE_INSTALL_BINDIR} /${home}/bin/acltape)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/installed)
  file(CREATE_LINK ${target} ${CMAKE_BINARY_DIR}/installed/acltape SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/installed/acltape DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(TARGETS acltape_agent acltape_acl_agent acltape_columns LIBRARY DESTINATION ${home}/lib)

# Libraries of the toolkit find each other in their folder.
get_property(compat GLOBAL PROPERTY acltape_compat_targets)
set_target_properties(ascendcl nnopbase opapi ${compat} PROPERTIES INSTALL_RPATH $ORIGIN)
install(TARGETS ascendcl nnopbase opapi ${compat} LIBRARY DESTINATION ${home}/sdk/lib64)
install(TARGETS ascendcl_newer LIBRARY DESTINATION ${home}/sdk/lib64/newer)
set_target_properties(opapi_with_kernels PROPERTIES INSTALL_RPATH "$ORIGIN/..")
install(TARGETS opapi_with_kernels LIBRARY DESTINATION ${home}/sdk/lib64/kernels)
# Further names of libascendcl.so. Where no links can be installed there are none: a copy would be a second
# device in one process.
if(ACLTAPE_INSTALL_LINKS)
  foreach(name acl_rt acl_rt_impl)
    install(FILES ${ACLTAPE_SDK_LIB}/lib${name}.so DESTINATION ${home}/sdk/lib64)
    install(FILES ${ACLTAPE_SDK_LIB}/newer/lib${name}.so DESTINATION ${home}/sdk/lib64/newer)
  endforeach()
  foreach(name opapi_math opapi_nn opapi_transformer opapi_cv)
    install(FILES ${ACLTAPE_SDK_LIB}/lib${name}.so DESTINATION ${home}/sdk/lib64)
  endforeach()
  install(FILES ${CMAKE_BINARY_DIR}/sdk/bin/msprof DESTINATION ${home}/sdk/bin)
endif()
install(TARGETS npu_smi RUNTIME DESTINATION ${home}/sdk/bin)
install(FILES ${CMAKE_BINARY_DIR}/sdk/set_env.sh DESTINATION ${home}/sdk)
install(FILES ${CMAKE_BINARY_DIR}/sdk/bin/setenv.bash DESTINATION ${home}/sdk/bin)
install(PROGRAMS ${CMAKE_BINARY_DIR}/sdk/tools/profiler/bin/msprof DESTINATION ${home}/sdk/tools/profiler/bin)
install(PROGRAMS ${CMAKE_BINARY_DIR}/sdk/tools/profiler/profiler_tool/analysis/msprof/msprof.py
        DESTINATION ${home}/sdk/tools/profiler/profiler_tool/analysis/msprof)
foreach(folder . x86_64-linux compiler tools)
  install(FILES ${CMAKE_BINARY_DIR}/sdk/tikcpp/ascendc_kernel_cmake/ascendc.cmake
          DESTINATION ${home}/sdk/${folder}/tikcpp/ascendc_kernel_cmake)
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/sdk/include DESTINATION ${home}/sdk)
install(DIRECTORY ${CMAKE_BINARY_DIR}/sdk/python DESTINATION ${home}/sdk FILES_MATCHING PATTERN "*.py"
        PATTERN METADATA PATTERN entry_points.txt)
install(TARGETS acltape_triton_kernel LIBRARY DESTINATION ${home}/sdk/python/site-packages/acltape_triton)
foreach(folder runtime compiler opp)
  install(DIRECTORY DESTINATION ${home}/sdk/${folder})
endforeach()

if(ACLTAPE_TORCH)
  # The kit lies below the toolkit's libraries, and finds those and the agent from there.
  set_target_properties(acltape_torch acltape_kernels PROPERTIES
    INSTALL_RPATH "$ORIGIN/../..:$ORIGIN/../../../../lib")
  install(TARGETS acltape_torch acltape_kernels LIBRARY DESTINATION ${home}/sdk/lib64/kits/default)
  install(FILES ${ACLTAPE_KIT_FOLDER}/kit.json DESTINATION ${home}/sdk/lib64/kits/default)
endif()

# Folders with a second name: the kit also has that of its libtorch, which only the build knows, and
# headers are included by two paths.
install(CODE "
  set(links_stay $<BOOL:${ACLTAPE_INSTALL_LINKS}>)
  set(sdk \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${home}/sdk\")
  file(GLOB links RELATIVE ${ACLTAPE_SDK_LIB}/kits ${ACLTAPE_SDK_LIB}/kits/*)
  foreach(link IN LISTS links)
    if(IS_SYMLINK ${ACLTAPE_SDK_LIB}/kits/\${link})
      if(links_stay)
        file(CREATE_LINK default \${sdk}/lib64/kits/\${link} SYMBOLIC)
      else()
        file(COPY \${sdk}/lib64/kits/default/ DESTINATION \${sdk}/lib64/kits/\${link})
      endif()
    endif()
  endforeach()
  if(NOT links_stay)
    file(REMOVE_RECURSE \${sdk}/include/aclnnop/level2)
    file(COPY \${sdk}/include/aclnnop/ DESTINATION \${sdk}/include/level2)
    file(RENAME \${sdk}/include/level2 \${sdk}/include/aclnnop/level2)
  endif()")

get_property(kit_sources GLOBAL PROPERTY acltape_kit_sources)
foreach(source IN LISTS kit_sources)
  file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${source})
  get_filename_component(folder ${path} DIRECTORY)
  install(FILES ${source} DESTINATION ${home}/source/${folder})
endforeach()

foreach(folder man bash-completion fish)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/${folder} DESTINATION ${CMAKE_INSTALL_DATADIR})
endforeach()
# Debian's zsh looks in another folder for what packages bring.
install(CODE "
  set(folder site-functions)
  if(CMAKE_INSTALL_PREFIX MATCHES \"/usr$\")
    set(folder vendor-completions)
  endif()
  file(INSTALL ${CMAKE_BINARY_DIR}/share/zsh/_acltape
       DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${folder}\")")
# Changes and licence have other names in an installation, those of Debian.
file(READ README.md readme)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS README.md)
string(REPLACE "(CHANGELOG.md)" "(changelog.gz)" readme "${readme}")
string(REPLACE "(LICENSE)" "(copyright)" readme "${readme}")
file(WRITE ${CMAKE_BINARY_DIR}/installed/README.md "${readme}")
file(READ CONTRIBUTING.md contributing)
string(REPLACE "(CHANGELOG.md)" "(changelog.gz)" contributing "${contributing}")
file(WRITE ${CMAKE_BINARY_DIR}/installed/CONTRIBUTING.md "${contributing}")
install(FILES ${CMAKE_BINARY_DIR}/installed/README.md ${CMAKE_BINARY_DIR}/installed/CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "*.md" PATTERN "*.png")

include(cmake/package.cmake)

# Files for programs that mark their ranges, and for readers of traces.
install(FILES recorder/ranges/acltape.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY python/acltape DESTINATION lib/python3/dist-packages FILES_MATCHING PATTERN "*.py" PATTERN "*.sql"
        PATTERN "lib*.so" PATTERN METADATA PATTERN entry_points.txt)
