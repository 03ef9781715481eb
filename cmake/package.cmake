# `cpack` packs what `cmake --install` installs: a Debian package (-G DEB), or an archive (-G TGZ). ./dev package runs it;
# tests/repo/package_test.sh looks into what comes out.
set(CPACK_PACKAGE_NAME tessera)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains Transformers on many devices")
set(CPACK_PACKAGE_DESCRIPTION "A model is written as if there were one device. Tessera differentiates it, shards it over a
mesh of devices, plans its memory and communication, and runs it: the same numbers on any mesh.")
set(CPACK_PACKAGE_VENDOR "Tessera")
set(CPACK_PACKAGE_CONTACT "The authors of Tessera")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_SOURCE_GENERATOR "")
string(TOLOWER ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} SYSTEM)
set(CPACK_PACKAGE_FILE_NAME tessera-${PROJECT_VERSION}-${SYSTEM})

set(CPACK_PACKAGING_INSTALL_PREFIX /)
if(NOT TESSERA_RELOCATABLE)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# A compiler for programs of one's own and for rapidformer --user-script; mpirun for tessera launch --backend mpi.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++, openmpi-bin")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, ninja-build, libdnnl-dev, libhwy-dev")
include(CPack)
