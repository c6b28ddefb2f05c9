# `cpack -G DEB` in the build folder makes a Debian package.
set(CPACK_PACKAGE_NAME acltape)
set(CPACK_PACKAGE_VENDOR "acltape")
set(ACLTAPE_MAINTAINER "The acltape authors <acltape@example.org>" CACHE STRING
    "Who made the package, with an address for those who install it")
set(CPACK_PACKAGE_CONTACT ${ACLTAPE_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"recorder and replayer of PyTorch and Ascend programs
acltape records what an eager PyTorch or Ascend program dispatches, keeps it
as one SQLite file that can be queried and executed, and replays it eagerly
and as captured ACL graphs, so that the two can be compared bit for bit.
.
It says what can be captured and on which streams, what would go wrong and
what it would save, and proves that by replay. It needs no NPU: the default
device is a soft one on the CPU behind the public ACL C interface.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${CMAKE_SOURCE_DIR}/cmake/debian/postinst ${CMAKE_SOURCE_DIR}/cmake/debian/prerm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Libraries are found by dpkg-shlibdeps; those of acltape itself are no packages.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "python3")  # the Python module
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib ${ACLTAPE_SDK_LIB})
# Programs of PyTorch, with a BLAS that is not the slow one of reference; kits for other versions of it;
# a look into traces by hand.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-torch, libopenblas0-pthread | libopenblas0")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "cmake, g++, libxxhash-dev, ninja-build, pkg-config, sqlite3")

# Documents that Debian wants beside the files of an installation, in the form that it wants.
set(documents ${CMAKE_BINARY_DIR}/debian)
string(TIMESTAMP year "%Y")
file(CONFIGURE OUTPUT ${documents}/copyright @ONLY CONTENT
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: acltape

Files: *
Copyright: @year@ The acltape authors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
# The package's own changelog has one entry; what changed for users is in CHANGELOG.md.
string(TIMESTAMP day "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT ${documents}/changelog.Debian @ONLY CONTENT
"acltape (@PROJECT_VERSION@-@CPACK_DEBIAN_PACKAGE_RELEASE@) unstable; urgency=medium

  * Package of acltape @PROJECT_VERSION@; see changelog.gz.

 -- @ACLTAPE_MAINTAINER@  @day@
")
add_custom_command(
  OUTPUT ${documents}/changelog.gz ${documents}/changelog.Debian.gz
  COMMAND sh -c "gzip -9nc '${CMAKE_SOURCE_DIR}/CHANGELOG.md' > '${documents}/changelog.gz'"
  COMMAND sh -c "gzip -9nkf '${documents}/changelog.Debian'"
  DEPENDS ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${documents}/changelog.Debian
  VERBATIM)
add_custom_target(acltape_documents ALL
                  DEPENDS ${documents}/changelog.gz ${documents}/changelog.Debian.gz)
install(FILES ${documents}/copyright ${documents}/changelog.gz ${documents}/changelog.Debian.gz
        DESTINATION ${CMAKE_INSTALL_DOCDIR})

include(CPack)
