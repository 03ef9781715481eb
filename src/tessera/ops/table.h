#pragma once
/// The op table: every op there is. A test walks it and fails on holes.

#include <span>
#include <string_view>

#include "tessera/ir/op_def.h"

namespace tessera {

std::span<const OpDef* const> all_ops();
/// Null where there is none.
const OpDef* find_op(std::string_view name);

}  // namespace tessera
