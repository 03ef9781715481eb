#pragma once
/// `tessera plan --minimalloc FILE`: places for the buffers of a file. For plan_command.cpp.

#include <string>

#include "tessera/apps/flags.h"

namespace tessera {

/// Whether the flags ask for it.
bool asks_for_buffer_layout(const ParsedFlags& parsed);

/// Prints the file with a column `offset`; what was found, and the bound, on the error stream.
/// With --memory-cap no buffer ends above it.
/// Errors: Fault::Usage: other flags; there is no layout below the cap, or none was found. Those of
/// parse_buffer_file().
int lay_out_buffer_file(ParsedFlags& parsed, Problems& problems, Console& console);

}  // namespace tessera
