# Debian 12 packages; docs/dependencies.md says what each is for.
find_package(Threads REQUIRED)
link_libraries(Threads::Threads)
find_package(nlohmann_json REQUIRED)

# function(package_library TARGET HEADER LIBRARY...): a package without CMake files of its own
function(package_library TARGET HEADER)
  find_path(${TARGET}_INCLUDE ${HEADER} REQUIRED)
  add_library(${TARGET} INTERFACE)
  target_include_directories(${TARGET} SYSTEM INTERFACE ${${TARGET}_INCLUDE})
  foreach(LIBRARY ${ARGN})
    find_library(${TARGET}_${LIBRARY} ${LIBRARY} REQUIRED)
    target_link_libraries(${TARGET} INTERFACE ${${TARGET}_${LIBRARY}})
  endforeach()
endfunction()
package_library(dnnl dnnl.hpp dnnl)
package_library(hwy hwy/highway.h hwy)
package_library(tomlplusplus toml++/toml.h)
# It asserts of some texts, as "[*]", what it refuses a line later; with NDEBUG, clang takes its word for it. And a letter
# like U+00E9 in the place of a blank reaches the unreachable default of a switch, where each case says rightly "no".
target_compile_options(tomlplusplus INTERFACE -UNDEBUG "-DTOML_ASSERT(expr)=static_assert(true)"
  -fno-sanitize=unreachable)
package_library(xxhash xxhash.h xxhash)

# MPI, where it is installed: ranks in several processes. One file includes its header; without it, another stands in.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI COMPONENTS CXX)
if(MPI_CXX_FOUND)
  list(FILTER MPI_CXX_LIBRARIES EXCLUDE REGEX "mpi_cxx")  # the C interface is all that is used
  add_library(mpi INTERFACE)
  target_include_directories(mpi SYSTEM INTERFACE ${MPI_CXX_INCLUDE_DIRS})
  target_link_libraries(mpi INTERFACE ${MPI_CXX_LIBRARIES})
  set(MPI_LIBRARY mpi)
  set(MPI_STUB mpi/absent)
else()
  message(STATUS "no MPI: ranks are threads of one process (on Debian: libopenmpi-dev openmpi-bin)")
  set(MPI_STUB mpi/found)
endif()
