/// Linked into tests and examples in place of src/tessera/apps/amx_speedup_here.cpp: where there is
/// AMX it is fast, which nobody measures or keeps in the user's cache folder.

#include "tessera/apps/amx_speedup.h"

namespace tessera {

AmxSpeedup amx_speedup() { return {.times = 2}; }

}  // namespace tessera
