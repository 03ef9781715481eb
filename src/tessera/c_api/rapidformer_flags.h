#pragma once
/// The flags of Rapidformer and Megatron-LM, for scripts in other languages.

#include <string>

#include "tessera/launch/console.h"
#include "tessera/rapidformer/request.h"

namespace tessera {

/// What `rapidformer` makes of flags that are told to a script: {"help": "..."} where that is asked,
/// else
///
///   {"fields": {"epochs": "3", "data": ["a", "b"]}, "given": {"num-layers": ["2"]},
///    "known": ["num-layers", ...], "notices": ["..."]}
///
/// Fields are flags of `tessera train`: those that differ from its defaults. Errors: as of
/// read_rapidformer_flags; Fault::Usage: all that is wrong with them.
std::string rapidformer_flags_json(const Arguments& arguments, FlagsOf whose);

}  // namespace tessera
