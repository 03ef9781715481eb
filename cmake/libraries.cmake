# What Tessera is linked with, as targets tessera::NAME. This file is also part of the installed package: programs that
# link the static library link all of this too. So it needs no header, and asks for nothing: who includes it looks whether
# the targets are there.

# function(tessera_find_library NAME): of a package without CMake files of its own
function(tessera_find_library NAME)
  find_library(tessera_${NAME}_LIBRARY ${NAME})
  if(tessera_${NAME}_LIBRARY AND NOT TARGET tessera::${NAME})
    add_library(tessera::${NAME} INTERFACE IMPORTED)
    target_link_libraries(tessera::${NAME} INTERFACE ${tessera_${NAME}_LIBRARY})
  endif()
endfunction()
tessera_find_library(dnnl)
tessera_find_library(hwy)
tessera_find_library(xxhash)
tessera_find_library(utf8proc)
tessera_find_library(pcre2-8)
tessera_find_library(sodium)
tessera_find_library(z)
tessera_find_library(zstd)
tessera_find_library(jpeg)
tessera_find_library(png16)

# MPI, where it is installed: ranks in several processes.
function(tessera_find_mpi)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND AND NOT TARGET tessera::mpi)
    list(FILTER MPI_CXX_LIBRARIES EXCLUDE REGEX "mpi_cxx")  # the C interface is all that is used
    add_library(tessera::mpi INTERFACE IMPORTED)
    target_include_directories(tessera::mpi INTERFACE ${MPI_CXX_INCLUDE_DIRS})
    target_link_libraries(tessera::mpi INTERFACE ${MPI_CXX_LIBRARIES})
  endif()
endfunction()
tessera_find_mpi()
