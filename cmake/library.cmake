# The library for programs outside of this tree, and what `cmake --install` puts where. docs/guides/cpp-model.md is for its users.
#
# tessera_shared and tessera_static are all rooms in one library each, made of the same objects. In a program that adds
# this tree to its build, and in one that finds the installed package, they are tessera::tessera and tessera::static.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

get_property(ROOMS GLOBAL PROPERTY TESSERA_ROOMS)
get_property(OBJECTS GLOBAL PROPERTY TESSERA_OBJECTS)
get_property(LINKS GLOBAL PROPERTY TESSERA_LINKS)
foreach(KIND shared static)
  string(TOUPPER ${KIND} TYPE)
  set(TARGET tessera_${KIND})
  add_library(${TARGET} ${TYPE} ${OBJECTS})
  foreach(ROOM ${ROOMS})
    add_dependencies(${TARGET} tessera_${ROOM})
  endforeach()
  target_compile_features(${TARGET} PUBLIC cxx_std_20)
  target_include_directories(${TARGET} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${TARGET} PRIVATE ${LINKS})
  # SYSTEM: warnings that others turn on are not about our headers.
  set_target_properties(${TARGET} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME tessera SYSTEM ON)
endforeach()
# Interfaces change from 0.1 to 0.2, so the name by which programs find the shared library has both numbers.
set_target_properties(tessera_shared PROPERTIES EXPORT_NAME tessera
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(tessera_static PROPERTIES EXPORT_NAME static)
add_library(tessera::tessera ALIAS tessera_shared)
add_library(tessera::static ALIAS tessera_static)
# Templates of other libraries that are compiled into it stay its own: a program may use other versions of them.
set(EXPORTED ${PROJECT_SOURCE_DIR}/cmake/exported.map)
target_link_options(tessera_shared PRIVATE LINKER:--version-script=${EXPORTED})
set_target_properties(tessera_shared PROPERTIES LINK_DEPENDS ${EXPORTED})

if(NOT TESSERA_INSTALL)
  return()
endif()
if(TESSERA_RELOCATABLE)
  # RPATH, not RUNPATH: what the libraries beside it link is looked for there too.
  foreach(TARGET tessera rapidformer tessera_shared)
    target_link_options(${TARGET} PRIVATE LINKER:--disable-new-dtags)
    set_target_properties(${TARGET} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/tessera:$ORIGIN/tessera")
  endforeach()
  install(RUNTIME_DEPENDENCY_SET needed DESTINATION ${CMAKE_INSTALL_LIBDIR}/tessera
    POST_EXCLUDE_REGEXES "/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread)\\.so[^/]*$")
  set(NEEDED RUNTIME_DEPENDENCY_SET needed)
else()
  # Libraries that lie where no program looks by itself, as an MPI of one's own, are found after installing too.
  set_target_properties(tessera rapidformer tessera_shared PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()
install(TARGETS tessera rapidformer ${NEEDED} DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS tessera_shared EXPORT shared ${NEEDED} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tessera_static EXPORT static DESTINATION ${CMAKE_INSTALL_LIBDIR})
get_property(FACES GLOBAL PROPERTY TESSERA_FACES)
install(CODE "set(SOURCES \"${PROJECT_SOURCE_DIR}/src/tessera\")
set(FACES ${FACES})
set(FOLDER \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/tessera\")")
install(SCRIPT cmake/install_headers.cmake)

foreach(KIND shared static)
  install(EXPORT ${KIND} FILE tessera-${KIND}.cmake NAMESPACE tessera:: DESTINATION ${PACKAGE})
endforeach()
set(VERSION_FILE ${PROJECT_BINARY_DIR}/tessera-config-version.cmake)
write_basic_package_version_file(${VERSION_FILE} COMPATIBILITY SameMinorVersion)
install(FILES cmake/tessera-config.cmake ${VERSION_FILE} DESTINATION ${PACKAGE})
install(FILES cmake/libraries.cmake DESTINATION ${PACKAGE} RENAME tessera-libraries.cmake)

install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES bench/peers/torch_turn.py bench/peers/torch_models.py bench/peers/jax_turn.py bench/peers/turn_task.py DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/peers)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(EXAMPLES ${CMAKE_INSTALL_DATADIR}/tessera/examples)
install(DIRECTORY examples/ DESTINATION ${EXAMPLES} USE_SOURCE_PERMISSIONS FILES_MATCHING
  PATTERN "*.cpp" PATTERN "*.h" PATTERN "*.sh" PATTERN "*.json" PATTERN "README.md")
install(FILES examples/outside.cmake DESTINATION ${EXAMPLES} RENAME CMakeLists.txt)
install(DIRECTORY ${REFERENCE}/ DESTINATION ${CMAKE_INSTALL_DATADIR} OPTIONAL PATTERN docs EXCLUDE)
include(package)
