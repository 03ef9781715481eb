#pragma once
/// What a collective does, for a rank that can read the operands of all.

#include <span>

#include "tessera/comm/collective.h"

namespace tessera::backend {

/// Makes `out` of rank `me` from the operands of all ranks (of a broadcast: of its root). `ids`: of
/// Collective::rows.
void work(const Collective& c, int me, std::span<const void* const> ins, void* out,
          const std::int32_t* ids);

}  // namespace tessera::backend
