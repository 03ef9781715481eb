/// Linked into tests and examples in place of src/tessera/device/cpu/choices.cpp: the machine has
/// no more than the instruction set TESSERA_MAX_ISA, where that is set.

#include <cstdio>
#include <cstdlib>

#include "tessera/device/cpu/isa.h"

namespace tessera {

CpuChoices machine_choices() {
  const CpuChoices real = cpu::processor_choices();
  const char* const variable = std::getenv("TESSERA_MAX_ISA");
  if (variable == nullptr) return real;
  const Isa wanted = parse_isa(variable, "TESSERA_MAX_ISA");
  if (wanted < real.isa) return {wanted, real.pack_weights};
  constexpr int kSkipped = 77;  // tests/CMakeLists.txt tells ctest
  std::fprintf(stderr, "not run: %s is not below this machine's level, %s\n", variable,
               std::string(to_text(real.isa)).c_str());
  std::_Exit(kSkipped);
}

}  // namespace tessera
