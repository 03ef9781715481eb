#pragma once
/// Which instruction sets this program has kernels for.

#include <string>
#include <string_view>

#include "tessera/device/isa.h"

namespace tessera {

/// True of the baseline always, and of every level where CMake's TESSERA_ISA is all. Where it is
/// native, of those that use vectors as the machine does that compiled this program.
bool is_compiled(Isa isa);

/// The levels without kernels, as "avx2" or "avx512, avx512-bf16, amx"; empty: none.
std::string levels_left_out();

/// Errors: Fault::Usage: there are no kernels of this level; `source` names what asks for it.
void require_compiled(Isa isa, std::string_view source);

}  // namespace tessera
