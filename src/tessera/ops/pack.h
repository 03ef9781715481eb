#pragma once
/// Packing: the same numbers in a device's own layout. Inserted by passes/pack; models do not call
/// it.

#include "tessera/ir/builder.h"

namespace tessera {

/// x in the layout (tag, bytes) that a device asked for. The interpreter, which has no layouts,
/// passes x on.
extern const OpDef kPack;

}  // namespace tessera
