# Sources of one target are compiled several at a time: most of a file's compile time is its headers and templates, which
# then count once. TESSERA_UNITY=OFF compiles each alone: second builds are shorter, and a missing include is found.
option(TESSERA_UNITY "compile several sources of a target at a time" ON)
function(compile_together TARGET)
  if(NOT TESSERA_UNITY)
    return()
  endif()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${TARGET} PRIVATE -Wno-subobject-linkage)  # its files are included by another
  endif()
endfunction()

# room(NAME USES ROOM... LINKS TARGET... HEADERS TARGET... WITHOUT FOLDER... FACE HEADER...): the library of one folder under
# src/tessera, less some in it, as target tessera_NAME. HEADERS: libraries of which nothing is linked. FACE: at most six of
# its headers, without .h, that programs outside of this tree may include.
#
# Its include root holds only itself, and it inherits the roots of the rooms that it uses: an include that points up or
# sideways is not found, so it does not compile. Sources are globbed: adding a file edits no build file.
#
# Its objects are compiled once, for the room, for the static library and for the shared one (cmake/library.cmake), so they
# do not depend on their position. Nobody puts another function in the place of one of ours, so calls within a file are
# inlined as if they were not shared. Names of files that are compiled in are relative to the project.
function(room NAME)
  cmake_parse_arguments(ARG "" "" "USES;LINKS;HEADERS;WITHOUT;FACE" ${ARGN})
  file(GLOB_RECURSE SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tessera/${NAME}/*.cpp)
  list(FILTER SOURCES EXCLUDE REGEX "/main.cpp$")
  foreach(FOLDER ${ARG_WITHOUT})
    list(FILTER SOURCES EXCLUDE REGEX "/tessera/${NAME}/${FOLDER}/")
  endforeach()
  set(ROOT ${PROJECT_BINARY_DIR}/rooms/${NAME})
  file(MAKE_DIRECTORY ${ROOT}/tessera)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/tessera/${NAME} ${ROOT}/tessera/${NAME} SYMBOLIC)
  set(TARGET tessera_${NAME})
  list(TRANSFORM ARG_USES PREPEND tessera_ OUTPUT_VARIABLE USED)
  if(SOURCES)
    add_library(${TARGET} STATIC ${SOURCES})
    compile_together(${TARGET})
    set_target_properties(${TARGET} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${TARGET} PRIVATE -fno-semantic-interposition -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
    target_include_directories(${TARGET} PUBLIC ${ROOT})
    target_link_libraries(${TARGET} PUBLIC ${USED} PRIVATE ${ARG_LINKS} ${ARG_HEADERS})
    set_property(GLOBAL APPEND PROPERTY TESSERA_OBJECTS $<TARGET_OBJECTS:${TARGET}>)
    set_property(GLOBAL APPEND PROPERTY TESSERA_LINKS ${ARG_LINKS})
  else()
    add_library(${TARGET} INTERFACE)
    target_include_directories(${TARGET} INTERFACE ${ROOT})
    target_link_libraries(${TARGET} INTERFACE ${USED})
  endif()
  list(LENGTH ARG_FACE COUNT)
  if(COUNT GREATER 6)
    message(FATAL_ERROR "room ${NAME} has a face of ${COUNT} headers; six is the most: which can be included by another?")
  endif()
  list(TRANSFORM ARG_FACE REPLACE "(.+)" "${NAME}/\\1.h")
  set_property(GLOBAL APPEND PROPERTY TESSERA_FACES ${ARG_FACE})
  set_property(GLOBAL APPEND PROPERTY TESSERA_ROOMS ${NAME})
  set_property(GLOBAL PROPERTY TESSERA_USES_${NAME} ${ARG_USES})  # for tests/repo/rooms_test.sh
endfunction()

# family_list(ROOM FUNCTION TYPE PREFIX HEADER): FUNCTION of HEADER lists what the files of ROOM/families define, one TYPE each:
# qwen2.cpp PREFIXQwen2, gpt_neox.cpp PREFIXGptNeox. So a new family is a new file, and no list is edited.
function(family_list ROOM FUNCTION TYPE PREFIX HEADER)
  file(GLOB FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tessera/${ROOM}/families/*.cpp)
  set(EXTERNS "")
  set(LIST "")
  foreach(FILE ${FILES})
    cmake_path(GET FILE STEM WORDS)
    string(REPLACE "_" ";" WORDS ${WORDS})
    set(NAME ${PREFIX})
    foreach(WORD ${WORDS})
      string(SUBSTRING ${WORD} 0 1 FIRST)
      string(SUBSTRING ${WORD} 1 -1 REST)
      string(TOUPPER ${FIRST} FIRST)
      string(APPEND NAME ${FIRST}${REST})
    endforeach()
    string(APPEND EXTERNS "extern const ${TYPE} ${NAME};\n")
    string(APPEND LIST "    &${NAME},\n")
  endforeach()
  set(OUT ${PROJECT_BINARY_DIR}/${FUNCTION}.cpp)
  file(CONFIGURE OUTPUT ${OUT} CONTENT "#include \"tessera/${HEADER}\"

namespace tessera {

${EXTERNS}
namespace {
constexpr const ${TYPE}* kList[] = {
${LIST}};
}  // namespace

std::span<const ${TYPE}* const> ${FUNCTION}() { return kList; }

}  // namespace tessera
")
  set_source_files_properties(${OUT} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(tessera_${ROOM} PRIVATE ${OUT})
endfunction()
