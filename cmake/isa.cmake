# TESSERA_ISA: the instruction sets for which kernels are compiled (src/tessera/device/isa.h). all: whatever a processor has is
# used. native: the baseline, which runs everywhere, and what vectors of this machine take. Files of vectors are then compiled
# twice, not three times; ./dev quickstart does so.
set(TESSERA_ISA all CACHE STRING "instruction sets that kernels are compiled for: all, or native (this machine's)")
set_property(CACHE TESSERA_ISA PROPERTY STRINGS all native)
if(NOT TESSERA_ISA MATCHES "^(all|native)$")
  message(FATAL_ERROR "TESSERA_ISA is '${TESSERA_ISA}'; it can be all or native")
endif()

# function(compile_levels TARGET): compiles alone what has instructions of its own (files of vectors, which include
# vector_targets.h and are compiled once per target of Highway, and files of tiles), and leaves out the targets that this
# machine does not use, where TESSERA_ISA says so. No other file is compiled again when TESSERA_ISA changes.
function(compile_levels TARGET)
  set(DEFINED "")
  if(TESSERA_ISA STREQUAL "native")
    find_left_out(LEFT_OUT)
    set(DEFINED ${LEFT_OUT})
    list(TRANSFORM DEFINED PREPEND TESSERA_LEFT_OUT=)
  endif()
  get_target_property(SOURCES ${TARGET} SOURCES)
  foreach(SOURCE ${SOURCES})
    file(STRINGS ${SOURCE} VECTORS REGEX "vector_targets.h")
    file(STRINGS ${SOURCE} TILES REGEX "TESSERA_TILES")
    if(VECTORS OR TILES)
      set_property(SOURCE ${SOURCE} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    if(VECTORS)
      set_property(SOURCE ${SOURCE} APPEND PROPERTY COMPILE_DEFINITIONS ${DEFINED})
    endif()
  endforeach()
endfunction()

# function(find_left_out VARIABLE): the targets of Highway, but the baseline, that this machine does not use. Highway is asked,
# as the program asks it: where the two disagreed, the baseline would be left.
function(find_left_out VARIABLE)
  try_run(RAN COMPILED SOURCE_FROM_CONTENT left_out.cpp "
#include <cstdio>
#include <hwy/targets.h>
int main() {
  const auto has = hwy::SupportedTargets();
  std::fputs(has & HWY_AVX3 ? \"HWY_AVX2\" : has & HWY_AVX2 ? \"HWY_AVX3\" : \"HWY_AVX2|HWY_AVX3\", stdout);
}
" LINK_LIBRARIES tessera::hwy RUN_OUTPUT_VARIABLE LEFT_OUT NO_CACHE)
  if(NOT COMPILED OR NOT RAN EQUAL 0)
    message(WARNING "TESSERA_ISA=native: Highway does not tell what this machine has; all is compiled")
    set(LEFT_OUT "")
  else()
    message(STATUS "TESSERA_ISA=native: kernels without ${LEFT_OUT}")
  endif()
  set(${VARIABLE} ${LEFT_OUT} PARENT_SCOPE)
endfunction()
