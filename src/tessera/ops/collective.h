#pragma once
/// Ops that change where a value lies. They are inserted by partition; models do not call them.

#include "tessera/ir/builder.h"

namespace tessera {

/// This rank's (or micro-batch's) shard of `dim` of a value that is whole along `axis`; `shape` is
/// the local result. Which shard it is follows from the placements of operand and result.
extern const OpDef kShard;

}  // namespace tessera
