# room(NAME USES ROOM... LINKS TARGET... WITHOUT FOLDER...): the library of one folder under src/tessera, less some in it.
#
# Its include root holds only itself, and it inherits the roots of the rooms that it uses: an include that points up or
# sideways is not found, so it does not compile. Sources are globbed: adding a file edits no build file.
function(room NAME)
  cmake_parse_arguments(ARG "" "" "USES;LINKS;WITHOUT" ${ARGN})
  file(GLOB_RECURSE SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/tessera/${NAME}/*.cpp)
  list(FILTER SOURCES EXCLUDE REGEX "/main.cpp$")
  foreach(FOLDER ${ARG_WITHOUT})
    list(FILTER SOURCES EXCLUDE REGEX "/tessera/${NAME}/${FOLDER}/")
  endforeach()
  set(ROOT ${CMAKE_BINARY_DIR}/rooms/${NAME})
  file(MAKE_DIRECTORY ${ROOT}/tessera)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/tessera/${NAME} ${ROOT}/tessera/${NAME} SYMBOLIC)
  if(SOURCES)
    add_library(${NAME} STATIC ${SOURCES})
    target_include_directories(${NAME} PUBLIC ${ROOT})
    target_link_libraries(${NAME} PUBLIC ${ARG_USES} PRIVATE ${ARG_LINKS})
  else()
    add_library(${NAME} INTERFACE)
    target_include_directories(${NAME} INTERFACE ${ROOT})
    target_link_libraries(${NAME} INTERFACE ${ARG_USES})
  endif()
  set_property(GLOBAL APPEND PROPERTY TESSERA_ROOMS ${NAME})
  set_property(GLOBAL PROPERTY TESSERA_USES_${NAME} ${ARG_USES})  # for tests/repo/rooms_test.sh
endfunction()
