# TESSERA_ISA: the instruction sets for which kernels are compiled (src/tessera/device/isa.h). all: whatever a processor has is
# used. native: the baseline, which runs everywhere, and what vectors of this machine take. Files of vectors are then compiled
# twice, not three times; ./dev quickstart does so.
set(TESSERA_ISA all CACHE STRING "instruction sets that kernels are compiled for: all, or native (this machine's)")
set_property(CACHE TESSERA_ISA PROPERTY STRINGS all native)
if(NOT TESSERA_ISA MATCHES "^(all|native)$")
  message(FATAL_ERROR "TESSERA_ISA is '${TESSERA_ISA}'; it can be all or native")
endif()

# function(compile_levels TARGET): leaves out the targets of Highway that this machine does not use, where TESSERA_ISA says so.
# Highway is asked, as the program asks it: where the two disagreed, the baseline would be left. The files that are compiled
# once per target are those that include vector_targets.h; no other is compiled again when TESSERA_ISA changes.
function(compile_levels TARGET)
  if(TESSERA_ISA STREQUAL "all")
    return()
  endif()
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
    return()
  endif()
  message(STATUS "TESSERA_ISA=native: kernels without ${LEFT_OUT}")
  get_target_property(SOURCES ${TARGET} SOURCES)
  foreach(SOURCE ${SOURCES})
    file(STRINGS ${SOURCE} FOUND REGEX "vector_targets.h")
    if(FOUND)
      set_property(SOURCE ${SOURCE} APPEND PROPERTY COMPILE_DEFINITIONS TESSERA_LEFT_OUT=${LEFT_OUT})
    endif()
  endforeach()
endfunction()
