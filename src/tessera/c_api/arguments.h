#pragma once
/// Flags from other languages.

#include <string_view>

#include "tessera/launch/console.h"

namespace tessera {

/// The arguments that JSON says: an array of them, or an object of flags, with _ for - in names.
///
///   {"zero_stage": 1}            --zero-stage=1
///   {"bf16": true}               --bf16=true, as a switch is written
///   {"valid_data": ["a", "b"]}   --valid-data a b
///   {"lr": null}                 nothing
///   {"": "runs/mine"}            -- runs/mine, after all flags: a command's PATH, or a list of some
///
/// Errors: Fault::Usage: no JSON, or values that no flag has.
Arguments arguments_of(std::string_view json);

}  // namespace tessera
