# Debian 12 packages; docs/internals/dependencies.md says what each is for.
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
include(libraries)

# function(with_header NAME HEADER): tessera::NAME, with the folder of its headers
function(with_header NAME HEADER)
  if(NOT TARGET tessera::${NAME})
    message(FATAL_ERROR "the library ${NAME} is not found; ./dev build installs it, docs/internals/dependencies.md names its package")
  endif()
  find_path(tessera_${NAME}_INCLUDE ${HEADER} REQUIRED)
  target_include_directories(tessera::${NAME} SYSTEM INTERFACE ${tessera_${NAME}_INCLUDE})
endfunction()
with_header(dnnl dnnl.hpp)
with_header(hwy hwy/highway.h)
with_header(xxhash xxhash.h)
with_header(utf8proc utf8proc.h)
with_header(pcre2-8 pcre2.h)
with_header(sodium sodium.h)
with_header(z zlib.h)
with_header(zstd zstd.h)
with_header(jpeg jpeglib.h)
with_header(png16 png.h)
target_compile_definitions(tessera::pcre2-8 INTERFACE PCRE2_CODE_UNIT_WIDTH=8)  # its header asks which
add_library(tessera::tomlplusplus INTERFACE IMPORTED)  # headers alone
with_header(tomlplusplus toml++/toml.h)
# It asserts of some texts, as "[*]", what it refuses a line later; with NDEBUG, clang takes its word for it. And a letter
# like U+00E9 in the place of a blank reaches the unreachable default of a switch, where each case says rightly "no".
target_compile_options(tessera::tomlplusplus INTERFACE -UNDEBUG "-DTOML_ASSERT(expr)=static_assert(true)"
  -fno-sanitize=unreachable)

# Without MPI, another file stands in for the one that includes its header.
if(TARGET tessera::mpi)
  set(MPI_LIBRARY tessera::mpi)
  set(MPI_STUB process/absent)
else()
  message(STATUS "no MPI: ranks are threads of one process (on Debian: libopenmpi-dev openmpi-bin)")
  set(MPI_STUB process/found)
endif()
