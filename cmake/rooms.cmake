# Sources of one target are compiled several at a time: most of a file's compile time is its headers and templates, which
# then count once. TESSERA_UNITY=OFF compiles each alone: second builds are shorter, and a missing include is found.
option(TESSERA_UNITY "compile several sources of a target at a time" ON)
function(compile_together TARGET)
  if(NOT TESSERA_UNITY)
    return()
  endif()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${TARGET} PRIVATE -Wno-subobject-linkage)  # its files are included by another
  endif()
endfunction()

# room(NAME USES ROOM... LINKS TARGET... WITHOUT FOLDER... APART): the library of one folder under src/tessera, less some
# in it. APART: its sources are compiled one at a time (those of Highway are compiled once per instruction set as well).
#
# Its include root holds only itself, and it inherits the roots of the rooms that it uses: an include that points up or
# sideways is not found, so it does not compile. Sources are globbed: adding a file edits no build file.
function(room NAME)
  cmake_parse_arguments(ARG "APART" "" "USES;LINKS;WITHOUT" ${ARGN})
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
    if(NOT ARG_APART)
      compile_together(${NAME})
    endif()
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
